package importer

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/internal/rowkey"
	"leadferry/mapping"
)

// Fleet is what the workers of a fleet share through their ledger.
type Fleet interface {
	// Exchange tells the others what this worker has done, and returns what holds for all of them.
	// checkpoint.ErrFenced says that a newer worker has its place; after other errors it may be tried again.
	Exchange(ctx context.Context, p checkpoint.Progress) (checkpoint.Common, error)
	// Before are the runs of workers that had this one's place in the fleet.
	Before() []string
	// Conclude leaves the worker's summary, in JSON, for the report of the fleet.
	Conclude(ctx context.Context, summary []byte) error
}

// pulse is how often a worker asks what holds for its fleet, unless it needs to know sooner.
const pulse = 250 * time.Millisecond

// hearing is how long the ledger may take to say what holds, before it is asked anew.
const hearing = 30 * time.Second

// member is this worker's side of the fleet: it tells what was done, and makes what holds for all hold here. The rate
// comes in pieces of a quarter of a second's requests, waits of the service at once, limits one exchange late.
type member struct {
	fleet   Fleet
	limits  Limits
	breaker *delivery.Breaker
	stops   chan *Stop    // why the fleet ends; the first reason
	wake    chan struct{} // holds one token while an exchange is wanted at once

	patience time.Duration // with a ledger that does not answer
	heard    time.Time     // when it answered last

	mu   sync.Mutex
	told checkpoint.Progress // what to tell next
	kept time.Time           // when figures were taken down last
}

func newMember(f Fleet, l Limits, b *delivery.Breaker, rate float64, patience time.Duration) *member {
	m := &member{
		fleet: f, limits: l, breaker: b, patience: patience, heard: time.Now(), stops: make(chan *Stop, 1),
		wake: make(chan struct{}, 1),
	}
	b.Asked = func(d time.Duration) { m.tell(func(p *checkpoint.Progress) { p.Pause = max(p.Pause, d) }) }
	if rate > 0 {
		b.ShareRate(func() { m.tell(func(p *checkpoint.Progress) { p.Wants = true }) })
	}
	return m
}

// over is where the reason comes why the fleet ends; without a fleet none ever comes.
func (m *member) over() <-chan *Stop {
	if m == nil {
		return nil
	}
	return m.stops
}

// note takes down what the worker has done.
func (m *member) note(t *tally) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told.Counts, m.told.Rows = t.counts, rowCounts(t.counts.Read, &t.common)
}

// figuresEvery is how often a worker leaves its figures in the ledger: of one that is killed, the report of the fleet
// lacks what it did since.
const figuresEvery = 2 * time.Second

// keep takes down the figures of the run so far, unless it did a moment ago.
func (m *member) keep(soFar func() *report.Summary) {
	if m == nil || time.Since(m.kept) < figuresEvery {
		return
	}
	m.kept = time.Now()
	var b bytes.Buffer
	if soFar().WriteJSON(&b) == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.told.Summary = b.Bytes()
	}
}

// tell tells the others something at once: of a wait that the service asked for, or that the ration runs out.
func (m *member) tell(note func(*checkpoint.Progress)) {
	m.mu.Lock()
	note(&m.told)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// start begins to exchange, and returns what ends it.
func (m *member) start(ctx context.Context) (end func()) {
	if m == nil {
		return func() {}
	}
	running, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { m.run(running) })
	return func() {
		cancel()
		group.Wait()
	}
}

// lastWord is how long a worker that has ended tries to say so.
const lastWord = 5 * time.Second

// reportEnd tells the fleet for the last time what was done, and leaves the summary with the rows of all workers of
// this shard. If a limit of the fleet was exceeded since the last exchange, it returns the stop.
func (m *member) reportEnd(t *tally, s *report.Summary) (*Stop, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lastWord)
	defer cancel()
	m.note(t)
	m.told.Wants = false
	c, err := m.fleet.Exchange(ctx, m.told)
	if err != nil {
		return nil, err
	}
	stop := m.limits.reached(&c.Counts)
	if stop != nil {
		halt(s, stop)
	}
	whole := *s
	whole.Rows = rowCounts(t.counts.Read, &t.common)
	var b bytes.Buffer
	if err := whole.WriteJSON(&b); err != nil {
		return stop, err
	}
	return stop, m.fleet.Conclude(ctx, b.Bytes())
}

func (m *member) run(ctx context.Context) {
	timer := time.NewTicker(pulse)
	defer timer.Stop()
	for ctx.Err() == nil {
		if stop := m.exchange(ctx); stop != nil {
			m.stops <- stop
			return
		}
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-timer.C:
		}
	}
}

// exchange tells and hears, and returns why the run ends, or nil. What could not be told is told the next time.
func (m *member) exchange(ctx context.Context) *Stop {
	m.mu.Lock()
	p := m.told
	m.told.Wants, m.told.Pause, m.told.Summary = false, 0, nil
	m.mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, hearing)
	c, err := m.fleet.Exchange(asking, p)
	cancel()
	if errors.Is(err, checkpoint.ErrFenced) || errors.As(err, new(*checkpoint.OpenError)) {
		return ledgerFailed(err)
	}
	if err != nil {
		if time.Since(m.heard) > m.patience { // without limits and rate that are common, nothing may go on
			return ledgerFailed(err)
		}
		m.mu.Lock()
		m.told.Wants, m.told.Pause = m.told.Wants || p.Wants, max(m.told.Pause, p.Pause)
		if m.told.Summary == nil {
			m.told.Summary = p.Summary
		}
		m.mu.Unlock()
		return nil
	}
	m.heard = time.Now()
	if c.Pause > 0 {
		m.breaker.Hold(c.Pause)
	}
	if c.Tokens > 0 {
		m.breaker.Grant(c.Tokens, c.After)
	}
	return m.limits.reached(&c.Counts)
}

// Shard is the part of the input that a worker of a fleet takes: the rows whose lead falls to Index, from 0, of Of
// parts. The zero Shard is all of it.
type Shard struct{ Index, Of int }

// sharding says which rows a worker takes. All rows of a lead fall to one worker, and so do keys that look alike: rows
// are parted by what finds their lead. Those that have no such thing are parted by their place.
type sharding struct {
	Shard
	byLeadID bool // rows find their lead by its ID alone
}

var errManyIdentities = errors.New("the rows of this mapping may find their lead by several values, so that workers " +
	"of a fleet could meet at one lead\n" +
	"hint: a mapping can be sharded that has lead_id alone, or key where external_id is the same text or not given")

// newSharding refuses a mapping that could give rows of one lead to two workers.
func newSharding(s Shard, m *mapping.Mapping) (sharding, error) {
	if s.Of > 1 && !m.OneIdentity() {
		return sharding{}, errManyIdentities
	}
	return sharding{s, m.HasLeadID()}, nil
}

// takes reports whether a row is this worker's. Workers of all releases must agree about it as long as fleets last.
func (s *sharding) takes(it *item) bool {
	if s.Of <= 1 {
		return true
	}
	var place uint64
	switch {
	case it.fault != nil || it.rec.Skip:
		place = uint64(it.input + it.row.Number)
	case s.byLeadID && it.rec.LeadID != "":
		place = xxhash.Sum64String(it.rec.LeadID)
	default:
		place = xxhash.Sum64String(rowkey.Fold(it.rec.Key))
	}
	return int(place%uint64(s.Of)) == s.Index
}
