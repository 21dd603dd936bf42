package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// Alone makes what f changes in one transaction, while no worker changes any row of the ledger, see [checkpoint.Store].
func (s *Store) Alone(ctx context.Context, f func(checkpoint.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c *change
	err := s.alone(func() error {
		c = &change{s: s, ctx: ctx, identity: s.identity}
		if err := c.Load(nil, nil); err != nil {
			return err
		}
		if err := f(c); err != nil {
			return err
		}
		return c.store()
	})
	if mayNot(err) {
		return s.refuse(checkpoint.ErrPlace, "this user may not remove rows",
			"have the owner of the schema forget them")
	}
	if err == nil {
		s.identity = c.identity
		if len(c.erased) > 0 {
			s.claims.drop(slices.Values(c.erased))
			s.claimed.Store(true)
			s.erased.Store(true)
		}
	}
	return err
}

// alone changes the ledger in one transaction, in which no worker changes any row of it.
func (s *Store) alone(f func() error) error {
	if err := s.usable(); err != nil {
		return err
	}
	err := s.change(func() error {
		return pgx.BeginFunc(context.Background(), s.writer.Conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(context.Background(), `SELECT pg_advisory_xact_lock($1, $2)`, deciding,
				s.ledger); err != nil {
				return err
			}
			s.seen.clear()
			// what was copied to another place since this was opened nobody would look for here
			err := s.stillHere(context.Background(), s.writer.Conn)
			if errors.As(err, new(*checkpoint.OpenError)) {
				err = &checkpoint.ListFailure{Err: err}
			}
			if err != nil {
				return err
			}
			b := &pgx.Batch{}
			s.number(b, false)
			if err := s.send(b); err != nil {
				return err
			}
			return f()
		})
	})
	if isOneOf(err, notAsSeen, taken, twice) {
		err = s.fail(errors.New("rows were changed by others though they were locked"))
	}
	return err
}

// change is the ledger inside a transaction of its own, see [checkpoint.Tx].
type change struct {
	*working // what was loaded last
	base     map[string]*row
	s        *Store
	ctx      context.Context
	identity          // as it is to be
	erased   []string // keys
}

// Load stores what was changed of the keys before, and reads others.
func (c *change) Load(keys, leads []string) (err error) {
	if c.working != nil {
		if err := c.store(); err != nil {
			return err
		}
	}
	q := &wanted{}
	for i, key := range keys {
		lead := ""
		if leads != nil {
			lead = leads[i]
		}
		c.s.want(q, key, lead)
	}
	c.working, c.base, err = c.s.working(q)
	return err
}

func (c *change) store() error {
	return errors.Join(c.s.keep(c.working, c.base), c.s.keepNotes(c.working))
}

// row is what is stored under a key.
func (c *change) row(key string) (*row, error) {
	if c.rows[key] == nil {
		if err := c.Load([]string{key}, nil); err != nil {
			return nil, err
		}
	}
	return c.rows[key], nil
}

// Under is what is stored under a key, and what look-ups show of it.
func (c *change) Under(key string) (checkpoint.KeptKey, *checkpoint.Kept, error) {
	r, err := c.row(key)
	if err != nil {
		return checkpoint.KeptKey{}, nil, err
	}
	return r.KeptKey, r.visible(), nil
}

// Held says that another worker may still send what it has claimed under a key.
func (c *change) Held(key string) bool {
	return c.held(c.rows[key])
}

// Put stores something else under a key.
func (c *change) Put(key string, k checkpoint.KeptKey) error {
	r, err := c.row(key)
	if err != nil {
		return err
	}
	next := *r
	next.KeptKey, next.worker = k, c.worker
	c.put(&next)
	return nil
}

// Notes are those whose names begin so.
func (c *change) Notes(prefix string) ([]checkpoint.Note, error) {
	if err := c.Load(nil, nil); err != nil {
		return nil, err
	}
	all, err := c.s.notes(c.ctx, c.s.writer.Conn, beginSo, prefix)
	for _, n := range all {
		c.notes[n.Name], c.before[n.Name] = n.Value, n.Value
	}
	return all, err
}

// Note is one of the ledger's notes.
func (c *change) Note(name string) ([]byte, error) {
	if value, read := c.notes[name]; read {
		return value, nil
	}
	all, err := c.s.notes(c.ctx, c.s.writer.Conn, `name = $2`, name)
	for _, n := range all {
		c.notes[name], c.before[name] = n.Value, n.Value
	}
	return c.notes[name], err
}

// PutNote stores a note.
func (c *change) PutNote(n checkpoint.Note) error {
	if _, err := c.Note(n.Name); err != nil {
		return err
	}
	return c.working.PutNote(n)
}

// Doubts stores something else under keys in doubt.
func (c *change) Doubts(f func(checkpoint.KeptKey) checkpoint.KeptKey) error {
	for after := []byte{}; ; {
		rows, err := c.s.writer.Query(c.ctx, `SELECT key FROM leadferry.lead_rows WHERE ledger = $1 AND key > $2 AND
			state = 4 ORDER BY key LIMIT 512`, c.s.ledger, after)
		if err != nil {
			return err
		}
		keys, err := collectKeys(rows)
		if err != nil || len(keys) == 0 {
			return err
		}
		after = []byte(keys[len(keys)-1])
		if err := c.Load(keys, nil); err != nil {
			return err
		}
		for _, key := range keys {
			if was := c.rows[key].KeptKey; was.Intent != nil {
				if is := f(was); is != was {
					if err := c.Put(key, is); err != nil {
						return err
					}
				}
			}
		}
	}
}

// Lack notes what is missing.
func (c *change) Lack(missing string) error {
	if missing != "" {
		c.missing = missing
		return c.s.writer.QueryRow(c.ctx, `UPDATE leadferry.ledgers SET missing = $2, since =
			nextval('leadferry.commits') WHERE ledger = $1 RETURNING since`,
			c.s.ledger, missing).Scan(&c.since)
	}
	tag, err := c.s.writer.Exec(c.ctx, `UPDATE leadferry.ledgers SET missing = '', since = 0 WHERE ledger = $1 AND since
		= $2`, c.s.ledger, int64(c.since))
	if err == nil && tag.RowsAffected() == 0 {
		err = &checkpoint.ListFailure{Err: c.s.refuse(checkpoint.ErrRolledBack,
			"has lost more since then, or somebody has given that up already",
			"look at it once more: leadferry checkpoint check")}
	}
	c.missing, c.since = "", 0
	return err
}

// Renew gives the ledger a new ID, and fences every other worker. What is not there any more counts no more.
func (c *change) Renew() error {
	c.id = newID()
	b := &pgx.Batch{}
	b.Queue(`UPDATE leadferry.ledgers SET id = $2, moved_to = '' WHERE ledger = $1`, c.s.ledger, c.id)
	b.Queue(recountSQL, c.s.ledger)
	b.Queue(stopSQL, c.s.ledger, c.s.worker)
	return c.s.send(b)
}

// Erase removes keys. What the server's log of changes and its backups hold stays there until they go.
func (c *change) Erase(keys []string) error {
	if err := c.Load(keys, nil); err != nil {
		return err
	}
	c.erased = append(c.erased, keys...)
	states, hashes, leads := map[checkpoint.State]int{}, [][]byte{}, []string{}
	for _, key := range keys {
		r := c.rows[key]
		states[r.state()]++
		hashes = append(hashes, c.s.digests.Blocked(key))
		if r.lead() != "" {
			leads = append(leads, checkpoint.Clean(r.lead()))
		}
	}
	b := &pgx.Batch{}
	b.Queue(`DELETE FROM leadferry.lead_rows WHERE ledger = $1 AND key = ANY ($2)`, c.s.ledger, bytesOf(keys))
	b.Queue(`DELETE FROM leadferry.lead_ids WHERE ledger = $1 AND (key = ANY ($2) OR lead_id = ANY ($3))`, c.s.ledger,
		bytesOf(keys), leads)
	b.Queue(`DELETE FROM leadferry.forgotten WHERE ledger = $1 AND hash = ANY ($2)`, c.s.ledger, hashes)
	b.Queue(`UPDATE leadferry.workers SET created = created - $2, partial = partial - $3, rejected = rejected - $4,
		in_doubt = in_doubt - $5, not_made = not_made - $6, forgotten = forgotten - $7 WHERE worker = $1`,
		c.s.worker, states[checkpoint.Created], states[checkpoint.Partial], states[checkpoint.Rejected],
		states[checkpoint.InDoubt],
		states[checkpoint.NotMade], states[checkpoint.Forgotten])
	return errors.Join(c.s.writer.SendBatch(c.ctx, b).Close(), c.Load(nil, nil))
}

// Block keeps what is left of a forgotten key.
func (c *change) Block(b checkpoint.KeptBlock) error {
	fold := b.Fold
	if len(fold) == 0 { // it is its own
		fold = b.Hash
	}
	_, err := c.s.writer.Exec(c.ctx, `WITH kept AS (INSERT INTO leadferry.forgotten (ledger, hash, fold, at) VALUES ($1,
		$2, $3, $4) ON CONFLICT DO NOTHING RETURNING 1)
		UPDATE leadferry.workers SET forgotten = forgotten + 1 WHERE worker = $5 AND EXISTS (SELECT 1 FROM
		kept)`, c.s.ledger, b.Hash, fold, b.At, c.s.worker)
	return err
}

// keep stores the rows that have changed.
func (s *Store) keep(w *working, base map[string]*row) error {
	for some := range slices.Chunk(s.writes(w, base), mostChanges) {
		b := &pgx.Batch{}
		s.put(b, some, true)
		if err := s.send(b); err != nil {
			return err
		}
		for i := range some {
			s.claims.note(some[i].row, false, 0)
		}
	}
	return nil
}

func collectKeys(rows pgx.Rows) ([]string, error) {
	keys, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = string(key)
	}
	return all, err
}

// vacuum frees the room of what was removed, so that it is written over. It is no error if this user may not. Anyone
// who calls it holds the lock of the writer.
func (s *Store) vacuum() {
	for _, table := range []string{"lead_rows", "lead_ids", "notes"} {
		_, _ = s.writer.Exec(context.Background(), `VACUUM leadferry.`+table)
	}
	s.writer.Warned()
}
