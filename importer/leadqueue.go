package importer

import (
	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// leadQueue keeps the rows of one lead in file order, one at a time. It stands under every
// name by which a row of the lead may come.
type leadQueue struct {
	active  int // rows in flight, or about to be
	waiting []*item
	names   []name
}

// name is an identity of a lead: the fold of the key that it has in the checkpoint, for
// look-alikes wait for one another, or, where it may get another row's lead ID or
// ExternalID, these.
type name struct {
	kind nameKind
	text string
}

type nameKind uint8

const (
	noName nameKind = iota
	byKey
	byLeadID
	byExternalID
)

// names are those by which a row's lead goes; the first is always there.
type names [4]name

// namesOf are the names of a row for which known was found. Nearly all rows have one, or
// an ExternalID besides.
func (e *engine) namesOf(it *item, known *checkpoint.Entry) names {
	ns := names{{byKey, rowkey.Fold(known.Key)}}
	if !e.matches {
		return ns
	}
	rec := &it.rec
	if rec.Key != known.Key {
		ns[3] = name{byKey, rowkey.Fold(rec.Key)} // a row before this one may get a lead for it
	}
	if rec.LeadID != "" && rec.LeadID != known.LeadID {
		ns[1] = name{byLeadID, rec.LeadID}
	}
	if rec.ExternalID != "" { // also its lead's own: a row before this one may find the lead by it
		ns[2] = name{byExternalID, rec.ExternalID}
	}
	return ns
}

// leadQueue is the one in which rows of any of these names wait, or nil. Where they had
// several, those become one.
func (e *engine) leadQueue(ns *names) *leadQueue {
	var l *leadQueue
	for _, n := range ns {
		if n.kind == noName {
			continue
		}
		switch other := e.leadQueues[n]; {
		case other == nil || other == l:
		case l == nil:
			l = other
		default:
			e.merge(l, other)
		}
	}
	return l
}

func (e *engine) merge(l, other *leadQueue) {
	l.active += other.active
	l.waiting = append(l.waiting, other.waiting...)
	e.call(l, other.names...)
}

// call puts a queue under further names.
func (e *engine) call(l *leadQueue, ns ...name) {
	for _, n := range ns {
		if n.kind != noName && e.leadQueues[n] != l {
			e.leadQueues[n] = l
			l.names = append(l.names, n)
		}
	}
}

// enter begins a queue with a row that goes on at once.
func (e *engine) enter(it *item, ns *names) {
	it.name = ns[0]
	l := &leadQueue{active: 1}
	e.call(l, ns[:]...)
}

// park lets a row wait for its queue.
func (e *engine) park(it *item, l *leadQueue, ns *names) {
	it.name = ns[0]
	e.call(l, ns[:]...)
	l.waiting = append(l.waiting, it)
	e.count(it, 1)
}

// leave lets the next row of the queue have its turn, once no other is in flight.
func (e *engine) leave(it *item) {
	l := e.leadQueues[it.name]
	if l.active--; l.active > 0 {
		return
	}
	if len(l.waiting) == 0 {
		for _, n := range l.names {
			delete(e.leadQueues, n)
		}
		return
	}
	l.active = 1
	next := l.waiting[0]
	e.turn = append(e.turn, next)
	l.waiting = l.waiting[1:]
	e.count(next, -1)
}

// count counts one row more, or one less, among those that wait.
func (e *engine) count(it *item, one int) {
	e.parked += one
	e.parkedBytes += one * it.row.Size
}

// full says that no more rows may wait.
func (e *engine) full() bool { return e.parked >= maxParked || e.parkedBytes >= maxParkedBytes }

// rejoin takes back the turn of a row whose queue has become one with another that
// has a row in flight; false: it may go on.
func (e *engine) rejoin(it *item, ns *names) bool {
	l := e.leadQueues[it.name]
	for _, n := range ns {
		if other := e.leadQueues[n]; n.kind != noName && other != nil && other != l {
			e.merge(l, other)
		}
	}
	e.call(l, ns[:]...)
	if l.active == 1 {
		return false
	}
	l.active--
	l.waiting = append([]*item{it}, l.waiting...)
	e.count(it, 1)
	return true
}

// touch notes that the run acts on a lead, so that what a batch knows of it is old.
func (e *engine) touch(ns *names) {
	for _, n := range ns {
		if n.kind != noName {
			e.touched[n] = struct{}{}
		}
	}
}

func (e *engine) isTouched(ns *names) bool {
	if len(e.touched) == 0 {
		return false
	}
	for _, n := range ns {
		if _, ok := e.touched[n]; ok {
			return true
		}
	}
	return false
}
