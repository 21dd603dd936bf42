package importer

import (
	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// maxParked is how many rows may wait behind rows of the same lead, and maxParkedBytes
// how many bytes of the file, but for the row that exceeds it.
const (
	maxParked      = 1000
	maxParkedBytes = 64 << 20
)

// leadQueues keep the rows of each lead in file order, one at a time. A lead has a queue
// while a row of it is in flight.
type leadQueues struct {
	byName map[leadName]*leadQueue
	ready  []*item // rows whose queue has just become free
	parked int     // rows that wait
	bytes  int     // that these take
	spare  []*leadQueue
}

// leadQueue stands under every name by which a row of its lead may come.
type leadQueue struct {
	active  int // rows in flight, or whose turn it is
	waiting []*item
	names   []leadName
}

// leadName is an identity of a lead: the fold of the key that it has in the checkpoint, for
// look-alikes wait for one another, or, where it may get another row's lead ID or
// ExternalID, these.
type leadName struct {
	kind nameKind
	text string
}

type nameKind uint8

const (
	byKey nameKind = iota
	byLeadID
	byExternalID
)

// leadNames are those by which a row's lead goes; there is at least one.
type leadNames struct {
	list [4]leadName
	n    int
}

func (ns *leadNames) add(kind nameKind, text string) {
	ns.list[ns.n] = leadName{kind, text}
	ns.n++
}

func (ns *leadNames) all() []leadName { return ns.list[:ns.n] }

// namesOf are the names of a row for which known was found. Nearly all rows have one, or
// an ExternalID besides; byIDs says that rows find their lead by its IDs, too.
func namesOf(it *item, known *checkpoint.Entry, byIDs bool) (ns leadNames) {
	rec := &it.rec
	ns.add(byKey, rowkey.Fold(known.Key))
	if byIDs && rec.LeadID != "" && rec.LeadID != known.LeadID {
		ns.add(byLeadID, rec.LeadID)
	}
	if rec.ExternalID != "" { // also its lead's own: a row before this one may find the lead by it, or be about to get it
		ns.add(byExternalID, rec.ExternalID)
	}
	if rec.Key != known.Key { // a row before this one may get a lead for it
		ns.add(byKey, rowkey.Fold(rec.Key))
	}
	return ns
}

// nameSet holds names of leads, each with a number.
type nameSet map[leadName]int64

func (s nameSet) add(ns *leadNames, number int64) {
	for _, n := range ns.all() {
		s[n] = number
	}
}

// has reports whether it holds any of the names.
func (s nameSet) has(ns *leadNames) bool {
	for _, n := range ns.all() {
		if _, held := s[n]; held {
			return true
		}
	}
	return false
}

func newLeadQueues() *leadQueues { return &leadQueues{byName: map[leadName]*leadQueue{}} }

// find is the queue in which rows of any of these names wait, or nil. Where they had
// several, those become one.
func (q *leadQueues) find(ns *leadNames) *leadQueue {
	var l *leadQueue
	for _, n := range ns.all() {
		switch other := q.byName[n]; {
		case other == nil || other == l:
		case l == nil:
			l = other
		default:
			q.merge(l, other)
		}
	}
	return l
}

func (q *leadQueues) merge(l, other *leadQueue) {
	l.active += other.active
	l.waiting = append(l.waiting, other.waiting...)
	q.addNames(l, other.names)
}

// addNames puts a queue under further names.
func (q *leadQueues) addNames(l *leadQueue, ns []leadName) {
	for _, n := range ns {
		if q.byName[n] != l {
			q.byName[n] = l
			l.names = append(l.names, n)
		}
	}
}

// enter begins a queue with a row that goes on at once.
func (q *leadQueues) enter(it *item, ns *leadNames) {
	it.name = ns.list[0]
	l := new(leadQueue)
	if last := len(q.spare) - 1; last >= 0 {
		l, q.spare = q.spare[last], q.spare[:last]
	}
	l.active = 1
	q.addNames(l, ns.all())
}

// park lets a row wait for its queue.
func (q *leadQueues) park(it *item, l *leadQueue, ns *leadNames) {
	it.name = ns.list[0]
	q.addNames(l, ns.all())
	l.waiting = append(l.waiting, it)
	q.count(it, 1)
}

// leave lets the next row of the queue have its turn, once no other is in flight.
func (q *leadQueues) leave(it *item) {
	l := q.byName[it.name]
	if l.active--; l.active > 0 {
		return
	}
	if len(l.waiting) == 0 {
		for _, n := range l.names {
			delete(q.byName, n)
		}
		*l = leadQueue{names: l.names[:0]}
		q.spare = append(q.spare, l)
		return
	}
	l.active = 1
	next := l.waiting[0]
	q.ready = append(q.ready, next)
	l.waiting = l.waiting[1:]
	q.count(next, -1)
}

// rejoin takes back the turn of a row whose queue has become one with another that
// has a row in flight; false: it may go on.
func (q *leadQueues) rejoin(it *item, ns *leadNames) bool {
	l := q.byName[it.name]
	for _, n := range ns.all() {
		if other := q.byName[n]; other != nil && other != l {
			q.merge(l, other)
		}
	}
	q.addNames(l, ns.all())
	if l.active == 1 {
		return false
	}
	l.active--
	l.waiting = append([]*item{it}, l.waiting...)
	q.count(it, 1)
	return true
}

// count counts one row more, or one less, among those that wait.
func (q *leadQueues) count(it *item, one int) {
	q.parked += one
	q.bytes += one * it.row.Size
}

// full says that no more rows may wait.
func (q *leadQueues) full() bool { return q.parked >= maxParked || q.bytes >= maxParkedBytes }

// empty says that no row waits, nor has its turn.
func (q *leadQueues) empty() bool { return q.parked == 0 && len(q.ready) == 0 }

// drain takes all rows out that never had their turn.
func (q *leadQueues) drain() []*item {
	left := q.ready
	for _, l := range q.byName {
		left = append(left, l.waiting...)
		l.waiting = nil // a queue may stand under several names
	}
	q.ready, q.parked, q.bytes = nil, 0, 0
	return left
}
