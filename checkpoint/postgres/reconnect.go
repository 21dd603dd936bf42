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
	// mostPause is how long a server in trouble is left alone at most, and pause how long by anyone who does not want
	// to wait.
	pause, mostPause = 500 * time.Millisecond, 10 * time.Second
	// shortest is how long it may take to find out what became of a commit, at the least.
	shortest = 5 * time.Second
)

// errUncertain is the error of a commit that may not be durable.
var errUncertain = errors.New("it is not certain that the last change is durable")

// limit is the time in which the server of a run has to answer: one that stands still, and a network that swallows
// everything, keep connections open for ever. Once the run is interrupted it is no more than a request may take.
func (s *Store) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.o.Run == "" {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, s.silence)
	stop := context.AfterFunc(s.interrupted, func() { time.AfterFunc(max(s.o.Timeout, time.Second), cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}

// within has f use the connection that writes, for as long as the server may take.
func (s *Store) within(f func() error) error {
	ctx, cancel := s.limit(context.Background())
	defer cancel()
	return s.writer.Within(ctx, f)
}

// change has f make the next commit, and again as long as certainly nothing was done. Its caller holds the lock.
func (s *Store) change(f func() error) error {
	for conflicts := 0; ; {
		err := s.within(f)
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
			return s.fail(s.whyNotOurs())
		case isConflict(err) && conflicts < mostConflicts:
			conflicts++
			continue
		}
		if made, err := s.again(err); made || err != nil {
			return err
		}
	}
}

// ask has f read by the connection that writes, again where that is lost.
func (s *Store) ask(f func() error) error {
	for {
		err := s.within(f)
		if err == nil {
			return nil
		}
		if _, err := s.again(err); err != nil {
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

// again meets the server anew after an error of a commit, and says whether that was made. An error that the connection
// outlives ends the use of the ledger, for it comes again, unless it passes. Both are borne as long as the patience
// lasts since the last commit that went well, and nothing may be sent meanwhile.
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
	for end := s.until(); !passing || time.Now().Before(end); end = s.until() {
		made, met := s.meetAgain(max(time.Until(end), shortest))
		if met == nil {
			if !passing { // else once the commit is made
				s.whole()
			}
			return made, nil
		}
		if !silent {
			err = met
		}
		if silent || s.failed() != nil || time.Now().After(end) {
			break
		}
	}
	failed := s.fail(err)
	s.claims.setLost(false) // who waits hears of it
	return false, failed
}

// bear lets some time go by, the more the longer the server has been in trouble.
func (s *Store) bear() {
	select {
	case <-s.ending:
	case <-s.interrupted.Done():
		time.Sleep(pause)
	case <-time.After(min(time.Since(s.troubled)/4+10*time.Millisecond, mostPause)):
	}
}

// until is when the patience with a server in trouble ends.
func (s *Store) until() time.Time {
	patience := s.o.Patience
	select {
	case <-s.ending: // what was under way stays unknown
		patience = 0
	case <-s.interrupted.Done():
		patience = min(patience, shortest)
	default:
	}
	return s.troubled.Add(patience)
}

// meetAgain connects after a while and finds out whether the last commit was made. Before anything builds upon what is
// found there, a commit of its own makes durable all that came before. It takes no longer than d once it is connected.
func (s *Store) meetAgain(d time.Duration) (made bool, err error) {
	s.bear()
	fresh, err := s.at.Meet(s.o.Wait, s.o.ReadOnly)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
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
		return false, s.fail(s.undurable())
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
	b.Queue(stopSQL, s.ledger, s.worker)
	_ = at.Send(b)
	return s.fail(s.lost(why))
}

// stopSQL fences all workers of the ledger but this one.
const stopSQL = `UPDATE leadferry.workers SET fenced = clock_timestamp(), fenced_by = $2
	WHERE ledger = $1 AND worker <> $2 AND fenced IS NULL AND ended IS NULL`

func (s *Store) lost(why string) error {
	return s.refuse(checkpoint.ErrRolledBack, why,
		"stop all runs and have the server looked after; the ledger is incomplete: rows that it does not know are "+
			"held in doubt by the next run, not sent")
}

func (s *Store) undurable() error {
	return s.refuse(checkpoint.ErrPlace, "its server does not promise durable commits any more, or waits for no "+
		"standby any more",
		"set fsync and synchronous_commit on, and synchronous_standby_names as it was when the run began; see "+
			"leadferry checkpoint workers")
}

func (s *Store) whyNotOurs() error {
	var ours bool
	err := s.writer.One(`SELECT EXISTS (SELECT FROM leadferry.workers
		WHERE worker = $1 AND ledger = $2 AND commits = $3 AND session = $4)`,
		s.worker, s.ledger, int64(s.commits), s.session).Scan(&ours)
	switch {
	case err != nil:
		return err
	case ours:
		return s.undurable()
	}
	return s.lost("it is not the one that this run has begun with: its server has lost commits, or somebody has put " +
		"another one in its place")
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

// read calls f with the connection for reading, once more with a new one where that is lost, or the server cannot
// answer now. The end of ctx cuts the connection.
func (s *Store) read(ctx context.Context, f func(*server.Session) error) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.closed.Load() {
		return checkpoint.ErrClosed
	}
	if away := s.failed(); errors.As(away, new(*checkpoint.StoreError)) { // it has been waited for long enough
		return away
	}
	ask := func() error {
		within, cancel := s.limit(ctx)
		defer cancel()
		return s.reader.Within(within, func() error { return f(s.reader) })
	}
	err := ask()
	for end := time.Now().Add(s.o.Patience); err != nil && ctx.Err() == nil && !errors.Is(err, server.ErrSilent) &&
		(s.reader.IsClosed() || server.IsPassing(err)) && time.Now().Before(end); {
		if err = s.meetToRead(); err == nil {
			if err = ask(); !server.IsPassing(err) {
				continue
			}
		}
		select {
		case <-time.After(pause):
		case <-s.ending:
			return checkpoint.ErrClosed
		case <-ctx.Done():
		}
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return s.serverError(err)
}

// meetToRead makes a new connection for reading and ends the one that is lost, or cannot be used now.
func (s *Store) meetToRead() error {
	s.reader.Close()
	fresh, err := s.at.Meet(s.o.Wait, true) // no standby, which may lack what was made last
	if err == nil {
		s.reader = fresh
	}
	return err
}
