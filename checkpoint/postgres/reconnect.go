package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

const (
	// pause is the time between attempts to open a ledger, mostPause the longest between attempts to connect again.
	pause, mostPause = 500 * time.Millisecond, 2 * time.Second
	// shortest is the least time that is left to find out whether a commit was made.
	shortest = 5 * time.Second
)

// errUncertain is the error of a commit that may not be durable.
var errUncertain = errors.New("it is not certain that the last change is durable")

// ask calls f, which asks the server. While the server cannot answer, ask connects again and calls f again, until its
// patience is over. It also repeats f after a conflict. Other errors are returned. The caller holds the lock.
func (s *Store) ask(ctx context.Context, f func() error) error {
	for conflicts, last := 0, false; ; {
		err := s.within(ctx, f)
		passes := server.IsPassing(err) || errors.Is(err, errUncertain) || s.conn.IsClosed()
		switch {
		case isConflict(err) && conflicts < mostConflicts:
			conflicts++
			continue
		case err == nil, !passes: // it has answered
			s.troubled = time.Time{}
			s.claims.lost.Store(false)
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case last:
			return s.fail(err)
		}
		if last, err = s.meetAgain(ctx, err); err != nil {
			return cmp.Or(ctx.Err(), err)
		}
	}
}

// within runs f. In a run it limits the time for an answer: if a server hangs, or a network drops everything, a
// connection stays open for ever. After an interruption the limit is the time-out of a request.
func (s *Store) within(ctx context.Context, f func() error) error {
	if s.o.Run != "" {
		limited, cancel := context.WithTimeout(ctx, s.silence)
		defer cancel()
		stop := context.AfterFunc(s.interrupted, func() { time.AfterFunc(max(s.o.Timeout, time.Second), cancel) })
		defer stop()
		ctx = limited
	}
	return s.conn.Within(ctx, f)
}

// change makes the next commit by f. The caller holds the lock.
func (s *Store) change(f func() error) error {
	before := s.commits
	err := s.ask(context.Background(), func() error {
		if s.commits > before { // takeOver has found that it was made before the connection was lost
			return nil
		}
		err := f()
		if err == nil {
			err = s.checkDurable(s.conn)
		}
		if err == nil {
			s.commits++
			s.seq.Store(s.nextSeq)
		}
		return err
	})
	if err == nil {
		s.testimony.Load().Reached(s.Progress())
	}
	switch {
	case err == nil, checkpoint.Refuses(err), isOneOf(err, notAsSeen, taken, twice, isFenced, tooMany):
		return err
	case isOneOf(err, notOurs):
		err = s.lost("it is not the one that this run has begun with: its server has lost commits, or somebody has " +
			"put another one in its place")
	case isOneOf(err, undurable):
		err = s.promisesLess()
	}
	return s.fail(err)
}

// checkDurable returns an error if the last commit of a session may not have waited for standbys as its statements
// expected. A warning is an error: if a wait for a standby is cancelled, it ends with a warning, and the commit may be
// lost. Settings that were read again are an error, too: if no standby is named any more, a wait ends without a word.
func (s *Store) checkDurable(at *server.Session) error {
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

// meetAgain connects again after an error. Meanwhile no request is sent. last: the patience was already over.
func (s *Store) meetAgain(ctx context.Context, err error) (last bool, _ error) {
	s.claims.lost.Store(true)
	s.conn.Cut()
	if s.troubled.IsZero() {
		s.troubled = time.Now()
	}
	if last = time.Now().After(s.until()); last && server.IsPassing(err) { // nothing was done
		return last, s.fail(err)
	}
	for {
		met := s.meet(ctx)
		if met == nil {
			return last, nil
		}
		silent := errors.Is(err, server.ErrSilent)
		if !silent {
			err = met
		}
		if silent || s.failed() != nil || ctx.Err() != nil || time.Now().After(s.until()) {
			return last, s.fail(err)
		}
	}
}

// until is when the patience with a server in trouble ends.
func (s *Store) until() time.Time {
	patience := s.o.Patience
	if s.closed.Load() || s.interrupted.Err() != nil {
		patience = min(patience, shortest)
	}
	return s.troubled.Add(patience)
}

// meet connects after a pause, which grows with the time that the server has been in trouble. A commit then makes all
// earlier ones durable, before anything relies on what the server knows.
func (s *Store) meet(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(min(time.Since(s.troubled)/4+10*time.Millisecond, mostPause)):
	}
	fresh, err := s.Meet(s.o.Wait, s.o.ReadOnly)
	if err != nil {
		return err
	}
	if s.worker != 0 && s.failed() == nil {
		limited, cancel := context.WithTimeout(ctx, max(time.Until(s.until()), shortest))
		defer cancel()
		err = fresh.Within(limited, func() error { return s.takeOver(fresh) })
	}
	if err != nil {
		fresh.Close()
		return err
	}
	s.conn.Close()
	s.conn = fresh
	return nil
}

// takeOver replaces the earlier session by fresh, and finds out whether the last commit of the earlier one was made. If
// the server has lost commits, or promises less than before, the ledger cannot be used any more.
func (s *Store) takeOver(fresh *server.Session) error {
	var commits, seq uint64
	var timeline int32
	var standby string
	var durable bool // commits are as durable as when the worker began
	session := rand.Int64()
	err := fresh.One(statement("takeover"), s.worker, s.ledger, int64(s.commits), session, s.table).
		Scan(&commits, &seq, &timeline, &standby, &durable)
	if err == nil {
		err = s.checkDurable(fresh)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s.lostCommits(fresh, "its server has lost commits that it had acknowledged: it was restored, "+
			"or a standby without them took over")
	case err != nil:
		return err
	case timeline != s.timeline && s.standby != waitedFor:
		return s.lostCommits(fresh, "its server's history has branched: it was restored, or a standby took "+
			"over that was not waited for")
	case !durable:
		return s.fail(s.promisesLess())
	}
	s.timeline, s.standby, s.commits, s.session = timeline, standby, commits, session
	s.seq.Store(seq)
	return nil
}

// lostCommits notes that the server has lost acknowledged commits: rows that it does not know may have leads. From then
// on no worker claims anything. why says what has happened to the server.
func (s *Store) lostCommits(at *server.Session, why string) error {
	b := &pgx.Batch{}
	b.Queue(`UPDATE leadferry.ledgers SET missing = coalesce(nullif(missing, ''), $2),
		since = nextval('leadferry.commits') WHERE ledger = $1`,
		s.ledger, "what its server acknowledged and lost while the run "+s.o.Run+" went on")
	b.Queue(fenceSQL, s.ledger, 0) // 0: in a database that was made anew, another worker may have its number
	_ = at.Send(b)
	return s.fail(s.lost(why))
}

// fenceSQL fences the other workers of the ledger, all of them unless conditions are added.
const fenceSQL = `UPDATE leadferry.workers SET fenced = clock_timestamp(), fenced_by = $2
	WHERE ledger = $1 AND worker <> $2 AND fenced IS NULL AND ended IS NULL`

func (s *Store) lost(why string) error {
	return s.Refuse(checkpoint.ErrRolledBack, why,
		"stop all runs and repair the server first; the ledger is incomplete: rows that it does not know are "+
			"held in doubt by the next run, not sent")
}

func (s *Store) promisesLess() error {
	return s.Refuse(checkpoint.ErrPlace, "its server does not promise durable commits any more, or waits for no "+
		"standby any more", "set fsync, full_page_writes and synchronous_commit on, and synchronous_standby_names as "+
		"it was when the run began; see leadferry checkpoint workers")
}

// mayClaim returns how many leads the fleet may still make (nil: any number), and why this worker may claim nothing
// more. A database that takes no changes may be about to move, and its next server would not know new claims.
func (s *Store) mayClaim() (room *int, why, err error) {
	var fenced, unchanging bool
	var missing string
	var since uint64
	err = s.conn.One(statement("mayclaim"), s.worker).Scan(&fenced, &unchanging, &missing, &since, &room)
	switch {
	case err != nil:
	case since > s.since:
		why = s.fail(s.lost("another worker, or a person, has found that the ledger lacks " + missing))
	case unchanging:
		why = s.RefuseUnchanging()
	case fenced:
		why = checkpoint.ErrFenced
	}
	return room, why, err
}

// read calls f, which asks the server. In a run, the end of ctx does not cut the connection: the last outcomes need it.
func (s *Store) read(ctx context.Context, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return checkpoint.ErrClosed
	}
	if away := s.failed(); errors.As(away, new(*checkpoint.StoreError)) { // the patience is over
		return away
	}
	asks := ctx
	if s.o.Run != "" {
		asks = context.WithoutCancel(ctx)
	}
	return cmp.Or(s.Explain(s.ask(asks, f)), ctx.Err())
}

func (s *Store) queryRow(ctx context.Context, places []any, query string, args ...any) error {
	return s.read(ctx, func() error { return s.conn.One(query, args...).Scan(places...) })
}

// rowsOf reads rows into values of type T, each column into one field.
func rowsOf[T any](ctx context.Context, s *Store, query string, args ...any) (all []T, err error) {
	err = s.read(ctx, func() (err error) {
		all, err = server.All(s.conn, pgx.RowToStructByPos[T], query, args...)
		return err
	})
	return all, err
}
