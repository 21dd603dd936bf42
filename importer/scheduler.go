package importer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/internal/crash"
	"leadferry/leadapi"
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

// carriersPerPlace is how many carriers there are for each request that may be in flight: a
// row waits for the checkpoint for half of its time, and the more rows wait for their claims,
// the more of them share a commit.
const carriersPerPlace = 4

// slotsPerPlace is how many rows may be claimed and not yet settled for each request that may
// be in flight: as many are in doubt when the process is killed. It also bounds how many may
// have been sent and not yet counted, and so how far a run goes beyond its limits.
const slotsPerPlace = 2

// phases are the two of a run, each a context that ends with it. While it takes rows, creates
// and updates leave. While it sends, links of leads that were made leave, too.
type phases struct {
	taking, sending        context.Context
	takeNoMore, sendNoMore context.CancelFunc
}

func newPhases(ctx context.Context) *phases {
	var p phases
	p.sending, p.sendNoMore = context.WithCancel(ctx)
	p.taking, p.takeNoMore = context.WithCancel(p.sending)
	return &p
}

// carriers are the goroutines that carry rows. Rows go there and come back by two
// channels, which have room for all of them, so that nobody waits to hand one over.
type carriers struct {
	todo, done chan *job
	spare      []*job        // as many as rows may still be handed out
	sentSlots  chan struct{} // one for each row that was sent, or is about to be, and not yet counted
}

func newCarriers(places int) *carriers {
	n := carriersPerPlace * places
	if places == 1 {
		n = 1 // rows go in the order of the input then, as whoever asks for one at a time expects
	}
	c := &carriers{todo: make(chan *job, n), done: make(chan *job, n), sentSlots: make(chan struct{}, slotsPerPlace*places)}
	for range n {
		c.spare = append(c.spare, new(job))
	}
	return c
}

// start lets each carry rows, until no more are handed out.
func (c *carriers) start(group *sync.WaitGroup, carry func(*job)) {
	for range cap(c.todo) {
		group.Go(func() {
			for j := range c.todo {
				carry(j)
				c.done <- j
			}
		})
	}
}

// free reports whether another row may be handed out.
func (c *carriers) free() bool { return len(c.spare) > 0 }

// out is how many rows were handed out and have not been counted.
func (c *carriers) out() int { return cap(c.todo) - len(c.spare) }

func (c *carriers) hand(it *item, step Step, known *checkpoint.Entry, ns *leadNames) {
	last := len(c.spare) - 1
	j := c.spare[last]
	c.spare = c.spare[:last]
	*j = job{it: it, step: step, names: *ns, request: leadapi.CreateRequest{Content: j.request.Content}}
	j.entry = *known
	j.entry.Content = slices.Clone(known.Content) // look-ups use theirs again
	c.todo <- j
}

// counted gives the place of a row back; the row itself stands until the next is handed out.
func (c *carriers) counted(j *job) {
	give(&j.sentSlot)
	c.spare = append(c.spare, j)
}

// take waits for room in places; give gives it back.
func take(held *chan struct{}, places chan struct{}) {
	places <- struct{}{}
	*held = places
}

func give(held *chan struct{}) {
	if *held != nil {
		<-*held
		*held = nil
	}
}
