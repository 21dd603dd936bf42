package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Session is one connection. What the server warns of while it writes is kept: a wait for a
// standby that was cancelled ends with a warning and no error.
type Session struct {
	*pgx.Conn
	Process int // that serves it, once it is known what that promises
	began   time.Time
	loaded  time.Time // when it read the server's settings last
	at      *Address
	warning atomic.Pointer[string]
}

// settings hold for the whole session. Nothing limits a statement, a transaction or a session without work: one that was cut off may
// have been done. What was begun and not committed is undone for certain: whoever stands still in between (a suspended
// machine, a stopped process) soon holds nobody else up, and nobody waits for a lock for ever. Plans made while tables are
// empty must not scan them when they are full. That nothing is to be changed holds as it stands: so a database is kept as it is
// while it moves to another server.
const settings = `SET statement_timeout = 0; SET lock_timeout = %d; SET idle_in_transaction_session_timeout = %d; SET idle_session_timeout = 0;
SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout';
SET default_transaction_isolation = 'read committed'; SET client_min_messages = warning; SET client_encoding = 'UTF8'; SET standard_conforming_strings = on;
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET enable_memoize = off; SET plan_cache_mode = force_generic_plan;
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)`

// abandoned is how long a transaction waits for its client.
const abandoned = 30 * time.Second

// Meet connects within the time that is to be waited, or that a connection may take. Errors are as those of [Address.Explain].
func (a *Address) Meet(wait time.Duration) (*Session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), max(wait, a.config.ConnectTimeout))
	defer cancel()
	s, err := a.Connect(ctx)
	return s, a.Explain(err)
}

// Connect opens a connection. It is the only use of a context that ends: a statement that is
// under way is never cancelled.
func (a *Address) Connect(ctx context.Context) (*Session, error) {
	s := &Session{at: a}
	config := a.current()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" || n.Severity == "WARNING" {
			text := n.Message
			s.warning.Store(&text)
		}
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	s.Conn = c
	if err = s.isPostgres(); err == nil {
		err = s.notPooled()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if _, err := c.PgConn().Exec(context.Background(), fmt.Sprintf(settings, a.Locks.Milliseconds(), abandoned.Milliseconds())).ReadAll(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Warned() // of what has nothing to do with commits, as that collations are of another version now
	return s, nil
}

// Prepare makes the statements that are used again and again.
func (s *Session) Prepare(statements map[string]string) error {
	for name, sql := range statements {
		if _, err := s.Conn.Prepare(context.Background(), name, sql); err != nil {
			return err
		}
	}
	return nil
}

// closing is how long a server is waited for when a connection ends in order.
const closing = 2 * time.Second

// Close ends a connection in order; nil is none.
func (s *Session) Close() error {
	if s == nil || s.Conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return s.Conn.Close(ctx)
}

// Cut ends a connection at once, whatever it waits for.
func (s *Session) Cut() {
	if s != nil && s.Conn != nil {
		s.PgConn().Conn().Close()
	}
}

// Warned is what the server has warned of since it was asked last, or nothing.
func (s *Session) Warned() string {
	if text := s.warning.Swap(nil); text != nil {
		return *text
	}
	return ""
}

// Reloaded says whether the server's settings were read again since this was asked last, or since [Session.Promises]. A commit
// that came between need not have been made as a statement of its found them to be.
func (s *Session) Reloaded() (again bool, err error) {
	var loaded time.Time
	err = s.QueryRow(context.Background(), `SELECT pg_conf_load_time()`).Scan(&loaded)
	if again = err == nil && !loaded.Equal(s.loaded); again {
		s.loaded = loaded
	}
	return again, err
}

// endOfProcess is how long the process of an earlier session may take to end.
const endOfProcess = 500 * time.Millisecond

// Ends makes sure that the process which served an earlier session serves it no more: what it has not read yet, it might do
// after somebody has looked whether it was done.
func (s *Session) Ends(earlier *Session) error {
	for end := time.Now().Add(endOfProcess); ; time.Sleep(endOfProcess / 50) {
		var left int
		err := s.QueryRow(context.Background(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE pid = $1 AND backend_start = $2 AND pid <> pg_backend_pid()`, earlier.Process, earlier.began).Scan(&left)
		s.Warned() // that it has ended by itself meanwhile
		switch {
		case err != nil || left == 0:
			return err
		case time.Now().After(end):
			return errors.New("the process that served this worker does not end")
		}
	}
}

// LeastSilence is how long a run waits for an answer at the least: commits wait for one another, and for standbys.
const LeastSilence = time.Minute

// ErrSilent is the error of a session that was cut since no answer came.
var ErrSilent = errors.New("it takes connections and does not answer: whether it did what it was asked last is not known")

// silence is how long the server of a run may owe an answer before the connection is cut. One that stands still, and a network
// that swallows everything, keep connections open for ever. No time-out of a statement would do: it does not end what a server
// that stands still has begun, and says nothing of what became of it.
type silence struct {
	mu    sync.Mutex
	most  time.Duration // 0: for ever
	wires map[*wire]struct{}
}

// wire is a connection on which an answer may be overdue.
type wire struct {
	net.Conn
	of   *silence
	owes atomic.Bool // an answer is waited for
	late atomic.Bool

	// what follows belongs to of.mu
	most  time.Duration
	until time.Time // for so long
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// over dials connections that are cut when the server is silent on them.
func (s *silence) over(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		w := &wire{Conn: c, of: s, most: s.most}
		s.wires[w] = struct{}{}
		return w, nil
	}
}

// Shorten has all sessions, and those to come, wait for d for each answer from now on.
func (a *Address) Shorten(d time.Duration) {
	s := a.silence
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = d
	for w := range s.wires {
		w.wait(d)
	}
}

// wait has the connection wait for d from now on; 0: for ever. Whoever calls it holds the lock.
func (w *wire) wait(d time.Duration) {
	if w.most = d; d > 0 {
		w.until = time.Now().Add(d)
		_ = w.SetReadDeadline(w.until) // fails where it is closed
	}
}

// Owes says whether an answer is waited for.
func (w *wire) Owes() bool { return w.owes.Load() }

// Read waits for what the server says.
func (w *wire) Read(b []byte) (int, error) {
	w.of.mu.Lock()
	w.wait(w.most)
	w.of.mu.Unlock()
	w.owes.Store(true)
	n, err := w.Conn.Read(b)
	w.owes.Store(false)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.most > 0 && !time.Now().Before(w.until) { // else whoever connects has no more time
		w.late.Store(true)
		w.Conn.Close()
		err = ErrSilent
	}
	return n, err
}

// Close ends the connection.
func (w *wire) Close() error {
	w.of.mu.Lock()
	delete(w.of.wires, w)
	w.of.mu.Unlock()
	return w.Conn.Close()
}

// wire is what a session goes over.
func (s *Session) wire() *wire {
	c := s.PgConn().Conn()
	if secured, is := c.(*tls.Conn); is {
		c = secured.NetConn()
	}
	return c.(*wire)
}

// Wait has the session wait for d for each answer.
func (s *Session) Wait(d time.Duration) {
	w := s.wire()
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.wait(d)
}

// WasSilent says that the session was cut since no answer came.
func (s *Session) WasSilent() bool { return s.wire().late.Load() }
