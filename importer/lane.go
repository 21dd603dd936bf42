package importer

import (
	"slices"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/internal/rowkey"
	"leadferry/leadapi"
)

// maxWaiting is how many rows may wait in lanes, and maxWaitingBytes how many bytes of the file, but for the row that
// exceeds it.
const (
	maxWaiting      = 1000
	maxWaitingBytes = 64 << 20
)

// lanesPerPlace is how many lanes there are for each request that may be in flight. A row waits for the checkpoint for half
// of its time, and those that wait share commits: with two for each there are twice as many commits, and a row takes a
// seventh more processor time.
const lanesPerPlace = 4

// slotsPerPlace is how many rows may be claimed and not yet settled for each request that may
// be in flight: as many are in doubt when the process is killed.
const slotsPerPlace = 2

// lane is a lead under way: it stands under every name by which a row of its lead may come, and its rows wait in it.
type lane struct {
	names   []leadName
	waiting []*item
	planned bool   // job is a row that is to be carried
	job     job    // the row under way
	again   lookup // room for what is known of the next one
}

// lanes are those of a run. The engine's lock guards them.
type lanes struct {
	byName   map[leadName]*lane
	late     []*lane // lanes that wait for the end of the run
	todo     chan *lane
	active   int // lanes that a goroutine of the pool has, or is about to take
	underWay int // rows that were handed to one, and have not been counted
	waiting  int // rows that wait
	bytes    int // that these take
	spare    []*lane
}

func newLanes(places int) lanes {
	n := lanesPerPlace * places
	if places == 1 {
		n = 1 // rows go in the order of the input then, as whoever asks for one at a time expects
	}
	return lanes{byName: map[leadName]*lane{}, todo: make(chan *lane, n)}
}

// find is a lane that stands under any of these names, or nil; two says that others do as well.
func (s *lanes) find(ns *leadNames) (l *lane, two bool) {
	for _, n := range ns.all() {
		if other := s.byName[n]; other != nil && other != l {
			l, two = other, l != nil
		}
	}
	return l, two
}

// meet is another lane that stands under one of these names, or nil: then l does, under all.
func (s *lanes) meet(l *lane, ns *leadNames) *lane {
	for _, n := range ns.all() {
		if other := s.byName[n]; other != nil && other != l {
			return other
		}
	}
	s.name(l, ns.all())
	return nil
}

// merge lets all rows of a lane wait in another one, all of them in the order of the input.
func (s *lanes) merge(l, other *lane) {
	other.waiting = append(other.waiting, l.waiting...)
	slices.SortFunc(other.waiting, func(a, b *item) int { return spotOf(a).Compare(spotOf(b)) })
	s.name(other, l.names)
	s.recycle(l)
}

// name puts a lane under further names.
func (s *lanes) name(l *lane, ns []leadName) {
	for _, n := range ns {
		if s.byName[n] != l {
			s.byName[n] = l
			l.names = append(l.names, n)
		}
	}
}

// begin is a lane under these names, in which nothing is under way yet.
func (s *lanes) begin(ns *leadNames) *lane {
	l := new(lane)
	if last := len(s.spare) - 1; last >= 0 {
		l, s.spare = s.spare[last], s.spare[:last]
	}
	s.name(l, ns.all())
	return l
}

// start lets the pool take a lane; there is room for it.
func (s *lanes) start(l *lane) {
	s.active++
	s.todo <- l
}

// startLate lets the lane that was put off first go on, and reports false where none was or the pool has no room.
func (s *lanes) startLate() bool {
	if len(s.late) == 0 || s.active == cap(s.todo) {
		return false
	}
	s.start(s.late[0])
	s.late = s.late[1:]
	return true
}

// wait lets a row wait in a lane.
func (s *lanes) wait(l *lane, it *item, ns *leadNames) {
	s.name(l, ns.all())
	l.waiting = append(l.waiting, it)
	s.count(it, 1)
}

// first takes the next row out of a lane; nil: none waits.
func (s *lanes) first(l *lane) *item {
	if len(l.waiting) == 0 {
		return nil
	}
	it := l.waiting[0]
	l.waiting = l.waiting[1:]
	s.count(it, -1)
	return it
}

// putBack lets a row wait at the head of its lane again.
func (s *lanes) putBack(l *lane, it *item) {
	l.waiting = slices.Insert(l.waiting, 0, it)
	s.count(it, 1)
}

// putOff lets a lane wait, with this row before all others, for the end of the run.
func (s *lanes) putOff(l *lane, it *item) {
	s.putBack(l, it)
	s.late = append(s.late, l)
}

// end takes a lane down. What is known of its lead from reads that have begun by now is old. Rows that came from other
// lanes stay for drain.
func (s *lanes) end(l *lane, known *lookups) {
	if len(l.waiting) > 0 {
		return
	}
	for _, n := range l.names {
		delete(s.byName, n)
	}
	known.touch(l.names)
	s.recycle(l)
}

func (s *lanes) recycle(l *lane) {
	l.names, l.waiting = l.names[:0], nil
	s.spare = append(s.spare, l)
}

// count counts one row more, or one less, among those that wait.
func (s *lanes) count(it *item, one int) {
	s.waiting += one
	s.bytes += one * it.row.Size
}

// full says that no more rows may wait.
func (s *lanes) full() bool { return s.waiting >= maxWaiting || s.bytes >= maxWaitingBytes }

// drain takes all rows out that wait.
func (s *lanes) drain() (left []*item) {
	for _, l := range s.byName { // a lane may stand under several names
		for it := s.first(l); it != nil; it = s.first(l) {
			left = append(left, it)
		}
	}
	return left
}

// job is a row with its step, which a lane takes to its outcome.
type job struct {
	result // as far as it is known; its entry is what is known at first and what was settled in the end
	it     *item
	step   Step

	doubt        *ending               // Create: of the row, which was in doubt before; or nil
	enough       bool                  // the fleet may make no more leads
	elsewhere    bool                  // another worker had claimed its key, or made its lead, since it was looked up
	intended     bool                  // Create: the claim is durable; Update: the mark is
	linking      bool                  // the lead exists and has to be linked
	maybeApplied bool                  // Update: a try may have been applied, and nobody can tell
	pass         delivery.Pass         // Create: what it was sent with
	requestID    string                // Create: of its last attempt, where requests carry IDs
	request      leadapi.CreateRequest // room that the lane's next row uses again
	leadBefore   leadBefore            // Update: what was known of the lead
}

// begin is a row about to be carried.
func (j *job) begin(it *item, step Step, known *checkpoint.Entry) {
	*j = job{it: it, step: step, request: leadapi.CreateRequest{Content: j.request.Content}}
	j.entry = *known
	if step.Action == Create && known.State == checkpoint.InDoubt {
		held := heldBack(known)
		j.doubt = &held.ending
	}
	j.entry.Content = slices.Clone(known.Content) // look-ups use theirs again
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
