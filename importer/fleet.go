package importer

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
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

// pulse is the time between exchanges with the fleet; some news are exchanged at once.
const pulse = 250 * time.Millisecond

// member connects this worker with its fleet. Grants of the rate and waits count at once, limits one exchange late.
type member struct {
	*run
	fleet Fleet
	wake  <-chan struct{} // wants an exchange at once
	heard time.Time       // the last answer
}

// join makes the run a worker of its fleet: from then on all workers share limits and rate.
func (r *run) join(s checkpoint.Store) {
	if r.Terms == nil || r.DryRun {
		return
	}
	r.member = &member{run: r, fleet: r.Fleet(s), wake: r.breaker.Share(r.Rate > 0), heard: time.Now()}
	r.limiter.fleet = true
}

func (m *member) work() checkpoint.Progress {
	p := checkpoint.Progress{Counts: m.limiter.counts, Rows: m.tally.counts}
	p.Wants, p.Pause = m.breaker.News()
	return p
}

// leaveFleet is the last exchange, and stores the summary. If it shows that a limit was exceeded, the run stopped.
func (r *run) leaveFleet(s *report.Summary) {
	m := r.member
	if m == nil {
		return
	}
	ctx, last := context.Background(), m.work()
	last.Wants = false
	c, err := m.fleet.Exchange(ctx, last)
	if stop := r.Limits.Reached(delivery.Counts(c.Counts)); err == nil && stop != nil {
		r.stopAfter(s, stop)
	}
	if err == nil || errors.Is(err, checkpoint.ErrFenced) { // its requests count, even if another worker goes on
		var b bytes.Buffer
		_ = s.WriteJSON(&b) // a buffer takes it
		err = m.fleet.Conclude(ctx, b.Bytes())
	}
	if err != nil {
		cause, _, _ := strings.Cut(err.Error(), "\n") // without its hint
		r.Log.Warn("the report of the fleet lacks how this worker ended", "cause", cause)
	}
}

// start begins to exchange what the engine has done, and halts it when the fleet ends. end stops that.
func (m *member) start(ctx context.Context, e *engine) (end func()) {
	if m == nil {
		return func() {}
	}
	running, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		timer := time.NewTicker(pulse)
		defer timer.Stop()
		for running.Err() == nil {
			e.mu.Lock()
			work := m.work()
			e.mu.Unlock()
			if stop := m.exchange(running, work); stop != nil {
				e.halt(stop)
				return
			}
			select {
			case <-running.Done():
			case <-m.wake:
			case <-timer.C:
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}

// exchange returns why the run ends, or nil. After an error the next exchange reports the same once more.
func (m *member) exchange(ctx context.Context, p checkpoint.Progress) *Stop {
	c, err := m.fleet.Exchange(ctx, p)
	switch {
	case errors.Is(err, checkpoint.ErrFenced), errors.As(err, new(*checkpoint.OpenError)),
		err != nil && time.Since(m.heard) > m.MaxWait: // without the fleet's limits and rate nothing may be sent
		return ledgerFailed(err)
	case err != nil:
		return nil
	}
	m.heard = time.Now()
	if c.Pause > 0 {
		m.breaker.Hold(c.Pause)
	}
	if c.Tokens > 0 {
		m.breaker.Grant(c.Tokens, c.After)
	}
	return m.Limits.Reached(delivery.Counts(c.Counts))
}
