package leadapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"leadferry/internal/failpoint"
)

// A connection is used again by three rules:
//
//  1. It has rested for less than 750 ms, or half of what the service announces (Keep-Alive: timeout) if that is less.
//  2. Bytes that arrive when no answer is awaited, or follow an answer, end it. A late answer on a resting connection
//     counts as closed.
//  3. After the host has closed a used connection during a create, each later create gets a connection of its own.

// host is an application of the service and the connections to it.
type host struct {
	way
	room chan struct{} // one token for each connection in use or being dialled

	mu     sync.Mutex
	idle   []*conn     // the last used one is at the end
	single atomic.Bool // the host has closed a reused connection during a create
}

// take returns a connection that no other call uses: the idle one that was used last, if this call may use it, or a new
// one. If all connections are in use, it waits until the call's limit. The caller must put the connection back.
func (h *host) take(ctx context.Context, r *request) (*conn, error) {
	select {
	case h.room <- struct{}{}:
	default: // seldom; a timer takes time
		select {
		case h.room <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(r.limit)):
			return nil, context.DeadlineExceeded
		}
	}
	c, once := h.takeIdle(r, time.Now())
	if c != nil {
		return c, nil
	}
	c, fault := h.dial(ctx, r.limit, func(string, *conn) {})
	if fault != nil {
		<-h.room
		return nil, fault
	}
	if once {
		c.restLimit = 0
	}
	return c, nil
}

// takeIdle takes out the idle connection that was used last, if the call may use it; once says that the call must be
// the only one on its connection. For a new connection it makes room, since idle ones count, too.
func (h *host) takeIdle(r *request, now time.Time) (c *conn, once bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	once = r.op == "create" && h.single.Load()
	for last := len(h.idle) - 1; last >= 0 && r.reuse && !once; last-- {
		c, h.idle = h.idle[last], h.idle[:last]
		// By the wall clock, too: the other clock stops while the machine sleeps.
		if max(now.Sub(c.idleSince), now.Round(0).Sub(c.idleSince.Round(0))) < c.restLimit {
			return c, false
		}
		c.end()
	}
	for len(h.idle) > 0 && len(h.room)+len(h.idle) > cap(h.room) {
		h.idle[0].end()
		h.idle = slices.Delete(h.idle, 0, 1)
	}
	return nil, once
}

// put takes back a connection: keep says that another call can use it.
func (h *host) put(c *conn, keep bool) {
	if keep = keep && c.restLimit > 0; keep {
		c.idleSince = time.Now()
		if c.body.Cap() > maxHead { // seldom
			c.request, c.body = bytes.Buffer{}, bytes.Buffer{}
		}
		h.mu.Lock()
		h.idle = append(h.idle, c)
		h.mu.Unlock()
	} else {
		c.end()
	}
	<-h.room
}

func (h *host) closeIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.idle {
		c.end()
	}
	h.idle = nil
}

// conn is a connection to the service. It carries one call at a time, by one goroutine that writes the whole request
// before it reads: so "a byte has left" is a count, and no call gets the answer to another one. The price: an early
// answer to a large request is read only when the request is written, or after the time limit.
type conn struct {
	net.Conn                   // the socket, or TLS upon it
	socket    *socket          // what leaves and enters the machine
	bounds    io.LimitedReader // of what may still be read of the answer
	in        *bufio.Reader    // over bounds
	request   bytes.Buffer     // of the last call
	body      bytes.Buffer     // of the last call: what it sends, then what it is answered
	leads     [8]string        // that the last answers named
	asked     bool             // the service wanted a client certificate
	dialled   time.Duration    // how long dialling took
	carried   int              // requests so far
	restLimit time.Duration    // 0: it carries no other request
	idleSince time.Time        // since when no call uses it
	ctx       context.Context  // of the last call: its end is also the connection's
	unbind    func() bool      // from ctx; false: it has ended
}

// end closes the connection. TLS would first write, and might have to wait.
func (c *conn) end() {
	c.unbind()
	c.socket.Close()
}

// noteKeepAlive limits the rest to half of the time that the server announces: its clock started before ours.
func (c *conn) noteKeepAlive(h http.Header) {
	for word := range strings.SplitSeq(strings.Join(h["Keep-Alive"], ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		n, err := strconv.ParseUint(strings.Trim(value, `" `), 10, 31)
		if err == nil && strings.EqualFold(strings.TrimSpace(name), "timeout") {
			c.restLimit = min(c.restLimit, time.Duration(n)*time.Second/2)
		}
	}
}

// namesOtherLead reports whether an answer names the wrong lead: another one or, for a create, the lead of an answer
// before. Then an answer came twice, and this request's own may come yet: no request may take that for its own.
func (c *conn) namesOtherLead(r *request) bool {
	if r.named == nil {
		return false
	}
	again := slices.Contains(c.leads[:], *r.named)
	c.leads[c.carried%len(c.leads)] = *r.named
	return r.lead == "" && again || r.lead != "" && *r.named != r.lead
}

// usable reports whether an idle connection can carry a call: it is open, and there is nothing to read.
func (c *conn) usable() bool {
	return c.ctx.Err() == nil && c.in.Buffered() == 0 && c.socket.nothingToRead() && c.nothingBuffered()
}

// nothingBuffered reports whether TLS has nothing left that it read ahead. It does not read from the socket.
func (c *conn) nothingBuffered() bool {
	if c.Conn == c.socket {
		return true
	}
	c.bounds.N, c.socket.late = maxHead, true
	if c.SetReadDeadline(longAgo) != nil {
		return false
	}
	_, err := c.in.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

var longAgo = time.Unix(1, 0)

// socket counts the bytes that leave.
type socket struct {
	net.Conn
	out     int64
	late    bool                        // the call has read once after its time was over
	readNow func(b []byte) (int, error) // what is there, without waiting
	one     [1]byte
}

func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.out += int64(n)
	return n, err
}

// Read reads what is there even when the time is over, once for each call: the process may have been stopped meanwhile.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && !s.late {
		s.late = true
		if late, _ := s.readNow(b); late > 0 {
			n, err = late, nil
		}
	}
	if n > 0 {
		failpoint.At("read")
	}
	return n, err
}

// nothingToRead reports whether the connection is open and nothing has come. Bytes that have come are lost.
func (s *socket) nothingToRead() bool {
	_, err := s.readNow(s.one[:])
	return isNothing(err)
}
