package importer

import (
	"cmp"
	"errors"
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// maxWaiting and maxWaitingBytes limit the rows that wait for their turn. When so many wait, reading waits, too.
const maxWaiting, maxWaitingBytes = 1000, 64 << 20

// lanesPerPlace is how many lanes there are for each request that may be in flight. More lanes let more rows share a
// commit: with two instead of four, a run makes twice as many commits and takes a seventh more processor time.
const lanesPerPlace = 4

// slotsPerPlace is how many rows may be claimed and not settled for each place in flight. A kill leaves them in doubt.
const slotsPerPlace = 2

// lanes are goroutines, each of which carries one row at a time, and the queues of rows that wait for one. A row is in
// a queue for each name of its lead, in file order, until it has ended. Its turn comes when it is first in all of them.
// So the rows of a lead go one after another, and a row waits only for earlier rows or for rows that have their turn.
// An emptied queue stays until the next batch: later rows of this batch were looked up before its rows ended, so they
// wait, too, and are looked up again. The engine's lock guards all this.
type lanes struct {
	queues   map[leadName][]*item
	ready    []*item // rows that have their turn and wait for a lane, in file order
	most     int     // lanes
	active   int     // lanes that have rows
	underWay int     // rows that are being carried, or are not counted yet
	waiting  int     // rows that wait for their turn or for a lane
	bytes    int     // of these rows
}

// queued is what the lanes know of a row.
type queued struct {
	names  []leadName
	turn   bool // no other row goes before it any more
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

func newLanes(places int) lanes {
	n := lanesPerPlace * places
	if places == 1 {
		n = 1 // people who ask for one at a time expect the order of the input
	}
	return lanes{queues: map[leadName][]*item{}, most: n}
}

func (s *lanes) full() bool { return s.waiting >= maxWaiting || s.bytes >= maxWaitingBytes }

// has reports whether a row with one of these names is in the lanes, or was when this batch was looked up, or since.
func (s *lanes) has(names []leadName) bool {
	return slices.ContainsFunc(names, func(n leadName) bool { return s.queues[n] != nil })
}

// enter puts a row into its queues: before later rows of the file, unless they have their turn.
func (s *lanes) enter(it *item) {
	for _, n := range it.names {
		q := s.queues[n]
		i := len(q)
		for i > 0 && !q[i-1].turn && inFileOrder(it, q[i-1]) < 0 {
			i--
		}
		s.queues[n] = slices.Insert(q, i, it)
	}
}

func (s *lanes) remove(it *item) {
	for _, n := range it.names {
		if i := slices.Index(s.queues[n], it); i >= 0 {
			s.queues[n] = slices.Delete(s.queues[n], i, i+1)
		}
	}
}

// wait makes a row wait for its turn under these names. If it had its turn, it gives that back.
func (s *lanes) wait(it *item, names []leadName) {
	before := it.names
	s.remove(it)
	it.names, it.turn = names, false
	s.enter(it)
	s.waiting++
	s.bytes += it.row.Size
	s.advance(slices.Concat(before, names))
}

// leave takes a row that has ended out of its queues.
func (s *lanes) leave(it *item) {
	s.remove(it)
	s.advance(it.names)
}

// advance gives the first rows of these queues their turn, if they are first in all their queues.
func (s *lanes) advance(names []leadName) {
	for _, n := range names {
		q := s.queues[n]
		behind := func(n leadName) bool { return s.queues[n][0] != q[0] }
		if len(q) > 0 && !q[0].turn && !q[0].aside && !slices.ContainsFunc(q[0].names, behind) {
			q[0].turn = true
			i, _ := slices.BinarySearchFunc(s.ready, q[0], inFileOrder)
			s.ready = slices.Insert(s.ready, i, q[0])
		}
	}
}

// take returns the first row that waits for a lane.
func (s *lanes) take() *item {
	it := s.ready[0]
	s.ready = slices.Delete(s.ready, 0, 1)
	s.waiting--
	s.bytes -= it.row.Size
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

// start begins a lane: with this job, or with the next row that has its turn. A goroutine whose own lane has ended is
// used again, for its grown stack.
func (e *engine) start(j *job) {
	e.lanes.active++
	select {
	case e.idle <- j:
	default:
		e.group.Go(func() {
			for goesOn := true; goesOn; j, goesOn = <-e.idle { // lane after lane
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

// spread begins a lane if a row waits for one. That lane begins the next.
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

// next looks up rows that have their turn, and decides about them, until one needs a lane. Without one it returns nil.
// If the look-up shows other names, the row waits under these: a row under way may be about to change that lead.
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
			e.stopLocked(e.collect(it, notReached))
		default:
			return e.newJob(it, step)
		}
	}
	return nil
}
