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

// Three rules say when a connection is used again:
//
//  1. It has rested for less than 750 ms, or half of what the service announces (Keep-Alive: timeout) if that is less.
//  2. Its last answer was as wished, and no unexpected byte has come since: a proxy that repeats a refusal would give
//     it to the next create, which would then count as not applied. A late answer closes the connection, too.
//  3. After the host has closed a used connection during a create, each later create gets a new connection.

// host is an application of the service, with the connections to it.
type host struct {
	way
	room chan struct{} // one token for each connection in use or being dialled

	mu     sync.Mutex
	idle   []*conn     // the one that was used last is at the end
	single atomic.Bool // the host has closed a reused connection during a create
}

// take returns a connection that no other call uses: the idle one that was used last, if this call may use it, else a
// new one. If all connections are in use, take waits until the call's limit. The caller must put the connection back.
func (h *host) take(ctx context.Context, r *request) (*conn, error) {
	select {
	case h.room <- struct{}{}:
	default: // rare, and a timer costs time
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

// takeIdle returns the idle connection that was used last, if the call may use it, else nil. Before a new connection it
// closes idle ones, which count too, to make room. once: the call needs a connection that carries nothing else.
func (h *host) takeIdle(r *request, now time.Time) (c *conn, once bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	once = r.op == "create" && h.single.Load()
	for last := len(h.idle) - 1; last >= 0 && r.reuse && !once; last-- {
		c, h.idle = h.idle[last], h.idle[:last]
		// The wall clock counts too: the monotonic one stops while the machine sleeps.
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

// put takes a connection back. keep: another call can use it.
func (h *host) put(c *conn, keep bool) {
	if keep = keep && c.restLimit > 0; keep {
		c.idleSince = time.Now()
		if c.body.Cap() > maxHead { // rare
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

// conn is a connection to the service. One goroutine uses it at a time: it writes the whole request, then it reads. So
// a count tells whether a byte has left, and no call gets the answer to another one. The price: an early answer to a
// large request is read only after the request is written, or after the time limit.
type conn struct {
	net.Conn                   // the socket, or TLS upon it
	socket    *socket          // what leaves and enters the machine
	bounds    io.LimitedReader // of what may still be read of the answer
	in        *bufio.Reader    // over bounds
	request   bytes.Buffer     // of the last call
	body      bytes.Buffer     // of the last call: what it sends, then what it is answered
	leads     [8]string        // the leads that the last answers named
	asked     bool             // the peer asked for a client certificate
	dialled   time.Duration    // how long dialling took
	carried   int              // requests so far
	restLimit time.Duration    // 0: it carries no other request
	idleSince time.Time        // since when no call uses it
	ctx       context.Context  // of the last call: its end also ends the connection
	unbind    func() bool      // undoes the tie to ctx; false: ctx has ended
}

// end closes the socket. A proper end of TLS would write first, and might wait.
func (c *conn) end() {
	c.unbind()
	c.socket.Close()
}

// noteKeepAlive limits the rest to half of what the server announces: the server counts from an earlier moment.
func (c *conn) noteKeepAlive(h http.Header) {
	for word := range strings.SplitSeq(strings.Join(h["Keep-Alive"], ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		n, err := strconv.ParseUint(strings.Trim(value, `" `), 10, 31)
		if err == nil && strings.EqualFold(strings.TrimSpace(name), "timeout") {
			c.restLimit = min(c.restLimit, time.Duration(n)*time.Second/2)
		}
	}
}

// noteLead notes the lead that an answer names. It reports whether the lead is wrong: not the updated one or, for a
// create, that of an earlier answer. Then the right answer may still come, and no other request may take it.
func (c *conn) noteLead(r *request) (wrong bool) {
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

// nothingBuffered reports whether TLS holds no bytes that it read ahead. It does not read from the socket.
func (c *conn) nothingBuffered() bool {
	if c.Conn == c.socket {
		return true
	}
	c.bounds.N, c.socket.late = maxHead, true
	_ = c.SetReadDeadline(longAgo) // fails only for a closed connection, and then Peek fails, too
	_, err := c.in.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

var longAgo = time.Unix(1, 0)

// socket counts the bytes that leave.
type socket struct {
	net.Conn
	out     int64
	late    bool                        // the call has already read once after its time limit
	readNow func(b []byte) (int, error) // reads what is there, without waiting
	one     [1]byte
}

func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.out += int64(n)
	return n, err
}

// Read reads what is there even after the time limit, once in each call: the process may have been stopped meanwhile.
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

// nothingToRead reports whether the connection is open and no byte has come. A byte that has come is lost.
func (s *socket) nothingToRead() bool {
	_, err := s.readNow(s.one[:])
	return isNothing(err)
}
