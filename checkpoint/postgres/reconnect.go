package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// acknowledged is an error unless a commit went well. A warning is one: a wait for a standby that
// was cancelled ends so, and what it waited for may be lost.
func (s *Store) acknowledged(err error) error {
	if text := s.writer.warned(); err == nil && text != "" {
		return fmt.Errorf("%w: %s", errWarned, text)
	}
	return err
}

var (
	errWarned = errors.New("the server warned while it made a change durable")
	errAgain  = errors.New("nothing was done")
)

// again meets the server anew after an error of a commit, whose number is that of the worker's
// commits with it, and says whether it was made. An error that the connection outlives ends the
// use of the ledger, for it comes again.
func (s *Store) again(err error, number uint64) (made bool, _ error) {
	var list *checkpoint.ListError
	switch {
	case errors.As(err, &list) || isConflict(err):
		return false, err
	case !errors.Is(err, errWarned) && !s.writer.IsClosed():
		return false, s.trouble(err)
	}
	s.claims.setLost(true)
	end := time.Now().Add(s.patience())
	silent := s.writer.wasSilent()
	if silent { // it was waited for long enough
		end = time.Now()
	}
	s.writer.cut()
	interrupt := s.o.Interrupt
	for {
		made, fatal, met := s.meetAgain(number, max(time.Until(end), shortest))
		switch {
		case met == nil:
			s.claims.setLost(false)
			return made, nil
		case fatal || time.Now().After(end):
			if silent && !fatal {
				met = errSilent
			}
			failed := s.trouble(met)
			s.claims.setLost(false)
			return false, failed
		}
		select {
		case <-s.ending: // the ledger is being closed: what was under way stays unknown
			end = time.Time{}
		case <-interrupt: // once more
			end, interrupt = time.Now(), nil
		case <-time.After(pause):
		}
	}
}

const (
	// pause is how long a server that does not answer is left alone.
	pause = 500 * time.Millisecond
	// shortest is how long it may take to find out what became of a commit, at the least.
	shortest = 5 * time.Second
)

// patience is how long a server is waited for.
func (s *Store) patience() time.Duration {
	if s.o.Patience > 0 {
		return s.o.Patience
	}
	return time.Minute
}

// meetAgain connects and finds out whether the last commit was made. Before anything builds upon what is found there, a commit
// of its own makes durable all that came before. It waits for d at most for each answer.
func (s *Store) meetAgain(number uint64, d time.Duration) (made, fatal bool, err error) {
	fresh, err := s.meet()
	if err != nil {
		return false, false, err
	}
	fresh.waits(d)
	defer func() {
		if err != nil {
			fresh.close()
		}
	}()
	if err := s.fits(fresh); err != nil {
		return false, false, err
	}
	if err := s.over(fresh); err != nil {
		return false, false, err
	}
	n, err := s.standsAt(fresh, number)
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && n.commits != number && n.commits != s.commits:
		return false, true, s.lostCommits(fresh, "its server has lost commits that it had acknowledged: it was restored, or a standby without them took over")
	case err == nil && n.timeline != s.timeline && s.standby != waitedFor:
		return false, true, s.lostCommits(fresh, "its server's history has branched: it was restored, or a standby took over that was not waited for")
	case err != nil:
		return false, false, err
	}
	if err := fresh.prepare(s.statements()); err != nil {
		return false, false, err
	}
	fresh.waits(s.longest())
	s.writer.close()
	s.writer = fresh
	made = n.commits == number && number != s.commits
	s.commits = n.commits
	s.seq.Store(n.seq)
	return made, false, nil
}

// over makes sure that the process which served this worker before serves it no more: what it has not read yet, it might do
// after somebody has looked whether it was done.
func (s *Store) over(fresh *session) error {
	for end := time.Now().Add(pause); ; time.Sleep(pause / 50) {
		var left int
		err := fresh.QueryRow(context.Background(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE pid = $1 AND backend_start = $2 AND pid <> pg_backend_pid()`, s.writer.process, s.writer.began).Scan(&left)
		switch {
		case err != nil || left == 0:
			return err
		case time.Now().After(end):
			return errors.New("the process that served this worker does not end")
		}
	}
}

// account is what the server knows of the worker.
type account struct {
	commits, seq uint64
	timeline     int32
}

// standsAt is what the server knows of the worker, as of a commit of its own. Who asks for the worker's own row waits for
// whatever is left of an earlier one.
func (s *Store) standsAt(fresh *session, number uint64) (n account, err error) {
	ctx := context.Background()
	err = pgx.BeginFunc(ctx, fresh.Conn, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT commits, seq, `+timelineSQL+` FROM leadferry.workers WHERE worker = $1 AND ledger = $2 FOR UPDATE`, s.worker, s.ledger).
			Scan(&n.commits, &n.seq, &n.timeline)
		if err == nil && (n.commits == number || n.commits == s.commits) {
			_, err = tx.Exec(ctx, `UPDATE leadferry.workers SET beat = clock_timestamp() WHERE worker = $1`, s.worker)
		}
		return err
	})
	if text := fresh.warned(); err == nil && text != "" {
		err = fmt.Errorf("%w: %s", errWarned, text)
	}
	return n, err
}

// lostCommits notes that the server does not know what it had acknowledged, as why says: rows that it does not know may have
// leads. No worker claims anything from then on.
func (s *Store) lostCommits(c *session, why string) error {
	ctx := context.Background()
	_ = pgx.BeginFunc(ctx, c.Conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE leadferry.ledgers SET missing = $2, since = nextval('leadferry.commits') WHERE ledger = $1 AND missing = ''`,
			s.ledger, "what its server acknowledged and lost while the run "+s.o.Run+" went on"); err != nil {
			return err
		}
		return s.stopAll(ctx, tx)
	})
	return s.lost(why)
}

// stopAll fences all workers of the ledger but this one.
func (s *Store) stopAll(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE leadferry.workers SET fenced = clock_timestamp(), fenced_by = $2 WHERE ledger = $1 AND worker <> $2 AND fenced IS NULL AND ended IS NULL`, s.ledger, s.worker)
	return err
}

func (s *Store) lost(why string) error {
	return s.refuse(checkpoint.ErrRolledBack, why,
		"stop all runs and have the server looked after; the ledger is incomplete: rows that it does not know are held in doubt by the next run, not sent")
}

// whyFenced is why this worker may claim nothing more: a newer one has its place, or the ledger has lost something.
func (s *Store) whyFenced(c *session) error {
	var missing string
	err := c.QueryRow(context.Background(), `SELECT missing FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).Scan(&missing)
	if err == nil && missing != "" && s.missing == "" {
		return s.fail(s.lost("another worker, or a person, has found that the ledger lacks " + missing))
	}
	return checkpoint.ErrFenced
}
