package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

// acknowledged is an error unless a commit went well.
func (s *Store) acknowledged(err error) error {
	if err == nil {
		err = s.waited(s.writer)
	}
	if err == nil && !s.troubled.IsZero() {
		s.troubled = time.Time{}
		s.claims.setLost(false)
	}
	return err
}

// waited is an error unless the last commit of a session was waited for as its statements found that it would be. A warning is one: a
// wait for a standby that was cancelled ends so, and what it waited for may be lost. Settings that were read again are another:
// a wait ends without a word when nobody is to be waited for any more.
func (s *Store) waited(at *server.Session) error {
	if text := at.Warned(); text != "" {
		return fmt.Errorf("%w: %s", errUncertain, text)
	}
	if s.standby != waitedFor {
		return nil
	}
	again, err := at.Reloaded()
	if again {
		err = fmt.Errorf("%w: its settings were read again", errUncertain)
	}
	return err
}

var (
	errUncertain = errors.New("it is not certain that the last change is durable")
	errAgain     = errors.New("nothing was done")
)

// again meets the server anew after an error of a commit, whose number is that of the worker's
// commits with it, and says whether it was made. An error that the connection outlives ends the
// use of the ledger, for it comes again, but for those that pass: each has the commit tried once more, for as long as the
// server is waited for.
func (s *Store) again(err error, number uint64) (made bool, _ error) {
	passing := server.IsPassing(err)
	switch {
	case checkpoint.IsOfList(err) || isConflict(err):
		return false, err
	case !errors.Is(err, errUncertain) && !s.writer.IsClosed() && !passing:
		return false, s.trouble(err)
	}
	s.claims.setLost(true)
	end := time.Now().Add(s.patience())
	if passing {
		if end = s.bear(); time.Now().After(end) {
			defer s.claims.setLost(false)
			return false, s.trouble(err)
		}
	}
	silent := s.writer.WasSilent()
	if silent { // it was waited for long enough
		end = time.Now()
	}
	s.writer.Cut()
	interrupt := s.o.Interrupt
	for {
		made, fatal, met := s.meetAgain(number, max(time.Until(end), shortest))
		switch {
		case met == nil:
			if !passing { // else once the commit is made
				s.claims.setLost(false)
			}
			return made, nil
		case fatal || time.Now().After(end):
			if silent && !fatal {
				met = server.ErrSilent
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

// bear lets some time go by after an error that passes, the more the longer it has been so, and returns until when it may.
func (s *Store) bear() (end time.Time) {
	now := time.Now()
	if s.troubled.IsZero() {
		s.troubled = now
	}
	select {
	case <-s.ending:
		return s.troubled
	case <-s.o.Interrupt:
		time.Sleep(pause)
		return s.troubled.Add(min(s.patience(), shortest))
	case <-time.After(min(pause+now.Sub(s.troubled)/4, mostPause)):
		return s.troubled.Add(s.patience())
	}
}

const (
	// pause is how long a server that does not answer is left alone, and mostPause one that cannot do now what it was asked.
	pause, mostPause = 500 * time.Millisecond, 10 * time.Second
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

// longest is how long a run waits for an answer.
func (s *Store) longest() time.Duration { return max(s.patience(), server.LeastSilence) }

// meetAgain connects and finds out whether the last commit was made. Before anything builds upon what is found there, a commit
// of its own makes durable all that came before. It waits for d at most for each answer.
func (s *Store) meetAgain(number uint64, d time.Duration) (made, fatal bool, err error) {
	fresh, err := s.meet()
	if err != nil {
		return false, false, err
	}
	fresh.Wait(d)
	defer func() {
		if err != nil {
			fresh.Close()
		}
	}()
	if err := fresh.Promises(s.o.ReadOnly); err != nil {
		return false, false, err
	}
	if err := fresh.Ends(s.writer); err != nil {
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
	case !n.promised:
		return false, true, s.undurable()
	}
	s.timeline, s.standby = n.timeline, n.standby
	if err := fresh.Prepare(s.statements()); err != nil {
		return false, false, err
	}
	fresh.Wait(s.longest())
	s.writer.Close()
	s.writer = fresh
	made = n.commits == number && number != s.commits
	s.commits = n.commits
	s.seq.Store(n.seq)
	return made, false, nil
}

// account is what the server knows of the worker.
type account struct {
	commits, seq uint64
	timeline     int32
	standby      string // how those of this server stand from now on, where it has taken over
	promised     bool   // a commit is as durable as when the worker began
}

// standsAt is what the server knows of the worker, as of a commit of its own. Who asks for the worker's own row waits for
// whatever is left of an earlier one. Of a standby that was waited for and has taken over, it notes whether it waits for others.
func (s *Store) standsAt(fresh *server.Session, number uint64) (n account, err error) {
	ctx := context.Background()
	err = pgx.BeginFunc(ctx, fresh.Conn, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT commits, seq, `+timelineSQL+` FROM leadferry.workers WHERE worker = $1 AND ledger = $2 FOR UPDATE`, s.worker, s.ledger).
			Scan(&n.commits, &n.seq, &n.timeline)
		if err == nil && (n.commits == number || n.commits == s.commits) {
			err = tx.QueryRow(ctx, `UPDATE leadferry.workers SET beat = clock_timestamp(), timeline = CASE standby WHEN $2 THEN $4 ELSE timeline END,
				standby = CASE WHEN standby = $2 AND timeline <> $4 AND current_setting('synchronous_standby_names') = '' THEN $3 ELSE standby END
				WHERE worker = $1 RETURNING standby, `+promised, s.worker, waitedFor, noStandby, n.timeline).Scan(&n.standby, &n.promised)
		}
		return err
	})
	if err == nil {
		err = s.waited(fresh)
	}
	return n, err
}

// lostCommits notes that the server does not know what it had acknowledged, as why says: rows that it does not know may have
// leads. No worker claims anything from then on.
func (s *Store) lostCommits(c *server.Session, why string) error {
	ctx := context.Background()
	_ = pgx.BeginFunc(ctx, c.Conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE leadferry.ledgers SET missing = coalesce(nullif(missing, ''), $2), since = nextval('leadferry.commits') WHERE ledger = $1`,
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
func (s *Store) whyFenced(c *server.Session) error {
	var missing string
	var since uint64
	err := c.QueryRow(context.Background(), `SELECT missing, since FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).Scan(&missing, &since)
	if err == nil && since > s.since {
		return s.fail(s.lost("another worker, or a person, has found that the ledger lacks " + missing))
	}
	return checkpoint.ErrFenced
}

// read calls f with the connection for reading, once more with a new one where that is lost, or the server cannot answer now.
func (s *Store) read(ctx context.Context, f func(*pgx.Conn) error) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.closed.Load() {
		return checkpoint.ErrClosed
	}
	if away := s.failed(); errors.As(away, new(*checkpoint.ServerError)) { // it has been waited for long enough
		return away
	}
	err := f(s.reader.Conn)
	for end := time.Now().Add(s.patience()); err != nil && (s.reader.IsClosed() || server.IsPassing(err)) && !s.reader.WasSilent() && time.Now().Before(end); {
		if err = s.meetToRead(); err == nil {
			if err = f(s.reader.Conn); !server.IsPassing(err) {
				continue
			}
		}
		select {
		case <-time.After(pause):
		case <-s.ending:
			return checkpoint.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.serverError(err)
}

// meetToRead makes a connection for reading in place of the one that is lost, or cannot be used now: it ends, so that it takes no
// room, and nobody asks it again.
func (s *Store) meetToRead() error {
	s.reader.Close()
	fresh, err := s.meet()
	if err != nil {
		return err
	}
	err = fresh.Promises(true) // a standby may lack what was made last
	if err == nil {
		err = fresh.Prepare(map[string]string{"find": findSQL()})
	}
	if err != nil {
		fresh.Close()
		return err
	}
	s.reader = fresh
	return nil
}
