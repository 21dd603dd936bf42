package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// Moved is where the leads of the ledger are kept now, or "".
func (s *Store) Moved() (to string) {
	_ = s.read(context.Background(), func(c *pgx.Conn) error {
		return c.QueryRow(context.Background(), `SELECT moved_to FROM leadferry.ledgers WHERE ledger = $1`,
			s.ledger).Scan(&to)
	})
	return to
}

// SetMoved makes every later opening for writing refuse the ledger, and waits for what is being
// written. It is refused while a run uses it.
func (s *Store) SetMoved(to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alone(func() error {
		if err := s.lockLedger(context.Background(), s.writer.Conn); err != nil {
			return err
		}
		var run string
		err := s.writer.QueryRow(context.Background(), `SELECT run FROM leadferry.workers WHERE ledger = $1 AND run <>
			'' AND ended IS NULL
			AND beat > clock_timestamp() - $2 * interval '1 second' LIMIT
			1`, s.ledger, int(lifeTerm/time.Second)).Scan(&run)
		if err == nil {
			return s.refuse(checkpoint.ErrLocked, "the run "+checkpoint.Restore(run)+" uses it",
				"wait for it to end, then copy")
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		_, err = s.writer.Exec(context.Background(), `WITH fenced AS (UPDATE leadferry.workers SET fenced =
			clock_timestamp() WHERE ledger = $1 AND ended IS NULL AND worker <> $3)
			UPDATE leadferry.ledgers SET moved_to = $2 WHERE ledger = $1`, s.ledger, to, s.worker)
		return err
	})
}

// Contents are all that is known.
func (s *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	var secret []byte
	var forgotten []checkpoint.KeptBlock
	err := s.read(ctx, func(c *pgx.Conn) error {
		err := c.QueryRow(ctx, `SELECT secret FROM leadferry.digest_keys WHERE ledger = $1`, s.ledger).Scan(&secret)
		if err != nil {
			return err
		}
		rows, err := c.Query(ctx, `SELECT hash, nullif(fold, hash), at FROM leadferry.forgotten WHERE ledger = $1`,
			s.ledger)
		if err != nil {
			return err
		}
		forgotten, err = pgx.CollectRows(rows, pgx.RowToStructByPos[checkpoint.KeptBlock])
		return err
	})
	if err != nil {
		return nil, err
	}
	return checkpoint.ContentsOf(ctx, s, secret, forgotten)
}

// Fill makes a ledger of what another checkpoint knows, under an ID of its own that records the other's. One that a
// copy from there has left is made anew; any other one that is there, and knows something, is an error, and where the
// copy resumes so is one that is not the copy: that may have known more. begun is called once runs are refused there
// and before anything is read.
func Fill(name string, from func() (*checkpoint.Contents, error), fromName string, t checkpoint.Target,
	begun func() error, o Options,
) (err error) {
	if err := reserveFor(name, fromName, t, o); err != nil {
		return err
	}
	if err := begun(); err != nil {
		return err
	}
	c, err := from()
	if err != nil {
		return err
	}
	o.Require, o.ReadOnly, o.Command, o.fills = true, false, "copy", fromName
	s, err := Open(name, t, o)
	if err != nil {
		return err
	}
	err = s.inherit(c.Secret)
	if err == nil {
		err = checkpoint.TakeOver(context.Background(), s, c)
	}
	if err == nil {
		err = s.execAlone(`UPDATE leadferry.ledgers SET filling = '' WHERE ledger = $1`, s.ledger)
	}
	return errors.Join(err, s.Close())
}

// execAlone carries out one statement while no worker changes the ledger.
func (s *Store) execAlone(statement string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alone(func() error {
		_, err := s.writer.Exec(context.Background(), statement, args...)
		return err
	})
}

// inherit takes over the key of the digests of another checkpoint.
func (s *Store) inherit(secret []byte) error {
	s.digests = checkpoint.NewDigester(secret)
	return s.execAlone(`UPDATE leadferry.digest_keys SET secret = $2 WHERE ledger = $1`, s.ledger, secret)
}

// reserveFor has runs refuse the ledger until it is complete, and makes it where it is not there.
func reserveFor(name, from string, t checkpoint.Target, o Options) error {
	o.Require, o.ReadOnly = o.Resumes != "", false
	s, err := connect(name, t, o)
	if err != nil {
		return err
	}
	defer s.writer.Close()
	ctx := context.Background()
	if err := errors.Join(s.writer.Promises(false), s.prepare(ctx)); err != nil {
		return err
	}
	if err := s.findLedger(ctx); err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.writer.Conn, func(tx pgx.Tx) error {
		var moved, filling, lineage string
		err := tx.QueryRow(ctx, `SELECT moved_to, filling, coalesce((SELECT value FROM leadferry.notes n WHERE n.ledger
			= l.ledger AND n.name = $2), '')
			FROM leadferry.ledgers l WHERE ledger = $1 FOR
			UPDATE`, s.ledger, checkpoint.LineageNote).Scan(&moved, &filling, &lineage)
		switch {
		case err != nil:
			return err
		case filling == from:
			return nil
		case s.o.Resumes != "" && filling == "" && !strings.Contains(lineage, strconv.Quote(s.o.Resumes)):
			return s.refuse(checkpoint.ErrMissing, "has not what was copied to it from "+from, "restore it")
		}
		var known bool
		err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM leadferry.lead_rows WHERE ledger = $1) OR EXISTS (SELECT 1
			FROM leadferry.forgotten WHERE ledger = $1)
			OR EXISTS (SELECT 1 FROM leadferry.workers WHERE ledger = $1 AND run <> '' AND ended IS
			NULL)`, s.ledger).Scan(&known)
		if err != nil {
			return err
		}
		if known || moved != "" || filling != "" {
			return s.refuse(checkpoint.ErrLocked, "knows something of this target already, or is used by a run",
				"copy into an empty one")
		}
		_, err = tx.Exec(ctx, `UPDATE leadferry.ledgers SET filling = $2 WHERE ledger = $1`, s.ledger, from)
		return err
	})
	return s.serverError(err)
}
