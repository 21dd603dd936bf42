package importer

import (
	"context"
	"errors"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/crash"
)

// scheduler takes every row to its outcome, in one goroutine: it reads batches that were looked up, plans, keeps the rows
// of a lead in order, hands rows to the carriers and takes back what became of them.
type scheduler struct {
	options  *Options
	planner  Planner
	intake   *intake
	lookups  *lookups
	queues   *leadQueues
	carriers *carriers
	phases   *phases
	account  *account
	member   *member // nil: the run is no worker of a fleet
	progress func()  // tells how far the run is
	sample   func()  // notes it for the timeline

	asking    context.Context // ends with the first signal: nobody waits for what a checkpoint that is away knows of rows that will not leave
	batches   <-chan *lookup  // nil once no more rows come
	batch     *lookup         // that is planned, or nil
	late      lateRows
	inputStop *Stop // the input could not be read to its end, or nil
	stopped   *Stop // why the run ends before its input
}

// run takes every row to its outcome and returns why it ended before the input did, or nil.
// Nothing is in flight then. carry is nil where nothing is sent.
func (s *scheduler) run(ctx context.Context, carry func(context.Context, *job)) *Stop {
	if s.options.LetGo != nil {
		defer context.AfterFunc(s.phases.taking, s.options.LetGo)()
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer s.phases.sendNoMore()
	most := s.lookupRows()
	read, known := make(chan *batch, most/batchRows), make(chan *lookup)
	group.Go(func() { s.intake.run(s.phases.taking, read) })
	asking, askNoMore := context.WithCancel(s.phases.taking)
	defer askNoMore()
	s.asking = asking
	group.Go(func() {
		select {
		case <-s.options.Interrupt:
			askNoMore()
		case <-asking.Done():
		}
	})
	group.Go(func() { s.lookups.follow(asking, s.phases.taking, read, most, known) })
	s.batches = known
	defer close(s.carriers.todo)
	if carry != nil {
		s.carriers.start(&group, func(j *job) { carry(ctx, j) })
	}
	if err := crash.Call(func() error { s.loop(ctx); return nil }); err != nil {
		s.stop(crashed(err))
		s.loop(ctx) // what is under way is waited for
		s.account.tally.makeUp()
	}
	return s.stopped
}

// lookupRows is how many rows are looked up in one read, where so many are there: it may be a round trip, and is one for the
// workers of a fleet.
func (s *scheduler) lookupRows() int {
	if s.member != nil {
		return 8 * batchRows
	}
	return 4 * batchRows
}

func (s *scheduler) loop(ctx context.Context) {
	var deadline <-chan time.Time
	if d := s.options.MaxDuration; d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		deadline = timer.C
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !s.finished() {
		s.wait(ctx, deadline, tick.C)
	}
	s.stop(s.inputStop)
	if s.account.tally.creates.enough {
		s.stop(ledgerFailed(checkpoint.ErrEnough))
	}
	for _, it := range s.drain() {
		s.stop(s.account.end(it, result{ending: ending{outcome: Pending, text: "the run stopped before its turn"}}))
	}
}

// finished takes rows as far as they can go now, and reports whether none is left to wait for.
func (s *scheduler) finished() bool {
	for s.advance() {
		select {
		case j := <-s.carriers.done:
			s.count(j)
		default:
		}
	}
	switch {
	case s.carriers.out() > 0, s.stopped == nil && !s.exhausted():
		return false
	case s.stopped == nil && len(s.late.items) > 0:
		s.lookAgain()
		return s.finished()
	}
	return true
}

// exhausted says that every row has had its turn.
func (s *scheduler) exhausted() bool { return s.batches == nil && s.batch == nil && s.queues.empty() }

// wait blocks until something happens that may let rows go on.
func (s *scheduler) wait(ctx context.Context, deadline, tick <-chan time.Time) {
	batches, interrupt, done, fleet := s.batches, s.options.Interrupt, ctx.Done(), s.member.over()
	if s.batch != nil {
		batches = nil
	}
	if s.stopped != nil {
		batches, deadline = nil, nil
		if s.stopped.Code == CodeInterrupted {
			interrupt, done = nil, nil
		}
	}
	select {
	case j := <-s.carriers.done:
		s.count(j)
	case b, more := <-batches:
		s.turn(b, more)
	case <-interrupt:
		s.stop(interrupted())
	case <-done:
		s.stop(interrupted())
	case <-deadline:
		s.outOfTime()
	case stop := <-fleet:
		s.stop(stop)
	case <-tick:
		s.progress()
		s.member.note(s.account.tally)
	}
}

// stop makes the run end in order, unless why is nil: nothing more is read or sent, what is in flight
// is waited for. The first reason stands, unless another says more by its exit code.
func (s *scheduler) stop(why *Stop) {
	if why == nil {
		return
	}
	if s.stopped == nil || why.outranks(s.stopped.Code) {
		s.stopped = why
	}
	s.phases.sendNoMore()
}

// outOfTime takes no more rows and finishes the leads that were made. There is nothing
// to stop where every row has had its turn.
func (s *scheduler) outOfTime() {
	if s.exhausted() && len(s.late.items) == 0 || s.stopped != nil {
		return
	}
	s.stopped = &Stop{Reason: "the time given by --max-duration is over", Code: CodeAttention}
	s.phases.takeNoMore()
}

// failed ends the run where the checkpoint could not be asked.
func (s *scheduler) failed(err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, context.Canceled):
		s.stop(interrupted())
	default:
		s.stop(ledgerFailed(err))
	}
	return true
}

// turn goes on to a batch that was looked up.
func (s *scheduler) turn(b *lookup, more bool) {
	if !more {
		s.batches = nil
		return
	}
	if s.failed(b.failed) {
		return
	}
	s.batch = b
	s.lookups.turn(b)
	s.sample()
}

// advance takes one row a step further and reports false when none can go on now.
func (s *scheduler) advance() bool {
	switch b := s.batch; {
	case s.stopped != nil:
		return false
	case len(s.queues.ready) > 0:
		return s.advanceReady()
	case b == nil:
		return false
	case b.at < len(b.items):
		return s.approach(b)
	case b.end != nil:
		s.inputStop = inputEnded(b.end) // no more rows come; those before it have their turn
	}
	s.batch = nil
	return false
}

// approach takes the next row of a batch to its lead: behind the rows that came before it, or into its plan.
func (s *scheduler) approach(b *lookup) bool {
	it := b.items[b.at]
	if how := it.left(); how != nil {
		s.accept()
		s.stop(s.account.end(it, result{ending: *how}))
		return true
	}
	c := s.lookups.caseOf(b, b.at)
	ns := s.lookups.names(c)
	l := s.queues.find(&ns)
	if l == nil && s.lookups.touched.has(&ns) {
		var err error
		if c, err = s.lookups.fresh(s.asking, it); s.failed(err) {
			return false
		}
		ns = s.lookups.names(c)
		l = s.queues.find(&ns)
	}
	switch {
	case s.late.behind(it, &ns):
		s.accept()
		s.late.add(it, &ns)
		return true
	case l == nil:
		return s.plan(c, &ns, false)
	case s.queues.full():
		return false
	}
	s.accept()
	s.queues.park(it, l, &ns)
	return true
}

// advanceReady goes on with a row that waited for its queue.
func (s *scheduler) advanceReady() bool {
	it := s.queues.ready[0]
	c, err := s.lookups.fresh(s.asking, it)
	if s.failed(err) {
		return false
	}
	ns := s.lookups.names(c)
	switch {
	case s.late.behind(it, &ns): // the row before it was put off
		s.queues.leave(it)
		s.late.add(it, &ns)
	case !s.queues.rejoin(it, &ns) && !s.plan(c, &ns, true):
		return false
	}
	s.queues.ready = s.queues.ready[1:]
	return true
}

// accept counts the batch's next row as read: from here on it must end in an outcome.
func (s *scheduler) accept() {
	b := s.batch
	s.account.read(b.items[b.at], &b.known[b.at])
	b.at++
}

// plan asks the planner and acts on its step; false means that the row cannot go
// on now, and has not been taken. waited says that it had to wait in its queue.
func (s *scheduler) plan(c *Case, ns *leadNames, waited bool) bool {
	it := c.it
	step := s.planner.Plan(c)
	switch {
	case s.account.dry != nil:
		s.accept()
		s.stop(s.account.foresee(it, &step, c.Known))
		return true
	case step.Action == Nothing:
		if waited {
			s.queues.leave(it)
		} else {
			s.accept()
		}
		if step.outcome != InDoubt || !s.putOff(it, ns) {
			s.stop(s.account.end(it, result{ending: step.ending, entry: *c.Known}))
		}
		return true
	case !s.carriers.free():
		return false
	}
	if may, why := s.account.tally.mayLeave(step.Action, s.carriers.out()); !may {
		s.stop(why)
		return false
	}
	if !waited {
		s.accept()
		s.queues.enter(it, ns)
	}
	s.hand(c, step, ns)
	return true
}

// hand gives a row to a carrier.
func (s *scheduler) hand(c *Case, step Step, ns *leadNames) {
	s.lookups.touch(ns)
	if step.Action.sends() {
		if s.options.Sends != nil {
			s.options.Sends()
		}
		c.digests.ofRequest(c.it)
		c.digests.ofContent(c.it)
	}
	if step.Action == Create {
		s.account.tally.creates.begun++
	}
	s.carriers.hand(c.it, step, c.Known, ns)
}

// count takes a row back from its carrier and lets the next one of its lead go on.
func (s *scheduler) count(j *job) {
	s.carriers.counted(j)
	s.lookups.touch(&j.names)
	s.queues.leave(j.it)
	if j.step.Action == Create {
		s.account.tally.created(&j.result, j.elsewhere)
	}
	s.account.tally.creates.enough = s.account.tally.creates.enough || j.enough
	if j.elsewhere && s.putOff(j.it, &j.names) {
		return
	}
	if j.doubt != nil && (j.outcome == Pending || j.outcome == Failed) { // that it was not made this time says nothing of the time before
		j.ending = *j.doubt
	}
	if j.doubt != nil && j.attempts > 0 { // from now on it counts as one of this run
		s.account.tally.limits.Standing--
	}
	j.kept = j.step.kept && j.entry.Seen.Kept && (j.outcome == Unchanged || j.outcome == Updated)
	s.stop(s.account.add(j.it, &j.result))
	s.stop(j.stop)
}

// putOff puts a row off to the end of the run, once, where the run is a worker of a fleet.
func (s *scheduler) putOff(it *item, ns *leadNames) bool {
	if s.member == nil || it.late || len(s.late.items) >= mostLate || s.stopped != nil {
		return false
	}
	s.late.add(it, ns)
	return true
}

// lookAgain has the rows that were put off come once more.
func (s *scheduler) lookAgain() {
	again := new(lookup)
	if s.lookups.look(s.asking, again, s.late.items); again.failed == nil {
		s.late = lateRows{}
	}
	s.turn(again, true)
}

// drain takes all rows out that were read and never had their turn: those that were put off may be in the batch, too.
func (s *scheduler) drain() []*item {
	left := append(s.queues.drain(), s.late.items...)
	for b := s.batch; b != nil && b.at < len(b.items) && b.items[b.at].late; b.at++ {
		left = append(left, b.items[b.at])
	}
	s.late = lateRows{}
	return left
}
