package importer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/internal/crash"
)

// engine takes every row to its outcome. The dispatcher, one goroutine, looks up rows in batches and decides in file
// order. A row that needs no request ends there; others begin a lane, or wait in the lane of their lead. One lock
// guards decisions, lanes and collector. It is not held during a wait for checkpoint or service, only for a slow disk.
type engine struct {
	*run
	phases
	group   sync.WaitGroup // all goroutines
	mu      sync.Mutex
	changed sync.Cond // signals that a row or a lane has ended, or that the run ends
	lanes   lanes
	jobs    sync.Pool   // jobs to use again
	idle    chan *job   // gives a lane to a goroutine whose own lane has ended
	allRead bool        // no more rows come
	over    bool        // all rows have ended: nothing stops the run any more
	hasRead atomic.Bool // a read has shown a lead: the service allows reads
}

// phases end one after another: taking (rows are read and sent), linking (of new leads), awaiting (of answers).
type phases struct {
	taking, linking, awaiting context.Context
	takeNoMore, linkNoMore    context.CancelFunc
}

func newEngine(ctx context.Context, r *run) *engine {
	e := &engine{run: r, phases: phases{awaiting: ctx}, lanes: newLanes(r.Concurrency), idle: make(chan *job)}
	e.linking, e.linkNoMore = context.WithCancel(ctx)
	e.taking, e.takeNoMore = context.WithCancel(e.linking)
	e.changed.L, e.jobs.New = &e.mu, func() any { return &job{change: new(checkpoint.Change)} }
	return e
}

// carryAll takes every row to its outcome. Nothing is in flight when it returns.
func (e *engine) carryAll() {
	defer e.group.Wait()
	defer e.linkNoMore()
	defer context.AfterFunc(e.taking, e.breaker.Shut)()
	if e.CloseStdin != nil {
		defer context.AfterFunc(e.taking, e.CloseStdin)()
	}
	read := make(chan *batch, 4) // batches that wait for the dispatcher, maybe not mapped yet
	e.group.Go(func() { e.intake.run(e.taking, read) })
	ended := make(chan struct{})
	e.group.Go(func() {
		defer close(ended)
		e.guarded(func() {
			e.signIn()
			e.dispatch(read)
		})
		e.endAll()
	})
	e.watch(ended)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
}

// dispatch decides about rows as they come, and in the end about those that were put off or drawn.
func (e *engine) dispatch(batches <-chan *batch) {
	var end error
	for b := range batches {
		<-b.mapped
		if end = b.err; !e.dispatchBatch(b) || end != nil {
			break
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.allRead = true; e.drift != nil {
		for _, it := range e.drift.drawn {
			e.lanes.wait(it, it.names)
		}
	}
	if e.waitFor(e.release); end != nil {
		e.stopLocked(inputEnded(end))
	}
}

// dispatchBatch looks rows up in one read and decides about them. It reports false if the run ends.
func (e *engine) dispatchBatch(b *batch) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waitFor(func() bool { return len(e.lanes.byName) < mostNames || e.lanes.active == 0 })
	maps.DeleteFunc(e.lanes.byName, func(_ leadName, l *lane) bool { return l.underWay+len(l.waiting) == 0 })
	e.notePace()
	return e.lookUp(b.items...) && !slices.ContainsFunc(b.items, func(it *item) bool { return !e.dispatchRow(it) })
}

// lookUp notes in rows what the checkpoint knows of their leads, and gives up the lock meanwhile. It reports false if
// the run ends. In an import, a lead found by its ExternalID alone is another row's: it.owner, and it.entry stays empty.
func (e *engine) lookUp(items ...*item) bool {
	if e.ledger == nil { // nothing is known
		return e.stopped == nil
	}
	queries := make([]checkpoint.Query, len(items))
	var corrected []*item // rows of rejects with a new key: the old key may have a lead
	for i, it := range items {
		it.alike, it.owner = checkpoint.Likeness{}, checkpoint.Likeness{}
		queries[i] = checkpoint.Query{Key: it.rec.Key, ExternalID: it.rec.ExternalID, Entry: &it.entry}
		if it.entry.Key != "" { // looked up before: keep that if this look-up fails
			queries[i].Entry = new(checkpoint.Entry)
		}
		if e.matches {
			queries[i].LeadID = it.rec.LeadID
		}
		if !e.CreateAlikes {
			queries[i].Alike = &it.alike
		}
		if former := it.row.FormerKey; former != "" && former != it.rec.Key {
			corrected = append(corrected, it)
			like := new(checkpoint.Likeness) // a spreadsheet may have made 12 of 00012
			queries = append(queries, checkpoint.Query{Key: former, Entry: new(checkpoint.Entry), Alike: like})
		}
	}
	find := func() error { // its panics find the lock as it was
		e.mu.Unlock()
		defer e.mu.Lock()
		return e.ledger.Find(e.taking, queries)
	}
	if err := find(); err != nil {
		if !errors.Is(err, context.Canceled) {
			e.stopLocked(ledgerFailed(err))
		} else if e.stopped == nil {
			e.stopLocked(interrupted())
		}
		return false
	}
	for i, it := range items {
		known := queries[i].Entry
		it.by = queries[i].Match
		if !e.matches && (it.by == checkpoint.ByExternalID || it.by == checkpoint.Ambiguous) {
			state := max(known.State, checkpoint.Created) // in doubt stays in doubt
			it.owner = checkpoint.Likeness{State: state, File: known.File, Line: known.Line}
			*known = checkpoint.Entry{Key: it.rec.Key}
		}
		it.result, it.mayLack = result{entry: *known, attempts: it.attempts}, e.opened.MayLack(known)
	}
	for i, it := range corrected {
		state := cmp.Or(queries[len(items)+i].Entry.State, queries[len(items)+i].Alike.State)
		if state.HasLead() || state == checkpoint.InDoubt {
			it.row.Outcome = cmp.Or(it.row.Outcome, InDoubt.String())
		}
	}
	return e.stopped == nil
}

// dispatchRow decides about a row: it ends, goes to a lane, or waits for rows of its lead. false: the run ends.
func (e *engine) dispatchRow(it *item) bool {
	it.names = e.leadNames(it)
	return e.waitFor(func() bool {
		switch {
		case e.lanes.full():
			e.release()
			return false
		case e.lanes.find(it.names) == nil: // no row of its lead is under way
			return e.endOrBegin(it)
		}
		e.countRead(it)
		e.lanes.wait(it, it.names)
		e.spread()
		return true
	})
}

// release gives rows that were put aside their turn if nothing is under way, and reports whether nothing is then.
func (e *engine) release() bool {
	if e.lanes.active == 0 {
		for _, l := range e.lanes.byName {
			if len(l.waiting) > 0 {
				l.waiting[0].aside = false
				e.lanes.advance(l)
			}
		}
	}
	e.spread()
	return e.lanes.active == 0
}

// endOrBegin ends a row, or begins a lane with it. It reports false if the row may not be sent now.
func (e *engine) endOrBegin(it *item) bool {
	step := e.plan(it) // plan.go; in an import, a valid row of no known lead gets Create
	if e.dry != nil {
		e.dry.plan(it, &step)
	}
	if !step.Action.needsLane() {
		e.countRead(it)
		e.end(it, step)
		return true
	}
	if e.lanes.active >= e.lanes.most || !e.mayBegin(step.Action) {
		return false
	}
	e.countRead(it)
	it.turn = true
	e.lanes.give(&lane{underWay: 1}, it.names)
	e.start(e.newJob(it, step)) // carry, carried, then the next row
	return true
}

// mayBegin reports whether a row may be sent now. It may end the run.
func (e *engine) mayBegin(a Action) bool {
	may, why := e.limiter.mayBegin(a, e.lanes.underWay)
	e.stopLocked(why)
	return may
}

// end ends a row that needs no lane. A row in doubt is put aside, once, if another worker may still settle it.
func (e *engine) end(it *item, step Step) {
	if step.outcome == InDoubt && e.member != nil && !it.second && e.stopped == nil {
		it.second, it.aside = true, true
		e.lanes.wait(it, it.names)
		return
	}
	if it.turn {
		e.lanes.leave(it)
	}
	if step.Action == Draw {
		it.ending = step.ending
		if it = e.drift.draw(it); it == nil {
			return
		}
		step.ending = it.ending
	}
	e.stopLocked(e.collect(it, step.ending))
}

// endAll waits for what is under way, and ends the rows that never had their turn.
func (e *engine) endAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.lanes.active > 0 {
		e.changed.Wait()
	}
	close(e.idle)
	if e.limiter.enough {
		e.stopLocked(ledgerFailed(checkpoint.ErrEnough))
	}
	if e.stopped == nil && e.linking.Err() != nil { // the run's context has ended, for no other reason
		e.stopLocked(interrupted())
	}
	left := e.lanes.ready
	for _, l := range e.lanes.byName { // a lane may have several names
		left, l.waiting = append(left, l.waiting...), nil
	}
	for _, it := range left {
		e.stopLocked(e.collect(it, ending{outcome: Pending, text: "the run stopped before its turn"}))
	}
	// rows that a panic has lost count as pending: the ledger knows whether they were sent
	e.tally.counts.Pending += e.tally.counts.Read - e.tally.counts.Ended()
}

// waitFor waits until holds returns true, and reports false if the run ends first. holds may end the run.
func (e *engine) waitFor(holds func() bool) bool {
	for e.stopped == nil {
		if holds() {
			return true
		}
		if e.stopped == nil {
			e.changed.Wait()
		}
	}
	return false
}

// signIn gets the first token, so that a wrong secret is known before the first row.
func (e *engine) signIn() {
	if e.sender == nil || e.Reconciling.None {
		return
	}
	e.breaker.MaxWait = min(time.Minute, e.MaxWait)
	_, err := e.breaker.Deliver(e.awaiting, e.taking, delivery.Repeatable, new(delivery.Pass),
		func(ctx context.Context, _ bool) error { return e.sender.SignIn(ctx) })
	e.breaker.MaxWait = e.MaxWait
	if err = e.stopping(err); err != nil && !errors.Is(err, delivery.ErrStopping) {
		e.stop(delivery.StopFor("sign-in failed: "+err.Error(), ""))
	}
}

// watch handles signals and --max-duration, and shows progress, until all rows have ended.
func (e *engine) watch(ended <-chan struct{}) {
	var deadline <-chan time.Time
	if d := e.MaxDuration; d > 0 {
		deadline = time.After(d)
	}
	defer context.AfterFunc(e.awaiting, func() { e.stop(interrupted()) })()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for interrupt := e.Interrupt; ; {
		select {
		case <-ended:
			return
		case <-interrupt:
			interrupt = nil
			e.stop(interrupted())
		case <-deadline: // takes no more rows but links leads that were made; does nothing if no row waits
			e.mu.Lock()
			if e.stopped == nil && !(e.allRead && e.lanes.waiting == 0) {
				e.stopped = &Stop{Reason: "the time given by --max-duration is over", Code: report.CodeAttention}
				e.takeNoMore()
				e.changed.Broadcast()
			}
			e.mu.Unlock()
		case <-tick.C:
			e.mu.Lock()
			e.notePace()
			if now := time.Now(); e.Live != nil && now.Sub(e.liveAt) >= time.Second {
				e.liveAt = now
				e.Live(e.soFar())
			}
			e.mu.Unlock()
		}
	}
}

func (e *engine) stop(why *Stop) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopLocked(why)
}

// stopLocked ends the run in order, unless why is nil: nothing more is read or sent, and requests in flight get their
// answers. The caller holds the lock. The first reason stays, unless a later one has a more important exit code.
func (e *engine) stopLocked(why *Stop) {
	if why == nil || e.over {
		return
	}
	e.stopped = graver(e.stopped, why)
	e.linkNoMore()
	e.changed.Broadcast()
}

// guarded reports whether f went well. A panic ends the run in order.
func (e *engine) guarded(f func()) bool {
	err := crash.Call(func() error { f(); return nil })
	if err != nil {
		e.stop(crashed(err))
	}
	return err == nil
}
