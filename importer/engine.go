package importer

import (
	"context"
	"errors"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/crash"
)

// engine takes every row to its outcome. The dispatcher, one goroutine, decides about rows in file order. A row for which
// nothing is to be sent ends there; another one begins a lane, or waits in the lane of its lead. A lane, a goroutine of a
// pool, carries its rows one after another. One lock guards the decisions, the lanes and the collector; nobody holds it
// while waiting for the checkpoint or the service.
type engine struct {
	options  *Options
	planner  Planner
	intake   *intake
	lookups  *lookups
	carrier  *carrier // nil where nothing is sent
	phases   *phases
	member   *member         // nil: the run is no worker of a fleet
	asking   context.Context // ends with the first signal: nobody waits for what a checkpoint that is away knows of rows that will not leave
	progress func()          // tells how far the run is
	sample   func()          // notes it for the timeline

	mu        sync.Mutex
	changed   sync.Cond // a row or a lane has ended, or the run ends
	collector *collector
	lanes     lanes
	allRead   bool  // no more rows come
	clears    int   // rows that would take an ExternalID from their lead
	faulty    bool  // the program itself failed at a row, which has no outcome yet
	stopped   *Stop // why the run ends before its input
}

// run takes every row to its outcome and returns why it ended before the input did, or nil. Nothing is in flight then.
func (e *engine) run(ctx context.Context) *Stop {
	e.changed.L = &e.mu
	var group sync.WaitGroup
	defer group.Wait()
	defer e.phases.sendNoMore()
	if e.options.LetGo != nil {
		defer context.AfterFunc(e.phases.taking, e.options.LetGo)()
	}
	asking, askNoMore := context.WithCancel(e.phases.taking)
	defer askNoMore()
	e.asking = asking
	group.Go(func() {
		select {
		case <-e.options.Interrupt:
			askNoMore()
		case <-asking.Done():
		}
	})
	most := e.lookupRows()
	read, known := make(chan *batch, most/batchRows), make(chan *lookup)
	group.Go(func() { e.intake.run(e.phases.taking, read) })
	group.Go(func() { e.lookups.follow(asking, e.phases.taking, read, most, known) })
	defer close(e.lanes.todo)
	for range cap(e.lanes.todo) {
		group.Go(func() {
			for l := range e.lanes.todo {
				e.guarded(1, func() { e.carry(ctx, l) })
			}
		})
	}
	ended := make(chan struct{})
	group.Go(func() {
		defer close(ended)
		e.guarded(0, func() { e.dispatch(known) })
		e.end()
	})
	e.watch(ctx, ended)
	return e.stopped
}

// guarded lets a fault of the program, in so many lanes, end the run in order.
func (e *engine) guarded(lanes int, f func()) {
	if err := crash.Call(func() error { f(); return nil }); err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.lanes.active -= lanes
		e.faulty = true
		e.stop(crashed(err))
	}
}

// lookupRows is how many rows are looked up in one read, where so many are there: it may be a round trip, and is one for the
// workers of a fleet.
func (e *engine) lookupRows() int {
	if e.member != nil {
		return 8 * batchRows
	}
	return 4 * batchRows
}

// watch looks at clock, signals and fleet until all rows have ended.
func (e *engine) watch(ctx context.Context, ended <-chan struct{}) {
	var deadline <-chan time.Time
	if d := e.options.MaxDuration; d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		deadline = timer.C
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for interrupt, done := e.options.Interrupt, ctx.Done(); ; {
		select {
		case <-ended:
			return
		case <-interrupt:
			interrupt = nil
			e.halt(interrupted())
		case <-done:
			done = nil
			e.halt(interrupted())
		case <-deadline:
			e.outOfTime()
		case stop := <-e.member.over():
			e.halt(stop)
		case <-tick.C:
			e.tell()
		}
	}
}

func (e *engine) tell() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress()
	e.member.note(e.collector.tally)
}

// outOfTime takes no more rows and finishes the leads that were made. There is nothing to stop where every row has had its turn.
func (e *engine) outOfTime() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped != nil || e.allRead && e.lanes.waiting == 0 {
		return
	}
	e.stopped = &Stop{Reason: "the time given by --max-duration is over", Code: CodeAttention}
	e.phases.takeNoMore()
	e.changed.Broadcast()
}

// halt is stop for whoever does not hold the lock.
func (e *engine) halt(why *Stop) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop(why)
}

// stop makes the run end in order, unless why is nil: nothing more is read or sent, what is in flight is waited for. The
// first reason stands, unless another says more by its exit code.
func (e *engine) stop(why *Stop) {
	if why == nil {
		return
	}
	if e.stopped == nil || why.outranks(e.stopped.Code) {
		e.stopped = why
	}
	e.phases.sendNoMore()
	e.changed.Broadcast()
}

// failed ends the run where the checkpoint could not be asked. Nobody waits for its answer once the run ends.
func (e *engine) failed(err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, context.Canceled):
		if e.stopped == nil {
			e.stop(interrupted())
		}
	default:
		e.stop(ledgerFailed(err))
	}
	return true
}

// dispatch decides about all rows, and lets those that were put off have their turn at last.
func (e *engine) dispatch(batches <-chan *lookup) {
	var end error
	for b := range batches {
		if end = b.end; !e.takeBatch(b) || end != nil {
			break
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.allRead = true
	for e.stopped == nil && e.lanes.active > 0 {
		e.changed.Wait()
	}
	for e.stopped == nil && (e.lanes.active > 0 || len(e.lanes.late) > 0) {
		if !e.lanes.startLate() {
			e.changed.Wait()
		}
	}
	if end != nil {
		e.stop(inputEnded(end))
	}
}

// takeBatch decides about rows that were looked up, and reports false where the run ends.
func (e *engine) takeBatch(b *lookup) bool {
	if !e.begin(b) {
		return false
	}
	for i := range b.items {
		if !e.take(b, i) {
			return false
		}
	}
	return true
}

func (e *engine) begin(b *lookup) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped != nil || e.failed(b.failed) {
		return false
	}
	e.lookups.turn(b)
	e.sample()
	return true
}

// take decides about a row: it ends, joins the lane of its lead, or begins one. It reports false, and has not taken the
// row, where the run ends.
func (e *engine) take(b *lookup, i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	it := b.items[i]
	if e.stopped != nil {
		return false
	}
	if how := it.left(); how != nil {
		e.collector.read(it, &b.known[i])
		e.stop(e.collector.end(it, result{ending: *how}))
		return true
	}
	c := e.lookups.caseOf(b, i)
	for {
		ns := e.lookups.names(c)
		l, two := e.lanes.find(&ns)
		switch {
		case two || l != nil && e.lanes.full():
			if !e.lanes.startLate() {
				e.changed.Wait()
			}
		case l != nil:
			e.collector.read(it, c.Known)
			e.lanes.wait(l, it, &ns)
			return true
		case e.lookups.stale(&ns, b):
			if b = new(lookup); e.failed(e.lookAgain(b, it)) {
				return false
			}
			c = e.lookups.caseOf(b, 0)
		default:
			return e.plan(c, &ns)
		}
		if e.stopped != nil {
			return false
		}
	}
}

// lookAgain asks what the checkpoint knows of a row now. Others go on meanwhile.
func (e *engine) lookAgain(a *lookup, it *item) error {
	e.lookups.open(a, it)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.lookups.close(a)
	}()
	return e.lookups.ask(e.asking, a)
}

// plan takes a row that no lane holds to its end, or begins a lane with it.
func (e *engine) plan(c *Case, ns *leadNames) bool {
	it := c.it
	step := e.planner.Plan(c)
	switch {
	case e.collector.dry != nil:
		e.collector.read(it, c.Known)
		e.stop(e.collector.foresee(it, &step, c.Known))
		return true
	case e.putsOff(it, &step):
		e.collector.read(it, c.Known)
		e.lanes.putOff(e.lanes.begin(ns), it)
		return true
	case step.Action == Nothing:
		e.collector.read(it, c.Known)
		e.stop(e.collector.end(it, result{ending: step.ending, entry: *c.Known}))
		return true
	}
	l := e.lanes.begin(ns)
	if !e.mayLeave(step.Action, 1) {
		e.lanes.end(l, e.lookups) // rows of other lanes may wait in it by now
		return false
	}
	e.collector.read(it, c.Known)
	e.hand(l, c, step)
	e.lanes.start(l)
	return true
}

// mayLeave waits until a row may leave, in so many more lanes, and reports false where the run ends before.
func (e *engine) mayLeave(a Action, lanes int) bool {
	for e.stopped == nil {
		if e.lanes.active+lanes <= cap(e.lanes.todo) {
			may, why := e.collector.tally.mayLeave(a, e.lanes.underWay)
			if e.stop(why); may || why != nil {
				return may
			}
		}
		e.changed.Wait()
	}
	return false
}

// hand gives a row to a lane, which carries it next.
func (e *engine) hand(l *lane, c *Case, step Step) {
	e.lanes.underWay++
	if step.Action.sends() {
		if e.options.Sends != nil {
			e.options.Sends()
		}
		c.digests.ofRequest(c.it)
		c.digests.ofContent(c.it)
	}
	if step.Action == Create {
		e.collector.tally.creates.begun++
	}
	l.job.begin(c.it, step, c.Known)
	l.planned = true
}

// carry takes the rows of a lane to their outcomes, one after another.
func (e *engine) carry(ctx context.Context, l *lane) {
	for l.planned || e.next(l) {
		l.planned = false
		e.carrier.carry(ctx, &l.job)
		if !e.settled(l) {
			return
		}
	}
}

// settled takes down how a lane's row ended, and reports false where the lane is put off.
func (e *engine) settled(l *lane) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.changed.Broadcast()
	j := &l.job
	e.lanes.underWay--
	tally := e.collector.tally
	if j.step.Action == Create {
		tally.created(&j.result, j.elsewhere)
	}
	tally.creates.enough = tally.creates.enough || j.enough
	if held := ends(InDoubt, ""); j.elsewhere && e.putsOff(j.it, &held) {
		e.lanes.active--
		e.lanes.putOff(l, j.it)
		return false
	}
	if j.doubt != nil && (j.outcome == Pending || j.outcome == Failed) { // that it was not made this time says nothing of the time before
		j.ending = *j.doubt
	}
	if j.doubt != nil && j.attempts > 0 { // from now on it counts as one of this run
		tally.limits.Standing--
	}
	j.kept = j.step.kept && j.entry.Seen.Kept && (j.outcome == Unchanged || j.outcome == Updated)
	e.stop(e.collector.add(j.it, &j.result))
	return true
}

// next decides about the rows that wait in a lane, up to the first one that is to be carried. It reports false when there is
// none: the lane has ended, waits for the end of the run, or has become one with another.
func (e *engine) next(l *lane) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		it := e.lanes.first(l)
		switch {
		case it == nil:
			e.lanes.active--
			e.lanes.end(l, e.lookups)
			e.changed.Broadcast()
			return false
		case e.stopped != nil:
			e.unturned(it)
			continue
		}
		if e.failed(e.lookAgain(&l.again, it)) {
			e.unturned(it)
			continue
		}
		c := e.lookups.caseOf(&l.again, 0)
		ns := e.lookups.names(c)
		switch other := e.lanes.meet(l, &ns); {
		case e.lookups.stale(&ns, &l.again):
			e.lanes.putBack(l, it)
			continue
		case other != nil:
			e.lanes.putBack(l, it)
			e.lanes.active--
			e.lanes.merge(l, other)
			e.changed.Broadcast()
			return false
		}
		step := e.planner.Plan(c)
		switch {
		case e.putsOff(it, &step):
			e.lanes.active--
			e.lanes.putOff(l, it)
			e.changed.Broadcast()
			return false
		case step.Action == Nothing:
			e.stop(e.collector.end(it, result{ending: step.ending, entry: *c.Known}))
			e.changed.Broadcast()
		case !e.mayLeave(step.Action, 0):
			e.unturned(it)
		default:
			e.hand(l, c, step)
			return true
		}
	}
}

// unturned ends a row that was read and never had its turn.
func (e *engine) unturned(it *item) {
	e.stop(e.collector.end(it, result{ending: ending{outcome: Pending, text: "the run stopped before its turn"}}))
}

// mostLate is how many leads may wait for the end of the run; a worker holds few claims when it is replaced.
const mostLate = 1000

// putsOff reports whether a row is put off to the end of the run, which happens once. A row that would take an ExternalID from
// its lead is, while few do: when it has its turn, all rows were read, unless a thousand others wait behind it. In a fleet a
// row in doubt is, too: another worker may still learn what became of it.
func (e *engine) putsOff(it *item, step *Step) bool {
	clears := step.Action == Update && step.Send.ExternalID && it.rec.Unlinks && e.options.MaxClears > 0
	doubts := step.Action == Nothing && step.outcome == InDoubt && e.member != nil && len(e.lanes.late) < mostLate
	if !clears && !doubts || it.late || e.stopped != nil {
		return false
	}
	it.late = true
	if clears {
		e.clears++
	}
	if clears && e.clears > e.options.MaxClears {
		e.stop(tooManyClears(e.options.MaxClears))
	}
	return true
}

// end waits for what is under way, and ends the rows that never had their turn.
func (e *engine) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.lanes.active > 0 {
		e.changed.Wait()
	}
	if e.collector.tally.creates.enough {
		e.stop(ledgerFailed(checkpoint.ErrEnough))
	}
	for _, it := range e.lanes.drain() {
		e.unturned(it)
	}
	if e.faulty {
		e.collector.tally.makeUp()
	}
}
