package postgres

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// Moved is where the leads of the ledger are kept now, or "".
func (s *Store) Moved() (to string) {
	_ = s.read(context.Background(), func(c *pgx.Conn) error {
		return c.QueryRow(context.Background(), `SELECT moved_to FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).Scan(&to)
	})
	return to
}

// SetMoved makes every later opening for writing refuse the ledger, and waits for what is being
// written. It is refused while a run uses it.
func (s *Store) SetMoved(to string) error {
	return s.alone(true, func() error {
		if err := s.lockLedger(context.Background(), s.writer.Conn); err != nil {
			return err
		}
		var run string
		err := s.writer.QueryRow(context.Background(), `SELECT run FROM leadferry.workers WHERE ledger = $1 AND run <> '' AND ended IS NULL
			AND beat > clock_timestamp() - $2 * interval '1 second' LIMIT 1`, s.ledger, int(lifeTerm/time.Second)).Scan(&run)
		if err == nil {
			return s.refuse(checkpoint.ErrLocked, "the run "+checkpoint.Restore(run)+" uses it", "wait for it to end, then copy")
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		_, err = s.writer.Exec(context.Background(), `WITH fenced AS (UPDATE leadferry.workers SET fenced = clock_timestamp() WHERE ledger = $1 AND ended IS NULL AND worker <> $3)
			UPDATE leadferry.ledgers SET moved_to = $2 WHERE ledger = $1`, s.ledger, to, s.worker)
		return err
	})
}

// Contents are all that is known.
func (s *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	c := &checkpoint.Contents{ID: s.id, Target: s.target, Missing: s.missing}
	c.Keys = func(yield func(checkpoint.KeptKey, error) bool) {
		for r, err := range s.rows(ctx, checkpoint.Unknown) {
			if err != nil {
				r = &row{}
			}
			if !yield(r.KeptKey, err) {
				return
			}
		}
	}
	var err error
	if c.Notes, err = s.Notes(ctx, ""); err != nil {
		return nil, err
	}
	if c.Lineage, err = checkpoint.LineageOf(ctx, s); err != nil {
		return nil, err
	}
	return c, s.read(ctx, func(conn *pgx.Conn) error { return s.lines(ctx, conn, c) })
}

// lines reads what stands under no key.
func (s *Store) lines(ctx context.Context, conn *pgx.Conn, c *checkpoint.Contents) error {
	err := conn.QueryRow(ctx, `SELECT secret, (SELECT coalesce(max(seq), 0) FROM leadferry.workers WHERE ledger = $1) FROM leadferry.digest_keys WHERE ledger = $1`, s.ledger).
		Scan(&c.Secret, &c.Commits)
	if err != nil {
		return err
	}
	rows, err := conn.Query(ctx, `SELECT hash, fold, at FROM leadferry.forgotten WHERE ledger = $1`, s.ledger)
	if err != nil {
		return err
	}
	c.Forgotten, err = pgx.CollectRows(rows, pgx.RowToStructByPos[checkpoint.KeptBlock])
	return err
}

// Fill makes a ledger of what another checkpoint knows, under an ID of its own that records the other's. One that a copy
// from there has left is made anew; any other one that is there, and knows something, is an error, and where the copy resumes
// so is one that is not the copy: that may have known more. begun is called once runs are refused there
// and before anything is read.
func Fill(name string, from func() (*checkpoint.Contents, error), fromName string, t checkpoint.Target, begun func() error, o Options) (err error) {
	o.Require, o.ReadOnly = o.Resumes != "", false
	s, err := connect(name, t, o)
	if err != nil {
		return err
	}
	defer s.writer.Close()
	ctx := context.Background()
	if err := errors.Join(s.writer.Promises(false), s.migrate(ctx)); err != nil {
		return err
	}
	if err := s.findLedger(ctx); err != nil {
		return err
	}
	if err := s.reserveFor(ctx, fromName); err != nil {
		return s.serverError(err)
	}
	if err := begun(); err != nil {
		return err
	}
	c, err := from()
	if err != nil {
		return err
	}
	return s.serverError(pgx.BeginFunc(ctx, s.writer.Conn, func(tx pgx.Tx) error {
		if err := s.stillFilling(ctx, tx, fromName); err != nil {
			return err
		}
		return s.fill(ctx, tx, c)
	}))
}

// reserveFor has runs refuse the ledger until it is complete.
func (s *Store) reserveFor(ctx context.Context, from string) error {
	return pgx.BeginFunc(ctx, s.writer.Conn, func(tx pgx.Tx) error {
		var moved, filling, lineage string
		err := tx.QueryRow(ctx, `SELECT moved_to, filling, coalesce((SELECT value FROM leadferry.notes n WHERE n.ledger = l.ledger AND n.name = $2), '')
			FROM leadferry.ledgers l WHERE ledger = $1 FOR UPDATE`, s.ledger, checkpoint.LineageNote).Scan(&moved, &filling, &lineage)
		switch {
		case err != nil:
			return err
		case filling == from:
			return nil
		case s.o.Resumes != "" && filling == "" && !strings.Contains(lineage, strconv.Quote(s.o.Resumes)):
			return s.refuse(checkpoint.ErrMissing, "has not what was copied to it from "+from, "restore it")
		}
		var known bool
		err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM leadferry.lead_rows WHERE ledger = $1) OR EXISTS (SELECT 1 FROM leadferry.forgotten WHERE ledger = $1)
			OR EXISTS (SELECT 1 FROM leadferry.workers WHERE ledger = $1 AND run <> '' AND ended IS NULL)`, s.ledger).Scan(&known)
		if err != nil {
			return err
		}
		if known || moved != "" || filling != "" {
			return s.refuse(checkpoint.ErrLocked, "knows something of this target already, or is used by a run", "copy into an empty one")
		}
		_, err = tx.Exec(ctx, `UPDATE leadferry.ledgers SET filling = $2 WHERE ledger = $1`, s.ledger, from)
		return err
	})
}

// stillFilling refuses a ledger that the same copy has filled meanwhile, begun twice.
func (s *Store) stillFilling(ctx context.Context, tx pgx.Tx, from string) error {
	var filling string
	err := tx.QueryRow(ctx, `SELECT filling FROM leadferry.ledgers WHERE ledger = $1 FOR UPDATE`, s.ledger).Scan(&filling)
	if err == nil && filling != from {
		err = s.refuse(checkpoint.ErrLocked, "was filled by another copy from "+from, "see leadferry checkpoint status")
	}
	return err
}

// fill writes the contents of another checkpoint in one transaction.
func (s *Store) fill(ctx context.Context, tx pgx.Tx, c *checkpoint.Contents) error {
	var seq int64
	if err := tx.QueryRow(ctx, `SELECT nextval('leadferry.commits')`).Scan(&seq); err != nil {
		return err
	}
	counts, owners, err := s.copyRows(ctx, tx, c, seq)
	if err != nil {
		return err
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"leadferry", "lead_ids"}, []string{"ledger", "lead_id", "key"}, owners); err != nil {
		return err
	}
	if err := s.copyLines(ctx, tx, c); err != nil {
		return err
	}
	since := int64(0)
	if c.Missing != "" {
		since = seq
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO leadferry.workers (ledger, command, ended, commits, seq, created, partial, rejected, in_doubt, not_made, forgotten)
		VALUES ($1, 'copy', clock_timestamp(), 1, $2, $3, $4, $5, $6, $7, $8)`, s.ledger, seq, counts[checkpoint.Created], counts[checkpoint.Partial],
		counts[checkpoint.Rejected], counts[checkpoint.InDoubt], counts[checkpoint.NotMade], len(c.Forgotten))
	b.Queue(`UPDATE leadferry.digest_keys SET secret = $2 WHERE ledger = $1`, s.ledger, c.Secret)
	lineage, err := c.Descent().Encode()
	if err != nil {
		return err
	}
	b.Queue(`UPDATE leadferry.ledgers SET filling = '', missing = $2, since = $3 WHERE ledger = $1`, s.ledger, c.Missing, since)
	b.Queue(putNoteSQL, s.ledger, checkpoint.LineageNote, string(lineage))
	return tx.SendBatch(ctx, b).Close()
}

// copyRows copies what stands under keys; nobody holds any of it.
func (s *Store) copyRows(ctx context.Context, tx pgx.Tx, c *checkpoint.Contents, seq int64) (counts map[checkpoint.State]int, owners pgx.CopyFromSource, err error) {
	counts = map[checkpoint.State]int{}
	var leads [][]any
	next, stop := iter.Pull2(c.Keys)
	defer stop()
	rows := pgx.CopyFromFunc(func() ([]any, error) {
		k, err, more := next()
		if err != nil || !more {
			return nil, err
		}
		r := &row{seq: uint64(seq), KeptKey: k}
		for _, rec := range []*checkpoint.Kept{r.Entry, r.Intent} {
			if rec != nil {
				rec.Seq, r.key = 0, rec.Key
			}
		}
		if lead := r.lead(); lead != "" {
			leads = append(leads, []any{s.ledger, checkpoint.Clean(lead), []byte(r.key)})
		}
		counts[r.state()]++
		var hidden []string // NULL where there are none
		if all := r.hidden(); all != nil {
			hidden = cleanTexts(all)
		}
		return append([]any{s.ledger, seq, hidden}, r.values()...), nil
	})
	names := append([]string{"ledger", "seq", "hidden"}, strings.Split(columns, ", ")...)
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"leadferry", "lead_rows"}, names, rows)
	return counts, pgx.CopyFromRows(leads), err
}

// copyLines copies what stands under no key.
func (s *Store) copyLines(ctx context.Context, tx pgx.Tx, c *checkpoint.Contents) error {
	for _, n := range c.Notes {
		if err := s.putNote(ctx, tx.Conn(), n); err != nil {
			return err
		}
	}
	for _, b := range c.Forgotten {
		if b.Fold == nil {
			b.Fold = []byte{}
		}
		if _, err := tx.Exec(ctx, `INSERT INTO leadferry.forgotten (ledger, hash, fold, at) VALUES ($1, $2, $3, $4)`, s.ledger, b.Hash, b.Fold, b.At); err != nil {
			return err
		}
	}
	return nil
}
