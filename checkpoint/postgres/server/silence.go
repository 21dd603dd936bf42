package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

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
