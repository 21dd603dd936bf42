package importer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/crash"
	"leadferry/leadapi"
)

// Ledger is what the engine needs of the checkpoint. Claims, withdrawals and
// settlements are answered by done once they are durable, or not.
type Ledger interface {
	Find(qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error
	Sum(b []byte) checkpoint.Digest
	SumName(name string) [4]byte
	SumValue(name, value string) [4]byte
	Claim(in checkpoint.Intent, done func(error))
	Withdraw(key string, done func(error))
	Mark(e checkpoint.Entry, done func(stored checkpoint.Entry, err error))
	Settle(e checkpoint.Entry, done func(stored checkpoint.Entry, err error))
	Note(s checkpoint.Shape)
	MayLack(e *checkpoint.Entry) bool
	Hurry()
}

// sink takes what became of each row, after it is durable.
type sink interface {
	add(it *item, r *result) error // the row is the sink's now, r is not
}

// slotsPerWorker bounds, by the ledger's slots, the rows in doubt after a death: so
// many rows a worker may be claimed and not yet settled. It also bounds how many may
// have been sent and not yet counted, leads that wait for their link aside, and so how
// far a run goes beyond its limits. A row is in one of these states for half of its
// time, hence twice as many jobs.
const slotsPerWorker = 2

// maxParked is how many rows may wait behind rows of the same key, and maxParkedBytes
// how many bytes of the file, but for the row that exceeds it.
const (
	maxParked      = 1000
	maxParkedBytes = 64 << 20
)

// engine moves rows from the reader to their outcome. Its loop is one goroutine
// that alone plans, counts and remembers; workers only send, the ledger's writer
// only commits.
type engine struct {
	Options
	ledger  Ledger             // nil for validate, and for a dry run without checkpoint
	db      *checkpoint.Ledger // the same, for what is no business of a row's; or nil
	sender  Sender             // nil: nothing is ever sent
	client  *leadapi.Client
	opened  *Start // what was known before the first row
	meter   *meter
	planner Planner
	digests *digester // of the loop
	matches bool      // rows find their lead by its IDs, too
	rows    *reader
	tally   *tally
	retrier *retrier

	batches     <-chan *batch
	batch       *batch
	at          int                // next row of batch
	known       []checkpoint.Entry // by row of batch
	found       []checkpoint.Match // the same
	alike       []checkpoint.Likeness
	touched     map[name]struct{}   // leads acted on since known was read
	leadQueues  map[name]*leadQueue // leads with a row in flight
	turn        []*item             // rows whose queue has just become free
	parked      int                 // rows waiting in queues
	parkedBytes int                 // that these take
	free        int                 // jobs that may begin
	inFlight    int                 // jobs that have no event yet
	jobs        []*job              // that are over, to be used again
	creates     chan *job           // claimed and durable
	ready       chan *job           // links, and updates that are marked and durable
	sentSlots   chan struct{}       // one for each job that was sent and not yet counted
	events      chan event          // ends of jobs
	idle        atomic.Int32        // workers that wait
	unchecked   atomic.Int32        // leads that --check-remote could not read
	quit        context.CancelFunc  // send nothing more
	enough      context.CancelFunc  // take no more rows: links of leads that were made still leave
	linker      *retrier            // of links
	ended       bool                // no more rows come
	lost        *Stop               // the input could not be read to its end, or nil
	stopped     *Stop               // why the run ends before its input
	queries     []checkpoint.Query  // scratch of load
	scratch     scratch             // of fresh
	rehearsal   *rehearsal          // of a run that sends nothing; else nil
	recorder    sink                // nil: no files wanted
	shapes      []*checkpoint.Shape // by input: what is to be noted at its first create
	warned      bool                // of a key that looks like an address
}

// scratch is where a single look-up leaves what it found, and a row its result.
type scratch struct {
	result result
	alike  checkpoint.Likeness
	query  [1]checkpoint.Query
	entry  [1]checkpoint.Entry
	found  [1]checkpoint.Match
}

// run takes every row to its outcome. It returns once nothing is in flight.
func (e *engine) run(ctx context.Context) {
	e.free = 2 * slotsPerWorker * e.Concurrency
	e.creates, e.ready = make(chan *job, e.free), make(chan *job, e.free)
	e.sentSlots = make(chan struct{}, slotsPerWorker*e.Concurrency)
	e.events = make(chan event, 2*e.free)
	e.leadQueues, e.touched = map[name]*leadQueue{}, map[name]struct{}{}

	stopping, quit := context.WithCancel(ctx)
	defer quit()
	taking, enough := context.WithCancel(stopping)
	defer enough()
	linker := *e.retrier
	e.quit, e.enough, e.linker = quit, enough, &linker
	e.retrier.stopping, e.linker.stopping = taking, stopping
	batches := make(chan *batch, 4)
	e.batches = batches

	var group sync.WaitGroup
	if e.LetGo != nil {
		defer context.AfterFunc(taking, e.LetGo)()
	}
	group.Go(func() { e.rows.run(taking, batches) })
	if e.sender != nil {
		for range e.Concurrency {
			group.Go(func() { e.work(ctx, e.creates) }) // which may have to go singly, and then keep no link waiting
			group.Go(func() { e.work(ctx, e.ready) })
		}
	}
	if err := crash.Call(func() error { e.loop(ctx); return nil }); err != nil {
		e.stop(crashed(err))
		e.loop(ctx) // what is under way is waited for
		e.tally.makeUp()
	}
	close(e.creates)
	close(e.ready)
	quit()
	group.Wait()
}

func (e *engine) loop(ctx context.Context) {
	var deadline <-chan time.Time
	if e.MaxDuration > 0 {
		timer := time.NewTimer(e.MaxDuration)
		defer timer.Stop()
		deadline = timer.C
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if e.advance() {
			e.glance(ctx, deadline, tick.C)
			continue
		}
		if e.inFlight == 0 && (e.stopped != nil || e.ended && len(e.turn) == 0) {
			break
		}
		e.wait(ctx, deadline, tick.C)
	}
	if e.lost != nil {
		e.stop(e.lost)
	}
	e.abandon()
}

// glance sees to what has happened while rows go on without waiting: events after
// each row, everything else once a batch.
func (e *engine) glance(ctx context.Context, deadline, tick <-chan time.Time) {
	select {
	case ev := <-e.events:
		e.end(ev)
	default:
	}
	if e.batch != nil {
		return
	}
	select {
	case <-e.Interrupt:
		e.stop(interrupted())
	case <-ctx.Done():
		e.stop(interrupted())
	case <-deadline:
		e.outOfTime()
	case <-tick:
		e.tick()
	default:
	}
}

// wait blocks until something happens that may let the loop go on.
func (e *engine) wait(ctx context.Context, deadline, tick <-chan time.Time) {
	batches, interrupt, done := e.batches, e.Interrupt, ctx.Done()
	if e.batch != nil || e.ended {
		batches = nil
	}
	if e.stopped != nil {
		batches, deadline = nil, nil
		if e.stopped.Code == CodeInterrupted {
			interrupt, done = nil, nil
		}
	}
	select {
	case ev := <-e.events:
		e.end(ev)
	case b, ok := <-batches:
		if !ok {
			e.ended = true
			return
		}
		e.load(b)
	case <-interrupt:
		e.stop(interrupted())
	case <-done:
		e.stop(interrupted())
	case <-deadline:
		e.outOfTime()
	case <-tick:
		e.tick()
	}
}

// stop makes the run end in order: nothing more is read or sent, what is in flight
// is waited for. The first reason stands, unless another says more by its exit code.
func (e *engine) stop(s *Stop) {
	if e.stopped == nil || s.outranks(e.stopped.Code) {
		e.stopped = s
	}
	e.quit()
}

// outOfTime takes no more rows and finishes the leads that were made. There is nothing
// to stop where every row has had its turn.
func (e *engine) outOfTime() {
	if e.ended && e.batch == nil && len(e.turn) == 0 && e.parked == 0 || e.stopped != nil {
		return
	}
	e.stopped = &Stop{Reason: "the time given by --max-duration is over", Code: CodeAttention}
	e.enough()
}

// abandon ends the rows that were read and never had their turn.
func (e *engine) abandon() {
	for _, it := range e.turn {
		e.close(it, result{outcome: Pending, text: "the run stopped before its turn"})
	}
	for _, l := range e.leadQueues {
		for _, it := range l.waiting {
			e.close(it, result{outcome: Pending, text: "the run stopped before its turn"})
		}
		l.waiting = nil // a queue may stand under several names
	}
}

// tick tells the progress to whoever listens.
func (e *engine) tick() {
	if e.Progress == nil {
		return
	}
	t := e.tally
	e.Progress(Progress{
		Read: t.total, Sent: t.sent, Known: t.known, Attention: t.attention(true),
		InDoubt: t.outcomes[InDoubt], InFlight: e.meter.inFlight(), Paused: e.retrier.breaker.paused(),
	})
}
