package importer

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/report"
)

// Fleet is what the workers of a fleet share through their ledger.
type Fleet interface {
	// Exchange reports what this worker has done, and returns what holds for all workers. After checkpoint.ErrFenced a
	// newer worker has replaced this one; after other errors it may be called again.
	Exchange(ctx context.Context, p checkpoint.Progress) (checkpoint.Common, error)
	// Conclude stores the worker's summary, as JSON, for the report of the fleet.
	Conclude(ctx context.Context, summary []byte) error
}

const (
	pulse        = 250 * time.Millisecond // between exchanges with the fleet; some news are exchanged at once
	hearing      = 30 * time.Second       // for one exchange
	lastWord     = 5 * time.Second        // for the report of a worker's end
	figuresEvery = 2 * time.Second        // between figures: a killed worker's report lacks the rest
)

// member connects this worker with its fleet. The fleet's rate arrives as requests for a quarter of a second, its waits
// at once, its limits one exchange late.
type member struct {
	*run
	fleet Fleet
	wake  chan struct{} // wants an exchange at once
	heard time.Time     // the last answer

	mu   sync.Mutex
	told checkpoint.Progress // to be reported next
	kept time.Time           // when figures were taken last
}

// join makes the run a worker of its fleet: from then on all workers share limits and rate.
func (r *run) join(s checkpoint.Store) {
	if r.Terms == nil || r.DryRun {
		return
	}
	m := &member{run: r, fleet: r.Fleet(s), wake: make(chan struct{}, 1), heard: time.Now()}
	r.member = m
	r.tally.limits.MaxCreates, r.tally.fleet = 0, true // the ledger counts the leads
	b := r.retrier.Breaker
	b.Asked = func(d time.Duration) { m.tell(func(p *checkpoint.Progress) { p.Pause = max(p.Pause, d) }) }
	if r.Rate > 0 {
		b.ShareRate(func() { m.tell(func(p *checkpoint.Progress) { p.Wants = true }) })
	}
}

// leaveFleet is the last exchange, and stores the summary. If a limit of the fleet was exceeded since the exchange
// before, the run stopped.
func (r *run) leaveFleet(s *report.Summary) {
	m := r.member
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWord)
	defer cancel()
	m.note()
	m.told.Wants = false
	c, err := m.fleet.Exchange(ctx, m.told)
	if err == nil {
		if stop := r.Limits.reached(&c.Counts); stop != nil {
			r.stopAfter(s, stop)
		}
		var b bytes.Buffer
		_ = s.WriteJSON(&b) // a buffer takes it
		err = m.fleet.Conclude(ctx, b.Bytes())
	}
	if err != nil {
		r.Log.Warn("the report of the fleet lacks how this worker ended", "cause", err)
	}
}

// note takes what the worker has done, to be reported with the next exchange, and now and then its figures so far.
func (m *member) note() {
	if m == nil {
		return
	}
	var figures bytes.Buffer
	if time.Since(m.kept) >= figuresEvery {
		m.kept = time.Now()
		_ = m.soFar().WriteJSON(&figures) // a buffer takes it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told.Counts, m.told.Rows = m.tally.counts, m.tally.rowCounts()
	if figures.Len() > 0 {
		m.told.Summary = figures.Bytes()
	}
}

// tell reports something at once: a wait that the service asked for, or that this worker needs more of the rate.
func (m *member) tell(note func(*checkpoint.Progress)) {
	m.mu.Lock()
	note(&m.told)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// start begins to exchange, and halts the run when the fleet ends. end stops it.
func (m *member) start(ctx context.Context, halt func(*Stop)) (end func()) {
	if m == nil {
		return func() {}
	}
	running, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { m.talk(running, halt) })
	return func() {
		cancel()
		group.Wait()
	}
}

func (m *member) talk(ctx context.Context, halt func(*Stop)) {
	timer := time.NewTicker(pulse)
	defer timer.Stop()
	for ctx.Err() == nil {
		if stop := m.exchange(ctx); stop != nil {
			halt(stop)
			return
		}
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-timer.C:
		}
	}
}

// exchange returns why the run ends, or nil. What could not be reported is reported the next time.
func (m *member) exchange(ctx context.Context) *Stop {
	m.mu.Lock()
	p := m.told
	m.told.Wants, m.told.Pause, m.told.Summary = false, 0, nil
	m.mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, hearing)
	c, err := m.fleet.Exchange(asking, p)
	cancel()
	switch {
	case errors.Is(err, checkpoint.ErrFenced), errors.As(err, new(*checkpoint.OpenError)),
		err != nil && time.Since(m.heard) > m.MaxWait: // without the fleet's limits and rate nothing may be sent
		return ledgerFailed(err)
	case err != nil:
		m.mu.Lock()
		m.told.Wants, m.told.Pause = m.told.Wants || p.Wants, max(m.told.Pause, p.Pause)
		m.mu.Unlock()
		return nil
	}
	m.heard = time.Now()
	if c.Pause > 0 {
		m.retrier.Breaker.Hold(c.Pause)
	}
	if c.Tokens > 0 {
		m.retrier.Breaker.Grant(c.Tokens, c.After)
	}
	return m.Limits.reached(&c.Counts)
}
