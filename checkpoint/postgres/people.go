package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// Alone makes what f changes in one transaction, while no worker changes any row of the ledger, see [checkpoint.Store].
func (s *Store) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.alone(func(w *working) error {
		s.seen = nil
		// if it was copied to another place since it was opened, nobody would look for the changes here
		err := inTurn(s.stillHere, func() error { return f(w) }, w.store)
		if mayNot(err) {
			err = s.Explain(err) // a refusal, after which the ledger goes on
		}
		return err
	})
	if err == nil {
		s.identity = w.identity
		if len(w.erased) > 0 {
			s.claims.drop(w.erased...)
			s.erased = true
		}
	}
	return err
}

// alone changes the ledger in one transaction, while no worker changes any row of it.
func (s *Store) alone(f func(*working) error) (w *working, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	err = s.change(func() error {
		return s.conn.Together(func() error {
			b := &pgx.Batch{}
			b.Queue(`SELECT pg_advisory_xact_lock($1, $2)`, deciding, s.ledger)
			s.number(b, false)
			if err := s.conn.Send(b); err != nil {
				return err
			}
			w = s.newWorking(true)
			return f(w)
		})
	})
	if isOneOf(err, notAsSeen, taken, twice) {
		err = s.fail(errors.New("rows were changed by others though they were locked"))
	}
	return w, err
}

// SetMoved makes later openings for writing refuse the ledger. It fails while a run uses the ledger, and while answers
// to rows in doubt may come: the copy does not know who waits for them.
func (s *Store) SetMoved(to string) error {
	return s.Alone(context.Background(), func(checkpoint.Tx) error {
		held := false
		err := inTurn(s.lockLedger, s.noOtherRun, func() error {
			return s.conn.One(`SELECT EXISTS (SELECT FROM leadferry.lead_rows r JOIN leadferry.workers w USING (worker)
				WHERE r.ledger = $1 AND state = 4 AND worker <> $2 AND leadferry.may_settle(w))`, s.ledger, s.worker).
				Scan(&held)
		})
		if err == nil && held {
			err = s.Refuse(checkpoint.ErrLocked, "has rows in doubt whose answers may still come", checkpoint.HeldHint)
		}
		if err != nil {
			return err
		}
		_, err = s.conn.Do(`WITH fenced AS (`+fenceSQL+`)
			UPDATE leadferry.ledgers SET moved_to = $3 WHERE ledger = $1`, s.ledger, s.worker, to)
		return err
	})
}

// Contents returns all that is known.
func (s *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	forgotten, err := rowsOf[checkpoint.KeptBlock](ctx, s,
		`SELECT hash, nullif(fold, hash), at FROM leadferry.forgotten WHERE ledger = $1`, s.ledger)
	if err != nil {
		return nil, err
	}
	var secret []byte
	if err := s.queryRow(ctx, []any{&secret}, secretSQL, s.ledger); err != nil {
		return nil, err
	}
	return checkpoint.ContentsOf(ctx, s, secret, forgotten)
}

// Fill makes a ledger, under an ID of its own, from what another checkpoint (name) knows. It goes on with what a
// copy of the same checkpoint left. Any other ledger that knows something is an error; with [Options].Require, so is an
// empty one. Runs refuse the ledger before from is called.
func Fill(at string, from func() (*checkpoint.Contents, error), name string, t checkpoint.Target, o Options) error {
	o.Command, o.fills = "copy", name
	s, err := Open(at, t, o)
	if err != nil {
		return err
	}
	c, err := from()
	if err == nil {
		s.digests = checkpoint.NewDigester(c.Secret)
		err = checkpoint.TakeOver(context.Background(), s, c)
	}
	if err == nil {
		err = s.Alone(context.Background(), func(checkpoint.Tx) error {
			_, err := s.conn.Do(`WITH filled AS (UPDATE leadferry.ledgers SET filling = '' WHERE ledger = $1)
				UPDATE leadferry.digest_keys SET secret = $2 WHERE ledger = $1`, s.ledger, c.Secret)
			return err
		})
	}
	return errors.Join(err, s.Close())
}

// reserve makes runs refuse a ledger while it is being filled. It does nothing for other ledgers.
func (s *Store) reserve() error {
	if s.o.fills == "" {
		return nil
	}
	n, err := s.conn.Do(`UPDATE leadferry.ledgers SET filling = $2 WHERE ledger = $1 AND (filling = $2
		OR NOT $3 AND moved_to = '' AND filling = '' AND NOT EXISTS (SELECT FROM leadferry.lead_rows WHERE ledger = $1)
			AND NOT EXISTS (SELECT FROM leadferry.forgotten WHERE ledger = $1)
			AND NOT EXISTS (SELECT FROM leadferry.workers WHERE ledger = $1 AND run <> '' AND ended IS NULL))`,
		s.ledger, s.o.fills, s.o.Require)
	if err == nil && n == 0 {
		err = s.Refuse(checkpoint.ErrLocked, "knows something of this target already, or is used by a run",
			"copy into an empty one")
	}
	return err
}
