package postgres

import (
	"context"
	_ "embed"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

// Alone makes what f changes in one transaction, while no worker changes any row of the ledger, see [checkpoint.Store].
func (s *Store) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.alone(func(c *change) error {
		// what was copied to another place since this was opened nobody would look for here
		err := s.stillHere()
		if errors.As(err, new(*checkpoint.OpenError)) {
			err = &checkpoint.ListFailure{Err: err}
		}
		if err != nil {
			return err
		}
		s.seen.clear()
		return inTurn(func() error { return c.Load(nil, nil) }, func() error { return f(c) }, c.store)
	})
	if mayNot(err) {
		return s.refuse(checkpoint.ErrPlace, "this user may not remove rows",
			"have the owner of the schema forget them")
	}
	if err == nil {
		s.identity = c.identity
		if len(c.erased) > 0 {
			s.claims.drop(c.erased...)
			s.claimed.Store(true)
			s.erased.Store(true)
		}
	}
	return err
}

// alone changes the ledger in one transaction, in which no worker changes any row of it.
func (s *Store) alone(f func(*change) error) (c *change, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	err = s.change(func() error {
		return s.writer.Together(func() error {
			b := &pgx.Batch{}
			b.Queue(`SELECT pg_advisory_xact_lock($1, $2)`, deciding, s.ledger)
			s.number(b, false)
			if err := s.writer.Send(b); err != nil {
				return err
			}
			c = &change{s: s, identity: s.identity, working: &working{}}
			return f(c)
		})
	})
	if isOneOf(err, notAsSeen, taken, twice) {
		err = s.fail(errors.New("rows were changed by others though they were locked"))
	}
	return c, err
}

// change is the ledger inside a transaction of its own, see [checkpoint.Tx].
type change struct {
	*working // what was loaded last
	s        *Store
	identity          // as it is to be
	erased   []string // keys
}

// Load stores what was changed of the keys before, and reads others.
func (c *change) Load(keys, leads []string) error {
	if err := c.store(); err != nil {
		return err
	}
	return c.read(&wanted{keys: keys, leads: leads})
}

// read reads rows, owners of leads, and which workers may still send.
func (c *change) read(q *wanted) error {
	s := c.s
	f, err := s.find(s.writer, q)
	if err != nil {
		return err
	}
	w := s.newWorking()
	w.sure, w.links, w.mine, w.notes = true, f.by[byLink], s.claims.mine, c
	for _, key := range q.keys {
		w.base[key] = f.row(key)
	}
	w.rows = maps.Clone(w.base)
	for lead, owners := range f.by[byLead] {
		w.owners[lead] = owners[0].key
	}
	c.working = w
	w.busy, err = server.All(s.writer, pgx.RowTo[int64], `SELECT worker FROM leadferry.workers w
		WHERE ledger = $1 AND leadferry.may_settle(w)`, s.ledger)
	return err
}

func (c *change) store() error {
	for some := range slices.Chunk(c.writes(), mostChanges) {
		b := &pgx.Batch{}
		c.s.put(b, some, true)
		if err := c.s.writer.Send(b); err != nil {
			return err
		}
		for _, one := range some {
			c.s.claims.drop(one.key)
		}
	}
	return nil
}

func (c *change) Under(key string) (checkpoint.KeptKey, *checkpoint.Kept, error) {
	r := c.rows[key]
	return r.KeptKey, r.visible(), nil
}

func (c *change) Held(key string) bool { return c.held(c.rows[key]) }

func (c *change) Put(key string, k checkpoint.KeptKey) error {
	next := *c.rows[key]
	next.KeptKey, next.worker = k, c.worker
	c.put(&next)
	return nil
}

func (c *change) Notes(prefix string) ([]checkpoint.Note, error) {
	return c.s.notes(c.s.writer, prefix)
}

func (c *change) Note(name string) (value []byte, err error) {
	err = c.s.writer.One(`SELECT max(value) FROM leadferry.notes WHERE ledger = $1 AND name = $2`, c.s.ledger, name).
		Scan(&value)
	return value, err
}

func (c *change) PutNote(n checkpoint.Note) (err error) {
	if n.Value == nil {
		_, err = c.s.writer.Do(`DELETE FROM leadferry.notes WHERE ledger = $1 AND name = $2`, c.s.ledger, n.Name)
	} else {
		_, err = c.s.writer.Do(`INSERT INTO leadferry.notes (ledger, name, value) VALUES ($1, $2, $3)
			ON CONFLICT (ledger, name) DO UPDATE SET value = excluded.value`, c.s.ledger, n.Name, string(n.Value))
	}
	return err
}

func (c *change) InDoubt(after string) ([]string, error) {
	keys, err := server.All(c.s.writer, pgx.RowTo[[]byte], `SELECT key FROM leadferry.lead_rows
		WHERE ledger = $1 AND key > $2 AND state = 4 ORDER BY key LIMIT 512`, c.s.ledger, []byte(after))
	return each(keys, func(key []byte) string { return string(key) }), err
}

// Lack notes what is missing, and fences every other worker: a run that has begun with a complete ledger would send
// rows whose leads are missing. An empty text says that nothing is missing any more.
func (c *change) Lack(missing string) error {
	if missing != "" {
		c.missing = missing
		err := c.s.writer.One(`UPDATE leadferry.ledgers SET missing = $2, since = nextval('leadferry.commits')
			WHERE ledger = $1 RETURNING since`, c.s.ledger, missing).Scan(&c.since)
		if err == nil { // in this order, in which workers begin, too
			_, err = c.s.writer.Do(fenceSQL, c.s.ledger, c.s.worker)
		}
		return err
	}
	n, err := c.s.writer.Do(`UPDATE leadferry.ledgers SET missing = '', since = 0 WHERE ledger = $1 AND since = $2`,
		c.s.ledger, int64(c.since))
	if err == nil && n == 0 {
		err = &checkpoint.ListFailure{Err: c.s.refuse(checkpoint.ErrRolledBack,
			"has lost more since then, or somebody has given that up already",
			"look at it once more: leadferry checkpoint check")}
	}
	c.missing, c.since = "", 0
	return err
}

//go:embed recount.sql
var recountSQL string

// Renew gives the ledger a new ID, and fences every other worker. What is not there any more counts no more.
func (c *change) Renew() error {
	c.id = checkpoint.NewID()
	b := &pgx.Batch{}
	b.Queue(`UPDATE leadferry.ledgers SET id = $2, moved_to = '' WHERE ledger = $1`, c.s.ledger, c.id)
	b.Queue(recountSQL, c.s.ledger)
	b.Queue(fenceSQL, c.s.ledger, c.s.worker)
	return c.s.writer.Send(b)
}

//go:embed erase.sql
var eraseSQL string

// Erase removes keys. What the server's log of changes and its backups hold stays there until they go.
func (c *change) Erase(keys []string) error {
	if err := c.Load(nil, nil); err != nil {
		return err
	}
	c.erased = append(c.erased, keys...)
	_, err := c.s.writer.Do(eraseSQL, c.s.ledger, bytesOf(keys), each(keys, c.s.digests.Blocked), c.s.worker)
	return err
}

func (c *change) Block(b checkpoint.KeptBlock) error {
	fold := b.Fold
	if len(fold) == 0 { // it is its own
		fold = b.Hash
	}
	_, err := c.s.writer.Do(`WITH kept AS (
			INSERT INTO leadferry.forgotten (ledger, hash, fold, at) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING RETURNING 1
		) UPDATE leadferry.workers SET forgotten = forgotten + 1 WHERE worker = $5 AND EXISTS (SELECT FROM kept)`,
		c.s.ledger, b.Hash, fold, b.At, c.s.worker)
	return err
}

// Moved is where the leads of the ledger are kept now, or "".
func (s *Store) Moved() (to string) {
	_ = s.one(context.Background(), []any{&to}, `SELECT moved_to FROM leadferry.ledgers WHERE ledger = $1`, s.ledger)
	return to
}

// SetMoved makes later openings for writing refuse the ledger. It is refused while a run uses it.
func (s *Store) SetMoved(to string) error {
	return s.Alone(context.Background(), func(checkpoint.Tx) error {
		if err := inTurn(s.lockLedger, s.noOtherRun); err != nil {
			return err
		}
		_, err := s.writer.Do(`WITH fenced AS (`+fenceSQL+`)
			UPDATE leadferry.ledgers SET moved_to = $3 WHERE ledger = $1`, s.ledger, s.worker, to)
		return err
	})
}

// Contents are all that is known.
func (s *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	var secret []byte
	var forgotten []checkpoint.KeptBlock
	err := s.read(ctx, func(c *server.Session) (err error) {
		forgotten, err = server.All(c, pgx.RowToStructByPos[checkpoint.KeptBlock],
			`SELECT hash, nullif(fold, hash), at FROM leadferry.forgotten WHERE ledger = $1`, s.ledger)
		return errors.Join(err, c.One(secretSQL, s.ledger).Scan(&secret))
	})
	if err != nil {
		return nil, err
	}
	return checkpoint.ContentsOf(ctx, s, secret, forgotten)
}

// Fill makes a ledger of what another checkpoint knows, under an ID of its own. It goes on with what a copy from there
// has left. Any other ledger that knows something is an error and, where the copy resumes, one that is not the copy.
// begun is called once runs are refused there, before anything is read.
func Fill(name string, from func() (*checkpoint.Contents, error), fromName string, t checkpoint.Target,
	begun func() error, o Options,
) error {
	o.Require, o.ReadOnly, o.Command, o.fills = o.Resumes != "", false, "copy", fromName
	s, err := Open(name, t, o)
	if err != nil {
		return err
	}
	return errors.Join(s.fill(from, begun), s.Close())
}

func (s *Store) fill(from func() (*checkpoint.Contents, error), begun func() error) error {
	if err := begun(); err != nil {
		return err
	}
	c, err := from()
	if err != nil {
		return err
	}
	s.digests = checkpoint.NewDigester(c.Secret)
	err = s.execAlone(`UPDATE leadferry.digest_keys SET secret = $2 WHERE ledger = $1`, s.ledger, c.Secret)
	if err == nil {
		err = checkpoint.TakeOver(context.Background(), s, c)
	}
	if err == nil {
		err = s.execAlone(`UPDATE leadferry.ledgers SET filling = '' WHERE ledger = $1`, s.ledger)
	}
	return err
}

// execAlone carries out one statement while no worker changes the ledger.
func (s *Store) execAlone(statement string, args ...any) error {
	return s.Alone(context.Background(), func(checkpoint.Tx) error {
		_, err := s.writer.Do(statement, args...)
		return err
	})
}

// reserve has runs refuse a ledger that is being filled until it is complete. It does nothing for any other.
func (s *Store) reserve() error {
	from := s.o.fills
	if from == "" {
		return nil
	}
	var moved, filling, lineage string
	var known bool
	err := s.writer.One(`SELECT moved_to, filling, coalesce((SELECT value FROM leadferry.notes n
			WHERE n.ledger = l.ledger AND n.name = $2), ''), EXISTS (SELECT FROM leadferry.lead_rows WHERE ledger = $1)
			OR EXISTS (SELECT FROM leadferry.forgotten WHERE ledger = $1)
			OR EXISTS (SELECT FROM leadferry.workers WHERE ledger = $1 AND run <> '' AND ended IS NULL)
		FROM leadferry.ledgers l WHERE ledger = $1`, s.ledger, checkpoint.LineageNote).
		Scan(&moved, &filling, &lineage, &known)
	switch {
	case err != nil:
		return err
	case filling == from:
		return nil
	case s.o.Resumes != "" && filling == "" && !strings.Contains(lineage, strconv.Quote(s.o.Resumes)):
		return s.refuse(checkpoint.ErrMissing, "has not what was copied to it from "+from, "restore it")
	case known || moved != "" || filling != "":
		return s.refuse(checkpoint.ErrLocked, "knows something of this target already, or is used by a run",
			"copy into an empty one")
	}
	_, err = s.writer.Do(`UPDATE leadferry.ledgers SET filling = $2 WHERE ledger = $1`, s.ledger, from)
	return err
}
