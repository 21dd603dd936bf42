package importer

import (
	"errors"
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// maxWaiting and maxWaitingBytes limit the rows that wait in lanes. When so many are put off, they go before new rows.
const maxWaiting, maxWaitingBytes = 1000, 64 << 20

// lanesPerPlace is how many lanes there are for each request that may be in flight. With more lanes, more rows share a
// commit: two instead of four take twice as many commits, and a seventh more processor time for a row.
const lanesPerPlace = 4

// slotsPerPlace is how many rows may be claimed and not settled for each place in flight. A kill leaves them in doubt.
const slotsPerPlace = 2

// lane is a lead under way, with its waiting rows. It is listed under every name of its rows. An idle lane stays listed
// until the next batch is looked up, because only that look-up shows how its rows ended.
type lane struct {
	waiting []*item
	idle    bool // no row is left, and no goroutine
	job     *job // the row under way; nil: the next row is not decided yet
}

// leadName is a name of a lead: its folded key (rows with similar keys wait for one another), its ID or its ExternalID.
type leadName struct {
	kind checkpoint.Match
	text string
}

// leadNames returns all names of the row's lead, from the row and the checkpoint. It returns none in a dry run.
func (r *run) leadNames(it *item) []leadName {
	if r.sender == nil {
		return nil
	}
	rec, known := &it.rec, &it.entry
	names := []leadName{{checkpoint.ByKey, rowkey.Fold(known.Key)}}
	for _, key := range []string{rec.Key, it.row.FormerKey} {
		if key != known.Key && key != "" {
			names = append(names, leadName{checkpoint.ByKey, rowkey.Fold(key)})
		}
	}
	if r.matches && rec.LeadID != "" && rec.LeadID != known.LeadID {
		names = append(names, leadName{checkpoint.ByLeadID, rec.LeadID})
	}
	if rec.ExternalID != "" {
		names = append(names, leadName{checkpoint.ByExternalID, rec.ExternalID})
	}
	return names
}

// lanes are the lanes of a run. The engine's lock guards them.
type lanes struct {
	byName    map[leadName]*lane
	late      []*item // rows that wait until nothing is under way
	lateBytes int     // of these rows
	ofLate    lane    // never runs; its names are those of late rows, so later rows with one of them are put off, too
	most      int     // lanes that may be active
	active    int     // lanes that have a goroutine
	underWay  int     // rows that are being carried, or are not counted yet
	waiting   int     // rows that wait
	bytes     int     // of these rows
}

func newLanes(places int) lanes {
	n := lanesPerPlace * places
	if places == 1 {
		n = 1 // people who ask for one at a time expect the order of the input
	}
	return lanes{byName: map[leadName]*lane{}, most: n}
}

// find returns the lane in which a row with these names has to wait, or nil. A lane under way comes before an idle one.
// A row that has a name of a late row, or names of two lanes under way, waits with the late rows.
func (s *lanes) find(names []leadName) (l *lane) {
	for _, n := range names {
		switch other := s.byName[n]; {
		case other == nil, other == l, l != nil && other.idle:
		case l == nil, l.idle:
			l = other
		default:
			return &s.ofLate
		}
	}
	return l
}

// addNames lists a lane under these names, and reports whether the lane had all of them before.
func (s *lanes) addNames(l *lane, names []leadName) (own bool) {
	own = true
	for _, n := range names {
		if s.byName[n] != l {
			s.byName[n], own = l, false
		}
	}
	return own
}

func (s *lanes) room() bool { return s.active < s.most }

// enqueue makes a row wait for its turn in a lane. From then on the lane has the names of the row, too.
func (s *lanes) enqueue(l *lane, it *item, names []leadName) {
	s.addNames(l, names)
	l.waiting = append(l.waiting, it)
	s.count(it, 1)
}

func (s *lanes) first(l *lane) *item {
	if len(l.waiting) == 0 {
		return nil
	}
	it := l.waiting[0]
	l.waiting = l.waiting[1:]
	s.count(it, -1)
	return it
}

// putOff makes a row wait until nothing is under way. Later rows that share one of its names wait, too.
func (s *lanes) putOff(it *item, names []leadName) {
	s.addNames(&s.ofLate, names)
	it.late = true
	s.late, s.lateBytes = append(s.late, it), s.lateBytes+it.row.Size
}

func (s *lanes) count(it *item, one int) {
	s.waiting += one
	s.bytes += one * it.row.Size
}

func (s *lanes) full() bool { return s.waiting >= maxWaiting || s.bytes >= maxWaitingBytes }

// newJob makes the job of a row that is about to be carried, and counts it. From here on, the row's outcome says what
// happened, not what is planned. The digests are made here, under the lock: carry decides again without the lock.
func (e *engine) newJob(it *item, step Step) *job {
	e.lanes.underWay++
	if step.Action.requests() {
		it.requestDigest(e.digests)
		it.contentDigests(e.digests)
	}
	if step.Action == Create {
		e.limiter.creates++
	}
	it.outcome, it.remarks, it.found = Pending, step.remarks, step.found
	j := e.jobs.Get().(*job)
	*j = job{item: it, step: step, before: it.entry, durable: it.entry, change: j.change, pass: j.pass, request: j.request}
	return j
}

// start gives a lane a goroutine (carry, carried for each row): one whose lane has ended, if any, for its grown stack.
func (e *engine) start(l *lane, j *job) {
	l.idle, l.job = false, j
	e.lanes.active++
	select {
	case e.idle <- l:
	default:
		e.group.Go(func() {
			for goesOn := true; goesOn; l, goesOn = <-e.idle { // lane after lane
				e.guarded(func() {
					for l.job != nil || e.next(l) { // row after row
						j := l.job
						whole := e.carry(j)
						if e.carried(l); whole { // after a panic, something may still use it
							e.jobs.Put(j)
						}
					}
				})
				e.mu.Lock()
				e.lanes.active--
				e.changed.Broadcast()
				e.mu.Unlock()
			}
		})
	}
}

// carried counts how the row of a lane has ended. If the ledger refused it, the row goes back or is put off, once.
func (e *engine) carried(l *lane) {
	j := l.job
	l.job = nil
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.changed.Broadcast()
	e.lanes.underWay--
	if j.step.Action == Create {
		e.limiter.created(j.item, j.refusal != nil)
	}
	e.limiter.enough = e.limiter.enough || errors.Is(j.refusal, checkpoint.ErrEnough)
	// the ledger knew more than the last look-up: decide once more, but later if another worker holds the row
	if j.refusal != nil && !errors.Is(j.refusal, checkpoint.ErrEnough) && !j.second && e.stopped == nil {
		if j.second = true; errors.Is(j.refusal, checkpoint.ErrOtherMaySend) {
			e.lanes.putOff(j.item, e.leadNames(j.item))
		} else {
			l.waiting = slices.Insert(l.waiting, 0, j.item)
			e.lanes.count(j.item, 1)
		}
		return
	}
	if j.resends() && (j.outcome == Pending || j.outcome == Failed) {
		// this send made no lead, but the earlier send is still in doubt
		j.entry = j.before
		j.ending = inDoubtBefore(&j.entry).ending
	}
	// from now on the row counts as a doubt of this run, not of an earlier one; in a fleet Standing is 0 then
	if e.Terms == nil && j.resends() && j.attempts > 0 && j.refusedAs == 0 {
		e.Limits.Standing--
	}
	j.remarks[serviceKept] = j.remarks[serviceKept] && j.outcome != Pending
	e.stopLocked(e.collect(j.item, j.ending))
}

// next decides about the rows of a lane until one needs a request. It returns false if the lane has no more rows.
func (e *engine) next(l *lane) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for it := e.lanes.first(l); it != nil; it = e.lanes.first(l) {
		if !e.lookAgain(l, it) {
			continue
		}
		step := e.plan(it)
		switch {
		case e.stopped == nil && step.Action == Nothing:
			e.end(it, step)
			e.changed.Broadcast()
		case !e.waitFor(func() bool { return e.mayBegin(step.Action) }):
			e.stopLocked(e.collect(it, notReached))
		default:
			l.job = e.newJob(it, step)
			return true
		}
	}
	l.idle = true
	return false
}

// lookAgain looks a row up when its turn comes, and again while that shows new names: a row of another lane may have
// changed that lead meanwhile. If another lane has one of the names, lookAgain puts the row off and returns false.
func (e *engine) lookAgain(l *lane, it *item) bool {
	for e.stopped == nil && e.lookUp(it) {
		names := e.leadNames(it)
		if other := e.lanes.find(names); other != nil && other != l && !other.idle {
			e.lanes.putOff(it, names)
			return false
		}
		if e.lanes.addNames(l, names) {
			break
		}
	}
	return true
}
