package importer

import (
	"context"
	"errors"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/internal/crash"
)

// scheduler takes every row to its outcome. It alone plans, counts and remembers, in one
// goroutine: it reads batches, looks them up, keeps the rows of a lead in order, hands
// rows to the carriers and takes back what became of them.
type scheduler struct {
	options  *Options
	planner  Planner
	lookups  *lookups
	intake   *intake
	queues   *leadQueues
	carriers *carriers
	breaker  *delivery.Breaker
	phases   *phases
	dry      *dryRun // of a run that sends nothing; else nil
	tally    *tally
	drift    *drift // of a reconciliation; else nil
	pulls    *pulls // nil: no pull file is wanted
	recorder sink
	progress func()  // tells how far the run is
	sample   func()  // notes it for the timeline
	member   *member // nil: the run is no worker of a fleet
	late     lateRows
	enough   bool // the fleet may make no more leads

	batches   <-chan *batch // nil once no more rows come
	batch     *batch
	next      *batch     // that is looked up while the batch is planned, or nil
	read      chan error // says that next is
	reader    sync.WaitGroup
	inputStop *Stop // the input could not be read to its end, or nil
	stopped   *Stop // why the run ends before its input

	ended result // of the row that ends in end
}

// sink takes what became of each row, after it is durable.
type sink interface {
	add(it *item, r *result) error // the row is the sink's now, r is not
}

// run takes every row to its outcome and returns why it ended before the input did, or nil.
// Nothing is in flight then. carry is nil where nothing is sent.
func (s *scheduler) run(ctx context.Context, carry func(context.Context, *job)) *Stop {
	if s.options.LetGo != nil {
		defer context.AfterFunc(s.phases.taking, s.options.LetGo)()
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer s.reader.Wait()
	defer s.phases.sendNoMore()
	batches := make(chan *batch, s.lookupRows()/batchRows)
	s.batches, s.read = batches, make(chan error, 1)
	group.Go(func() { s.intake.run(s.phases.taking, batches) })
	defer close(s.carriers.todo)
	if carry != nil {
		s.carriers.start(&group, func(j *job) { carry(ctx, j) })
	}
	if err := crash.Call(func() error { s.loop(ctx); return nil }); err != nil {
		s.stop(crashed(err))
		s.loop(ctx) // what is under way is waited for
		s.tally.makeUp()
	}
	return s.stopped
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
	for {
		for s.advance(ctx) {
			select {
			case j := <-s.carriers.done:
				s.count(j)
			default:
			}
		}
		if s.carriers.out() == 0 && (s.stopped != nil || s.exhausted()) {
			if s.stopped == nil && len(s.late.items) > 0 {
				s.lookAgain(ctx)
				continue
			}
			break
		}
		s.wait(ctx, deadline, tick.C)
	}
	if s.inputStop != nil {
		s.stop(s.inputStop)
	}
	if s.enough {
		s.stop(ledgerFailed(checkpoint.ErrEnough))
	}
	for _, it := range append(s.queues.drain(), s.late.items...) {
		s.end(it, result{outcome: Pending, text: "the run stopped before its turn"})
	}
}

// exhausted says that every row has had its turn.
func (s *scheduler) exhausted() bool {
	return s.batches == nil && s.next == nil && s.batch == nil && s.queues.empty()
}

// wait blocks until something happens that may let rows go on.
func (s *scheduler) wait(ctx context.Context, deadline, tick <-chan time.Time) {
	batches, read, interrupt, done, fleet := s.batches, s.read, s.options.Interrupt, ctx.Done(), s.member.over()
	if s.next != nil {
		batches = nil
	}
	if s.next == nil || s.batch != nil {
		read = nil
	}
	if s.stopped != nil {
		batches, read, deadline = nil, nil, nil
		if s.stopped.Code == CodeInterrupted {
			interrupt, done = nil, nil
		}
	}
	select {
	case j := <-s.carriers.done:
		s.count(j)
	case b, ok := <-batches:
		s.lookUp(ctx, b, ok)
	case err := <-read:
		s.turn(ctx, err)
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
		s.member.note(s.tally)
	}
}

// stop makes the run end in order: nothing more is read or sent, what is in flight
// is waited for. The first reason stands, unless another says more by its exit code.
func (s *scheduler) stop(why *Stop) {
	if s.stopped == nil || why.outranks(s.stopped.Code) {
		s.stopped = why
	}
	s.phases.sendNoMore()
}

// outOfTime takes no more rows and finishes the leads that were made. There is nothing
// to stop where every row has had its turn.
func (s *scheduler) outOfTime() {
	if s.exhausted() || s.stopped != nil {
		return
	}
	s.stopped = &Stop{Reason: "the time given by --max-duration is over", Code: CodeAttention}
	s.phases.takeNoMore()
}

// lookupRows is how many rows are looked up in one read, where so many are there: it may be a round trip, and is one for the
// workers of a fleet.
func (s *scheduler) lookupRows() int {
	if s.member != nil {
		return 8 * batchRows
	}
	return 4 * batchRows
}

// lookUp begins to look up, in one read, what the checkpoint knows of a batch and of those that wait behind it; without one,
// no more rows come.
func (s *scheduler) lookUp(ctx context.Context, b *batch, ok bool) {
	if !ok {
		s.batches = nil
		return
	}
	for more := true; more && b.err == nil && len(b.items) < s.lookupRows(); {
		select {
		case next, ok := <-s.batches:
			if more = ok; !ok {
				s.batches = nil
				break
			}
			b.items, b.err = append(b.items, next.items...), next.err
		default:
			more = false
		}
	}
	s.next = b
	s.lookups.begin()
	s.reader.Go(func() {
		s.read <- crash.Call(func() error { return s.lookups.read(ctx, b.items) })
	})
}

// turn goes on to the batch that was looked up, and has the next one looked up meanwhile.
func (s *scheduler) turn(ctx context.Context, err error) {
	b := s.next
	if s.next = nil; s.failed(err) {
		return
	}
	s.batch = b
	s.lookups.turn()
	s.sample()
	select {
	case b, ok := <-s.batches:
		s.lookUp(ctx, b, ok)
	default:
	}
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

// advance takes one row a step further and reports false when none can go on now.
func (s *scheduler) advance(ctx context.Context) bool {
	switch {
	case s.stopped != nil:
		return false
	case len(s.queues.ready) > 0:
		return s.advanceReady(ctx)
	case s.batch == nil:
		return false
	case s.batch.at < len(s.batch.items):
		return s.approach(ctx, s.batch.items[s.batch.at])
	}
	if s.batch.err != nil {
		s.inputStop = inputEnded(s.batch.err) // no more rows come; those before it have their turn
	}
	s.batch = nil
	return false
}

// approach takes a row to its lead: behind the rows that came before it, or into its plan.
func (s *scheduler) approach(ctx context.Context, it *item) bool {
	if r := it.left(); r != nil {
		s.accept(it)
		s.finishRow(it, r)
		return true
	}
	c := s.lookups.remembered(it, s.batch.at)
	ns := s.lookups.names(c)
	if s.late.behind(it, &ns) {
		s.accept(it)
		s.late.add(it, &ns)
		return true
	}
	l := s.queues.find(&ns)
	if l == nil && s.lookups.isTouched(&ns) {
		var err error
		if c, err = s.lookups.fresh(ctx, it); s.failed(err) {
			return false
		}
		ns = s.lookups.names(c)
		l = s.queues.find(&ns)
	}
	switch {
	case l == nil:
		return s.plan(c, &ns, false)
	case s.queues.full():
		return false
	}
	s.accept(it)
	s.queues.park(it, l, &ns)
	return true
}

// advanceReady goes on with a row that waited for its queue.
func (s *scheduler) advanceReady(ctx context.Context) bool {
	it := s.queues.ready[0]
	c, err := s.lookups.fresh(ctx, it)
	if s.failed(err) {
		return false
	}
	ns := s.lookups.names(c)
	if !s.queues.rejoin(it, &ns) && !s.plan(c, &ns, true) {
		return false
	}
	s.queues.ready = s.queues.ready[1:]
	return true
}

// accept counts the batch's next row as read: from here on it must end in an outcome.
func (s *scheduler) accept(it *item) {
	if s.drift != nil {
		s.drift.name(it.rec.Key, &s.lookups.batch.known[s.batch.at])
	}
	s.batch.at++
	if it.late {
		return
	}
	s.tally.read(it)
	switch {
	case s.dry != nil:
		s.dry.read(it)
	case it.fault == nil && isAddress(it.rec.Key) && s.tally.firstAddress():
		s.options.Log.Warn(addressWarning, "file", s.intake.names[it.input], "line", it.row.Line)
	}
}

// plan asks the planner and acts on its step; false means that the row cannot go
// on now, and has not been taken. waited says that it had to wait in its queue.
func (s *scheduler) plan(c *Case, ns *leadNames, waited bool) bool {
	it, known := c.it, c.Known
	step := s.planner.Plan(c)
	if s.dry != nil {
		s.accept(it)
		r, err := s.dry.plan(it, &step, known)
		if err != nil {
			s.stop(outputClosed(err))
		}
		s.finishRow(it, r)
		return true
	}
	if step.Action == Nothing {
		if waited {
			s.queues.leave(it)
		} else {
			s.accept(it)
		}
		if step.Outcome == InDoubt && s.putOff(it, ns) {
			return true
		}
		s.end(it, result{outcome: step.Outcome, entry: *known, text: step.Reason, kind: step.Kind, kept: step.Keep, unread: step.Unread, found: step.Found})
		return true
	}
	if !s.carriers.free() || step.Action.sends() && s.tally.onTrial(s.carriers.out()) || step.Action == Create && !s.mayCreate() {
		return false
	}
	if !waited {
		s.accept(it)
		s.queues.enter(it, ns)
	}
	s.hand(it, step, known, ns)
	return true
}

// mayCreate holds creates back while those under way could use up --max-creates,
// and stops the run when the leads made have.
func (s *scheduler) mayCreate() bool {
	if s.enough { // what was claimed is sent first
		if s.carriers.out() == 0 {
			s.stop(ledgerFailed(checkpoint.ErrEnough))
		}
		return false
	}
	most := s.options.MaxCreates
	if most == 0 || s.tally.creating < most {
		return true
	}
	if s.tally.made >= most {
		s.stop(&Stop{Reason: "as many leads as --max-creates allows have been made", Code: CodeStopped})
	}
	return false
}

// hand gives a row to the carriers.
func (s *scheduler) hand(it *item, step Step, known *checkpoint.Entry, ns *leadNames) {
	s.lookups.touch(ns)
	if step.Action.sends() {
		if s.options.Sends != nil {
			s.options.Sends()
		}
		s.lookups.digests.ofRequest(it)
		s.lookups.digests.ofContent(it)
	}
	if step.Action == Create {
		s.tally.creating++
	}
	s.carriers.hand(it, step, known, ns)
}

// count takes a row back from its carrier and lets the next one of its lead go on.
func (s *scheduler) count(j *job) {
	s.carriers.counted(j)
	s.lookups.touch(&j.names)
	s.queues.leave(j.it)
	if j.step.Action == Create {
		s.tally.created(&j.result, j.elsewhere)
	}
	s.enough = s.enough || j.enough
	if j.elsewhere && s.putOff(j.it, &j.names) {
		return
	}
	j.kept = j.step.Keep && j.entry.Seen.Kept && (j.outcome == Unchanged || j.outcome == Updated)
	s.finishRow(j.it, &j.result)
	if j.stop != nil {
		s.stop(j.stop)
	}
	if end := s.breaker.Over(); end != nil {
		s.stop(stopAt(end))
	}
}

// end finishes a row that no carrier took. Its result stays in one place, since a run that
// finds everything done would leave one behind for each row.
func (s *scheduler) end(it *item, r result) {
	s.ended = r
	s.finishRow(it, &s.ended)
}

// finishRow records a row's outcome and ends the run where a limit says so. The row is
// gone then: what else is wanted of it comes before.
func (s *scheduler) finishRow(it *item, r *result) {
	if s.drift != nil {
		s.drift.count(it, r)
	}
	if s.pulls != nil {
		s.pulls.add(it, r)
	}
	if stop := s.tally.count(it, r); stop != nil && s.dry == nil {
		s.stop(stop)
	}
	if err := s.recorder.add(it, r); err != nil {
		s.stop(filesFailed(err))
	}
}
