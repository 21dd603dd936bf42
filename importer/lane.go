package importer

import (
	"errors"
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// At most so many rows, or bytes of them, wait in lanes. When so many are put off, they are taken before more are read.
const maxWaiting, maxWaitingBytes = 1000, 64 << 20

// lanesPerPlace is how many lanes there are for each request that may be in flight: rows that wait for the checkpoint
// share commits. With two there are twice as many commits, and a row takes a seventh more processor time.
const lanesPerPlace = 4

// slotsPerPlace is how many rows may be claimed and not settled for each place in flight: in doubt after a kill.
const slotsPerPlace = 2

// lane is a lead under way. It is listed under every name that a row of this lead may have; these rows wait in it. When
// it is idle, it stays listed until the next look-up, which is the first that shows their outcomes.
type lane struct {
	waiting []*item
	idle    bool // it has no rows left, and no goroutine
	job     *job // the row that it carries; nil: the next one is not decided yet
}

// leadName is a name of a lead: its folded key (rows with similar keys wait for one another), its ID or its ExternalID.
type leadName struct {
	kind checkpoint.Match
	text string
}

// leadNames are all names of the row's lead, known or given: an earlier row may have one too. Dry runs have no lanes.
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
	ofLate    lane    // has the names of these rows: later rows with one of them are put off, too
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

// find is the lane where a row with these names has to wait, if there is any: a lane under way rather than an idle
// one. A row with a name of a late row, or of two lanes under way, waits with the late rows.
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

// name lists a lane under these names, and reports whether the lane had all of them before.
func (s *lanes) name(l *lane, names []leadName) (own bool) {
	own = true
	for _, n := range names {
		if s.byName[n] != l {
			s.byName[n], own = l, false
		}
	}
	return own
}

func (s *lanes) room() bool { return s.active < s.most }

// enqueue has a row wait for its turn in a lane, which then has these names, too.
func (s *lanes) enqueue(l *lane, it *item, names []leadName) {
	s.name(l, names)
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

// putOff has a row with these names, and all that come after it with one of them, wait until nothing is under way.
func (s *lanes) putOff(it *item, names []leadName) {
	s.name(&s.ofLate, names)
	it.late = true
	s.late, s.lateBytes = append(s.late, it), s.lateBytes+it.row.Size
}

func (s *lanes) count(it *item, one int) {
	s.waiting += one
	s.bytes += one * it.row.Size
}

func (s *lanes) full() bool { return s.waiting >= maxWaiting || s.bytes >= maxWaitingBytes }

// newJob makes the job of a row that is about to be carried, and counts it. From here on the row's outcome says what
// happened, not what is planned. It makes the digests, under the lock: carry plans again without it.
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

// start gives a lane a goroutine, if it can one whose lane has ended: its grown stack saves a 15th of processor time.
func (e *engine) start(l *lane, j *job) {
	l.idle, l.job = false, j
	e.lanes.active++
	select {
	case e.idle <- l:
	default:
		e.group.Go(func() {
			for goesOn := true; goesOn; l, goesOn = <-e.idle { // its rows one after another
				e.guarded(func() {
					for l.job != nil || e.next(l) {
						j := l.job
						whole := e.carry(j)
						if e.carried(l); whole { // else something may still hold it
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

// carried counts how a lane's row ended, or puts the row back or off.
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
	// The ledger refused the claim and knows more now: the row is decided once more, later if another worker holds it.
	if j.refusal != nil && !errors.Is(j.refusal, checkpoint.ErrEnough) && !j.second && e.stopped == nil {
		if j.second = true; errors.Is(j.refusal, checkpoint.ErrHeld) {
			e.lanes.putOff(j.item, e.leadNames(j.item))
		} else {
			l.waiting = slices.Insert(l.waiting, 0, j.item)
			e.lanes.count(j.item, 1)
		}
		return
	}
	if j.resends() && (j.outcome == Pending || j.outcome == Failed) {
		// it was not made now; the earlier send is still in doubt
		j.entry = j.before
		j.ending = inDoubtBefore(&j.entry).ending
	}
	// from now on it counts for this run; in a fleet no run before it counts then
	if e.Terms == nil && j.resends() && j.attempts > 0 && j.refusedAs == 0 {
		e.Limits.Standing--
	}
	j.remarks[serviceKept] = j.remarks[serviceKept] && j.outcome != Pending
	e.stop(e.collect(j.item, j.ending))
}

// next decides about the rows of a lane until one needs a request. It reports false if the lane has ended.
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
			e.stop(e.collect(it, unturned))
		default:
			l.job = e.newJob(it, step)
			return true
		}
	}
	l.idle = true
	return false
}

// lookAgain looks a row up when its turn comes, and once more if that shows a new name: another row may have changed
// that lead meanwhile. If another lane has one of the names, it puts the row off and reports false.
func (e *engine) lookAgain(l *lane, it *item) bool {
	for e.stopped == nil && e.lookUp(it) {
		names := e.leadNames(it)
		if other := e.lanes.find(names); other != nil && other != l && !other.idle {
			e.lanes.putOff(it, names)
			return false
		}
		if e.lanes.name(l, names) {
			break
		}
	}
	return true
}
