package importer

import (
	"cmp"
	"errors"
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// Reading waits while so many rows, or rows of so many bytes, wait for their turn, or while lanes have so many names.
const maxWaiting, maxWaitingBytes, mostNames = 1000, 64 << 20, 50_000

// lanesPerPlace is how many rows may be carried at once for each request that may be in flight. More rows share more
// commits: with two instead of four, a run makes twice as many commits and takes a seventh more processor time.
const lanesPerPlace = 4

// slotsPerPlace is how many rows may be claimed and not settled for each place in flight. A kill leaves them in doubt.
const slotsPerPlace = 2

// lane is a lead under way: its rows go one after another, in file order. It has all names of its rows, and keeps them
// until the next batch: later rows of this batch were looked up before its rows ended, so they join it, too. If a row
// has names of two lanes, the two become one, since a row of either may turn out to be of the other's lead.
type lane struct {
	waiting  []*item // in file order
	underWay int     // rows that have their turn; more than one only if lanes became one meanwhile
}

// lanes are the lanes of a run, and the goroutines that carry their rows. The engine's lock guards them.
type lanes struct {
	byName   map[leadName]*lane
	ready    []*item // rows that have their turn and wait for a goroutine, in file order
	most     int     // goroutines
	active   int     // goroutines that have rows
	underWay int     // rows that are being carried, or are not counted yet
	waiting  int     // rows that wait for their turn or for a goroutine
	bytes    int     // of these rows
}

// queued is what the lanes know of a row.
type queued struct {
	names  []leadName
	turn   bool // no other row of its lane goes before it any more
	aside  bool // it gets no turn until nothing is under way: others may settle it
	second bool // it was decided once, and waits to be decided again: there is no third time
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

func newLanes(places int) lanes { // one row at a time for one place: people who ask for that expect the input's order
	return lanes{byName: map[leadName]*lane{}, most: lanesPerPlace*(places-1) + 1}
}

func (s *lanes) full() bool { return s.waiting >= maxWaiting || s.bytes >= maxWaitingBytes }

// find returns the lane that has one of these names, or nil. If several lanes have one, it makes them one.
func (s *lanes) find(names []leadName) (l *lane) {
	for _, n := range names {
		switch other := s.byName[n]; {
		case other == nil, other == l:
		case l == nil:
			l = other
		default:
			for m, has := range s.byName {
				if has == other {
					s.byName[m] = l
				}
			}
			l.waiting, l.underWay = append(l.waiting, other.waiting...), l.underWay+other.underWay
			slices.SortFunc(l.waiting, inFileOrder)
		}
	}
	return l
}

// give gives a lane these names.
func (s *lanes) give(l *lane, names []leadName) {
	for _, n := range names {
		s.byName[n] = l
	}
}

// wait makes a row wait for its turn, in the lane of these names. If it has its turn, it gives that back.
func (s *lanes) wait(it *item, names []leadName) {
	if it.turn {
		s.byName[it.names[0]].underWay--
	}
	l := cmp.Or(s.find(slices.Concat(it.names, names)), new(lane))
	s.give(l, names)
	it.names, it.turn = names, false
	i, _ := slices.BinarySearchFunc(l.waiting, it, inFileOrder)
	l.waiting = slices.Insert(l.waiting, i, it)
	s.waiting, s.bytes = s.waiting+1, s.bytes+it.row.Size
	s.advance(l)
}

// leave takes a row that has ended out of its lane.
func (s *lanes) leave(it *item) {
	l := s.byName[it.names[0]]
	l.underWay--
	s.advance(l)
}

// advance gives the first row of a lane its turn if no row has it.
func (s *lanes) advance(l *lane) {
	if l.underWay > 0 || len(l.waiting) == 0 || l.waiting[0].aside {
		return
	}
	it := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	l.underWay, it.turn = 1, true
	i, _ := slices.BinarySearchFunc(s.ready, it, inFileOrder)
	s.ready = slices.Insert(s.ready, i, it)
}

// take returns the first row that waits for a goroutine.
func (s *lanes) take() *item {
	it := s.ready[0]
	s.ready = slices.Delete(s.ready, 0, 1)
	s.waiting, s.bytes = s.waiting-1, s.bytes-it.row.Size
	return it
}

func inFileOrder(a, b *item) int {
	return cmp.Or(cmp.Compare(a.input, b.input), cmp.Compare(a.row.Number, b.row.Number))
}

// newJob makes the job of a row that is about to be carried, and counts it. From here on, the row's outcome says what
// happened, not what is planned. The digests are made here, since carry may need them without the lock.
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

// start gives this job, or the next row that has its turn, a goroutine: one that has no rows any more, if there is one,
// for its grown stack.
func (e *engine) start(j *job) {
	e.lanes.active++
	select {
	case e.idle <- j:
	default:
		e.group.Go(func() {
			for goesOn := true; goesOn; j, goesOn = <-e.idle {
				e.guarded(func() {
					if j == nil {
						j = e.next()
					}
					for ; j != nil; j = e.next() { // row after row
						whole := e.carry(j)
						if e.carried(j); whole { // after a panic, something may still use it
							e.jobs.Put(j)
						}
					}
				})
				e.mu.Lock()
				e.lanes.active--
				e.spread()
				e.changed.Broadcast()
				e.mu.Unlock()
			}
		})
	}
}

// spread starts a goroutine if a row waits for one. That one starts the next.
func (e *engine) spread() {
	if e.stopped == nil && len(e.lanes.ready) > 0 && e.lanes.active < e.lanes.most {
		e.start(nil)
	}
}

// carried counts how a row has ended. If the ledger refused it, it waits for a second decision, but only once.
func (e *engine) carried(j *job) {
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
		j.second, j.aside = true, errors.Is(j.refusal, checkpoint.ErrOtherMaySend)
		e.lanes.wait(j.item, j.names)
		return
	}
	e.lanes.leave(j.item)
	if j.resends() && (j.outcome == Pending || j.outcome == Failed) {
		// this send made no lead, but the earlier send is still in doubt
		j.entry = j.before
		j.ending = inDoubtBefore(&j.entry).ending
	}
	// this run has sent it again: it is no doubt of an earlier run any more (in a fleet, Standing is always 0)
	if e.Terms == nil && j.resends() && j.attempts > 0 && j.refusedAs == 0 {
		e.Limits.Standing--
	}
	j.remarks[serviceKept] = j.remarks[serviceKept] && j.outcome != Pending
	e.stopLocked(e.collect(j.item, j.ending))
}

// next looks up rows that have their turn, and decides about them, until one needs a request. Without one it returns
// nil. If the look-up shows other names, the row waits under these: a row under way may be about to change that lead.
func (e *engine) next() *job {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.stopped == nil && len(e.lanes.ready) > 0 {
		it := e.lanes.take()
		e.spread()
		if e.lookUp(it) {
			if names := e.leadNames(it); !slices.Equal(names, it.names) {
				e.lanes.wait(it, names)
				continue
			}
		}
		step := e.plan(it)
		switch {
		case e.stopped == nil && !step.Action.needsLane():
			e.end(it, step)
			e.changed.Broadcast()
		case !e.waitFor(func() bool { return e.mayBegin(step.Action) }):
			e.lanes.ready = append(e.lanes.ready, it) // for endAll
		default:
			return e.newJob(it, step)
		}
	}
	return nil
}
