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

// Fleet connects the workers of a fleet through their ledger.
type Fleet interface {
	// Exchange reports what this worker has done, and returns what holds for all workers. After checkpoint.ErrFenced a
	// newer worker has replaced this one; after other errors it may be called again.
	Exchange(ctx context.Context, p checkpoint.Progress) (checkpoint.Common, error)
	// Conclude stores the worker's summary, as JSON, for the report of the fleet.
	Conclude(ctx context.Context, summary []byte) error
}

// pulse is the time between two exchanges with the fleet. Some news do not wait for it (member.wake).
const pulse = 250 * time.Millisecond

// member connects this worker with its fleet. Grants of the rate and pauses work at once, limits one exchange late.
type member struct {
	*run
	fleet Fleet
	wake  <-chan struct{} // asks for an exchange at once
	heard time.Time       // when the fleet last answered
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

// leaveFleet makes the last exchange, and stores the summary. If the fleet has reached a limit, the run has stopped.
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
	if err == nil || errors.Is(err, checkpoint.ErrFenced) { // its requests count, even if a newer worker goes on
		var b bytes.Buffer
		_ = s.WriteJSON(&b) // a buffer never fails
		err = m.fleet.Conclude(ctx, b.Bytes())
	}
	if err != nil {
		cause, _, _ := strings.Cut(err.Error(), "\n") // without its hint
		r.Log.Warn("the report of the fleet lacks how this worker ended", "cause", cause)
	}
}

// start begins to exchange what the engine has done. The fleet may stop the engine. end ends the exchanges.
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
				e.stop(stop)
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

// exchange returns why the run ends, or nil. After other errors, the next exchange reports the same again.
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
