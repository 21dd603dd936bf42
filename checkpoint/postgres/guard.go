package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

const (
	// claimTerm is how long a claim is good after the commit that made it was asked for: then somebody may have
	// begun to think that its worker is gone.
	claimTerm = 60 * time.Second
	// leaving is how long a request may take from its last look at the claim to its first byte.
	leaving = 30 * time.Second
	// heartbeat is how often a worker with nothing to commit shows life. How long it counts as alive, and its requests
	// as under way, say alive and may_settle in schema.sql.
	heartbeat = 10 * time.Second
)

// claims are the keys that this process has claimed, or holds in doubt, and until when it may send them.
type claims struct {
	mu   sync.Mutex
	good map[string]time.Duration // until then, by sinceBoot
	lost chan struct{}            // closed once the connection is whole again; nil: it is
	now  func() time.Duration
}

func newClaims() *claims { return &claims{good: map[string]time.Duration{}, now: sinceBoot} }

// hold has a claim be good for a term from the time at which its commit was asked for.
func (c *claims) hold(asked time.Duration, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.good[key] = asked + claimTerm
}

func (c *claims) drop(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		delete(c.good, key)
	}
}

func (c *claims) mine(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, is := c.good[key]
	return is
}

// state says whether a claim is good, or what has to be waited for.
func (c *claims) state(key string) (good bool, lost chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost == nil && c.now() < c.good[key]-leaving, c.lost
}

// setLost says that nothing may be sent until the connection is whole again.
func (c *claims) setLost(lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case lost && c.lost == nil:
		c.lost = make(chan struct{})
	case !lost && c.lost != nil:
		close(c.lost)
		c.lost = nil
	}
}

// Guard returns nil when a request for what was claimed under a key may leave now. It waits while
// the server cannot be reached, and renews a claim that has become old. An error says that
// nothing may leave any more; that of ctx ends the wait.
func (s *Store) Guard(ctx context.Context, key string) error {
	for {
		good, lost := s.claims.state(key)
		switch {
		case s.failed() != nil:
			return s.failed()
		case good:
			return nil
		case lost != nil:
			select {
			case <-lost:
			case <-ctx.Done():
				return ctx.Err()
			}
		default:
			if err := s.renew(key); err != nil {
				return err
			}
		}
	}
}

// renew makes a claim good for another term, by a commit that shows that it is stored.
func (s *Store) renew(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	asked, stands := s.claims.now(), false
	err := s.change(func() error {
		b := &pgx.Batch{}
		s.number(b, true)
		b.Queue(`SELECT EXISTS (SELECT FROM leadferry.lead_rows
			WHERE ledger = $1 AND key = $2 AND worker = $3 AND state = 4)`, s.ledger, []byte(key), s.worker).
			QueryRow(func(r pgx.Row) error { return r.Scan(&stands) })
		return s.conn.Send(b)
	})
	switch {
	case isOneOf(err, isFenced):
		return s.whyFenced()
	case err != nil:
		return err
	case !stands:
		return fmt.Errorf("%w: the claim of a row is gone", checkpoint.ErrHeld)
	}
	s.claims.hold(asked, key)
	return nil
}

// beat shows life as long as the ledger is open, and finds out when the server is lost.
func (s *Store) beat() {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-s.ending:
			return
		case <-tick.C:
			_ = s.showLife() // the next caller gets its error
		}
	}
}

// showLife is no commit with a number: a copy that reads for minutes descends from the last change before it.
func (s *Store) showLife() error {
	return s.read(context.Background(), func() error {
		_, err := s.conn.Do(`UPDATE leadferry.workers SET beat = clock_timestamp() WHERE worker = $1`, s.worker)
		return err
	})
}
