package postgres

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

const (
	// claimTerm is how long a claim is good after its commit was asked for. Later, others may think its worker gone.
	claimTerm = 60 * time.Second
	// margin is what a claim must still be good for when its request leaves.
	margin = 30 * time.Second
	// heartbeat is how often a worker shows life. alive and may_settle (schema.sql) say how long that counts.
	heartbeat = 10 * time.Second
)

// claims are the keys that this process has claimed or holds in doubt, with the time until which it may send each.
type claims struct {
	good sync.Map    // key → until when, by sinceBoot
	lost atomic.Bool // the connection is lost, so nothing may be sent
	now  func() time.Duration
}

// hold makes a claim good for claimTerm from when its commit was asked for.
func (c *claims) hold(asked time.Duration, key string) { c.good.Store(key, asked+claimTerm) }

func (c *claims) drop(keys ...string) {
	for _, key := range keys {
		c.good.Delete(key)
	}
}

// until returns the end of the time when a claim is good. is: this process has the claim.
func (c *claims) until(key string) (end time.Duration, is bool) {
	good, _ := c.good.Load(key)
	end, is = good.(time.Duration)
	return end, is
}

// maySend reports whether a claim is good now.
func (c *claims) maySend(key string) bool {
	end, _ := c.until(key)
	return !c.lost.Load() && c.now() < end-margin
}

// Guard returns nil if a request for the claim of a key may leave now, see [checkpoint.Store]. It renews an old claim,
// and waits while another goroutine connects again.
func (s *Store) Guard(ctx context.Context, key string) error {
	for s.failed() != nil || !s.claims.maySend(key) { // after a renewal, too: its answer may have come late
		if err := cmp.Or(s.renew(key), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// renew makes a claim good for another term, by a commit that finds the claim stored.
func (s *Store) renew(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil || s.claims.maySend(key) { // the connection is whole again
		return err
	}
	asked := s.claims.now()
	err := s.change(func() error {
		b := &pgx.Batch{}
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1, $2)`, deciding, s.ledger)
		s.number(b, true)
		b.Queue(`SELECT leadferry.must(EXISTS (SELECT FROM leadferry.lead_rows
			WHERE ledger = $1 AND key = $2 AND worker = $3 AND state = 4), '`+notAsSeen+`')`, s.ledger, []byte(key), s.worker)
		return s.conn.Send(b)
	})
	switch {
	case isOneOf(err, isFenced):
		_, why, err := s.mayClaim()
		return cmp.Or(why, err)
	case isOneOf(err, notAsSeen):
		return fmt.Errorf("%w: the claim of a row is gone", checkpoint.ErrOtherMaySend)
	case err != nil:
		return err
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

// showLife makes no numbered commit: a number would say that the ledger has changed since its copy began.
func (s *Store) showLife() error {
	return s.read(context.Background(), func() error {
		_, err := s.conn.Do(`UPDATE leadferry.workers SET beat = clock_timestamp() WHERE worker = $1`, s.worker)
		return err
	})
}
