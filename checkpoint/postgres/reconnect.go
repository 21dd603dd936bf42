package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

const (
	// mostPause is how long a server in trouble is left alone at most, and pause how long while a ledger is opened.
	pause, mostPause = 500 * time.Millisecond, 2 * time.Second
	// shortest is how long it may take to find out what became of a commit, at the least.
	shortest = 5 * time.Second
)

// errUncertain is the error of a commit that may not be durable.
var errUncertain = errors.New("it is not certain that the last change is durable")

// ask runs f on a session, within the time in which the server of a run has to answer: a server that hangs, or a network
// that drops everything, keeps a connection open for ever. After an interruption that is the time-out of a request.
func (s *Store) ask(ctx context.Context, at *server.Session, f func() error) error {
	if s.o.Run != "" {
		limited, cancel := context.WithTimeout(ctx, s.silence)
		defer cancel()
		stop := context.AfterFunc(s.interrupted, func() { time.AfterFunc(max(s.o.Timeout, time.Second), cancel) })
		defer stop()
		ctx = limited
	}
	return at.Within(ctx, f)
}

// change has f make the next commit, and again while it is certain that nothing was done. Its caller holds the lock.
func (s *Store) change(f func() error) error {
	for conflicts := 0; ; {
		err := s.ask(context.Background(), s.writer, f)
		if err == nil {
			err = s.waited(s.writer)
		}
		switch {
		case err == nil:
			s.commits++
			s.seq.Store(s.coming)
			s.whole()
			return nil
		case checkpoint.IsOfList(err) || isOneOf(err, notAsSeen, taken, twice, isFenced, tooMany):
			return err
		case isOneOf(err, notOurs):
			return s.fail(s.lost("it is not the one that this run has begun with: its server has lost commits, or " +
				"somebody has put another one in its place"))
		case isOneOf(err, undurable):
			return s.fail(s.promisesLess())
		case isConflict(err) && conflicts < mostConflicts:
			conflicts++
			continue
		}
		if made, err := s.again(err); made || err != nil {
			return err
		}
	}
}

func (s *Store) whole() {
	s.troubled = time.Time{}
	s.claims.setLost(false)
}

// waited is an error unless the last commit of a session was waited for as its statements found that it would be. A
// warning is one: a wait for a standby that was cancelled ends so, and what it waited for may be lost. Settings that
// were read again are another: a wait ends without a word when nobody is to be waited for any more.
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

// again connects anew after an error of a commit, and says whether that commit was made. An error that leaves the
// connection open would come again: it ends the use of the ledger, unless it passes by itself. The run tries until its
// patience since the last good commit is over, and sends nothing meanwhile.
func (s *Store) again(err error) (made bool, _ error) {
	passing, silent := server.IsPassing(err), errors.Is(err, server.ErrSilent)
	if !passing && !errors.Is(err, errUncertain) && !s.writer.IsClosed() {
		return false, s.fail(err)
	}
	s.claims.setLost(true)
	s.writer.Cut()
	if s.troubled.IsZero() {
		s.troubled = time.Now()
	}
	unknown := !passing // whether it was made
	for ; s.failed() == nil && (unknown || !silent && time.Now().Before(s.until())); unknown = false {
		made, met := s.meetAgain()
		if met == nil {
			if made {
				s.whole()
			}
			return made, nil
		}
		if !silent {
			err = met
		}
	}
	failed := s.fail(err)
	s.claims.setLost(false) // who waits hears of it
	return false, failed
}

// until is when the patience with a server in trouble ends.
func (s *Store) until() time.Time {
	patience := s.o.Patience
	switch {
	case s.closed.Load(): // what was under way stays unknown
		patience = 0
	case s.interrupted.Err() != nil:
		patience = min(patience, shortest)
	}
	return s.troubled.Add(patience)
}

// bear waits a little: longer, the longer a server has been in trouble.
func (s *Store) bear(ctx context.Context, since time.Time) {
	select {
	case <-s.ending:
	case <-ctx.Done():
	case <-time.After(min(time.Since(since)/4+10*time.Millisecond, mostPause)):
	}
}

// meetAgain connects after a while and finds out whether the last commit was made. Before anything builds upon what is
// found there, a commit of its own makes durable all that came before.
func (s *Store) meetAgain() (made bool, err error) {
	s.bear(context.Background(), s.troubled)
	fresh, err := s.at.Meet(s.o.Wait, false)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(time.Until(s.until()), shortest))
	defer cancel()
	err = fresh.Within(ctx, func() error {
		made, err = s.takeOver(fresh)
		return err
	})
	if err != nil {
		fresh.Close()
		return false, err
	}
	s.writer.Close()
	s.writer = fresh
	return made, nil
}

//go:embed takeover.sql
var takeOverSQL string

// takeOver has a session take the place of the one that writes, and says whether the last commit of that was made. A
// server that has lost commits, or promises less, ends the use of the ledger.
func (s *Store) takeOver(fresh *server.Session) (made bool, err error) {
	var commits, seq uint64
	var timeline int32
	var standby string
	var durable bool // a commit is, as when the worker began
	session := rand.Int64()
	err = fresh.One(takeOverSQL, s.worker, s.ledger, int64(s.commits), session).
		Scan(&commits, &seq, &timeline, &standby, &durable)
	if err == nil {
		err = s.waited(fresh)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, s.lostCommits(fresh, "its server has lost commits that it had acknowledged: it was restored, "+
			"or a standby without them took over")
	case err != nil:
		return false, err
	case timeline != s.timeline && s.standby != waitedFor:
		return false, s.lostCommits(fresh, "its server's history has branched: it was restored, or a standby took "+
			"over that was not waited for")
	case !durable:
		return false, s.fail(s.promisesLess())
	}
	made = commits > s.commits
	s.timeline, s.standby, s.commits, s.session = timeline, standby, commits, session
	s.seq.Store(seq)
	return made, nil
}

// lostCommits notes that the server does not know what it had acknowledged, as why says: rows that it does not know
// may have leads. No worker claims anything from then on.
func (s *Store) lostCommits(at *server.Session, why string) error {
	b := &pgx.Batch{}
	b.Queue(`UPDATE leadferry.ledgers SET missing = coalesce(nullif(missing, ''), $2),
		since = nextval('leadferry.commits') WHERE ledger = $1`,
		s.ledger, "what its server acknowledged and lost while the run "+s.o.Run+" went on")
	b.Queue(fenceSQL, s.ledger, s.worker)
	_ = at.Send(b)
	return s.fail(s.lost(why))
}

// fenceSQL fences the workers of the ledger but this one, all of them unless it goes on.
const fenceSQL = `UPDATE leadferry.workers SET fenced = clock_timestamp(), fenced_by = $2
	WHERE ledger = $1 AND worker <> $2 AND fenced IS NULL AND ended IS NULL`

func (s *Store) lost(why string) error {
	return s.refuse(checkpoint.ErrRolledBack, why,
		"stop all runs and have the server looked after; the ledger is incomplete: rows that it does not know are "+
			"held in doubt by the next run, not sent")
}

func (s *Store) promisesLess() error {
	return s.refuse(checkpoint.ErrPlace, "its server does not promise durable commits any more, or waits for no "+
		"standby any more",
		"set fsync and synchronous_commit on, and synchronous_standby_names as it was when the run began; see "+
			"leadferry checkpoint workers")
}

// whyFenced is why this worker may claim nothing more: a newer one has its place, or the ledger has lost something.
func (s *Store) whyFenced(at *server.Session) error {
	var missing string
	var since uint64
	err := at.One(`SELECT missing, since FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).Scan(&missing, &since)
	if err == nil && since > s.since {
		return s.fail(s.lost("another worker, or a person, has found that the ledger lacks " + missing))
	}
	return checkpoint.ErrFenced
}

// read calls f with the connection for reading, and again with a new one where that is lost, or the server cannot
// answer now. The end of ctx cuts the connection.
func (s *Store) read(ctx context.Context, f func(*server.Session) error) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.closed.Load() {
		return checkpoint.ErrClosed
	}
	return s.readOn(ctx, f)
}

// readOn is read for a caller that holds the lock.
func (s *Store) readOn(ctx context.Context, f func(*server.Session) error) error {
	if away := s.failed(); errors.As(away, new(*checkpoint.StoreError)) { // it has been waited for long enough
		return away
	}
	ask := func() error { return s.ask(ctx, s.reader, func() error { return f(s.reader) }) }
	begun, err := time.Now(), ask()
	for err != nil && ctx.Err() == nil && !errors.Is(err, server.ErrSilent) &&
		(s.reader.IsClosed() || server.IsPassing(err)) && time.Since(begun) < s.o.Patience {
		s.bear(ctx, begun)
		s.reader.Close()
		var fresh *server.Session
		if fresh, err = s.at.Meet(s.o.Wait, true); err == nil { // no standby, which may lack what was made last
			s.reader = fresh
			err = ask()
		}
		if s.closed.Load() {
			break
		}
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return s.serverError(err)
}

// one reads one row.
func (s *Store) one(ctx context.Context, places []any, query string, args ...any) error {
	return s.read(ctx, func(c *server.Session) error { return c.One(query, args...).Scan(places...) })
}
