package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

// Alone makes what f changes in one transaction, while no worker changes any row of the ledger, see [checkpoint.Store].
func (s *Store) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.alone(func(w *working) error {
		s.seen = nil
		// if the ledger was copied away since it was opened, nobody would look for the changes here
		err := inTurn(s.stillHere, func() error { return f(w) }, w.store)
		if mayNot(err) {
			err = s.Explain(err) // makes it a refusal, so that the ledger goes on
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

// Load stores the changes so far, and reads other keys.
func (w *working) Load(keys, leads []string) error {
	if err := w.store(); err != nil {
		return err
	}
	return w.read(&wanted{keys: keys, leads: leads})
}

func (w *working) store() error {
	for some := range slices.Chunk(w.changed(), mostChanges) {
		b := &pgx.Batch{}
		w.write(b, some, true)
		if err := w.s.conn.Send(b); err != nil {
			return err
		}
		w.s.claims.drop(some...)
	}
	return nil
}

func (w *working) Under(key string) (checkpoint.KeptKey, *checkpoint.Kept, error) {
	r := w.rows[key]
	return r.KeptKey, r.visible(), nil
}

func (w *working) OtherMaySend(key string) bool { return w.otherMaySend(w.rows[key]) }

func (w *working) Put(key string, k checkpoint.KeptKey) error {
	next, old := *w.rows[key], w.rows[key].Intent
	if next.KeptKey = k; old == nil || k.Intent == nil || k.Intent.Seq != old.Seq { // else its worker may still send it
		next.worker = w.s.worker
	}
	w.put(&next)
	return nil
}

func (w *working) Notes(prefix string) ([]checkpoint.Note, error) {
	return server.All(w.s.conn, pgx.RowToStructByPos[checkpoint.Note], notesSQL, w.ledger, prefix)
}

func (w *working) Note(name string) (value []byte, err error) {
	err = w.s.conn.One(`SELECT max(value) FROM leadferry.notes WHERE ledger = $1 AND name = $2`, w.ledger, name).
		Scan(&value)
	return value, err
}

func (w *working) PutNote(n checkpoint.Note) (err error) {
	if n.Value == nil {
		_, err = w.s.conn.Do(`DELETE FROM leadferry.notes WHERE ledger = $1 AND name = $2`, w.ledger, n.Name)
	} else {
		_, err = w.s.conn.Do(`INSERT INTO leadferry.notes (ledger, name, value) VALUES ($1, $2, $3)
			ON CONFLICT (ledger, name) DO UPDATE SET value = excluded.value`, w.ledger, n.Name, string(n.Value))
	}
	return err
}

func (w *working) InDoubt(after string) ([]string, error) {
	keys, err := server.All(w.s.conn, pgx.RowTo[[]byte], `SELECT key FROM leadferry.lead_rows
		WHERE ledger = $1 AND key > $2 AND state = 4 ORDER BY key LIMIT 512`, w.ledger, []byte(after))
	return checkpoint.Map(keys, func(key []byte) string { return string(key) }), err
}

// Lack notes what is missing, and fences every other worker: a run that began with a complete ledger would send rows
// whose leads are missing. "" says that nothing is missing any more.
func (w *working) Lack(missing string) error {
	if missing != "" {
		w.missing = missing
		err := w.s.conn.One(`UPDATE leadferry.ledgers SET missing = $2, since = nextval('leadferry.commits')
			WHERE ledger = $1 RETURNING since`, w.ledger, missing).Scan(&w.since)
		if err == nil { // enlist locks in the same order: the ledger, then workers
			_, err = w.s.conn.Do(fenceSQL, w.ledger, w.s.worker)
		}
		return err
	}
	n, err := w.s.conn.Do(`UPDATE leadferry.ledgers SET missing = '', since = 0 WHERE ledger = $1 AND since = $2`,
		w.ledger, int64(w.since))
	if err == nil && n == 0 {
		err = w.s.Refuse(checkpoint.ErrRolledBack, "has lost more since then, or somebody has given that up already",
			"look at it once more: leadferry checkpoint check")
	}
	w.missing, w.since = "", 0
	return err
}

// Renew gives the ledger a new ID, and fences every other worker. Counts of tables that were emptied become zero.
func (w *working) Renew() error {
	w.id = checkpoint.NewID()
	b := &pgx.Batch{}
	b.Queue(`UPDATE leadferry.ledgers SET id = $2, moved_to = '' WHERE ledger = $1`, w.ledger, w.id)
	b.Queue(statement("recount"), w.ledger)
	b.Queue(fenceSQL, w.ledger, w.s.worker)
	return w.s.conn.Send(b)
}

// Erase removes keys. The server's WAL and its backups keep them until these are removed, too.
func (w *working) Erase(keys []string) error {
	if err := w.store(); err != nil {
		return err
	}
	w.begin()
	w.erased = append(w.erased, keys...)
	hashes := checkpoint.Map(keys, w.s.digests.Blocked)
	_, err := w.s.conn.Do(statement("erase"), w.ledger, bytesOf(keys), hashes, w.s.worker)
	return err
}

func (w *working) Block(b checkpoint.KeptBlock) error {
	fold := b.Fold
	if len(fold) == 0 { // the key is its own fold
		fold = b.Hash
	}
	_, err := w.s.conn.Do(`WITH kept AS (
			INSERT INTO leadferry.forgotten (ledger, hash, fold, at) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING RETURNING 1
		) UPDATE leadferry.workers SET forgotten = forgotten + 1 WHERE worker = $5 AND EXISTS (SELECT FROM kept)`,
		w.ledger, b.Hash, fold, b.At, w.s.worker)
	return err
}

// SetMoved makes later openings for writing refuse the ledger. It fails while a run uses the ledger, and while answers
// to rows in doubt may come, because the copy does not know who waits for them.
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

// Fill makes a ledger, with its own ID, from what another checkpoint (name) knows. It continues an interrupted Fill
// from the same checkpoint. Any other ledger that knows something is an error; with [Options].Require, so is an empty
// one. Runs refuse the ledger before from is called.
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
			AND NOT EXISTS (SELECT FROM leadferry.forgotten WHERE ledger = $1) AND NOT EXISTS (
				SELECT FROM leadferry.workers w WHERE ledger = $1 AND run <> '' AND leadferry.may_settle(w)))`,
		s.ledger, s.o.fills, s.o.Require)
	if err == nil && n == 0 {
		err = s.Refuse(checkpoint.ErrLocked, "knows something of this target already, or is used by a run",
			"copy into an empty one; if a run there was killed, try again in a quarter of an hour")
	}
	return err
}
