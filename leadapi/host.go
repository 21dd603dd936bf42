package leadapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"
)

// host is an application of the service and the connections to it: straight there or through a proxy, HTTP/1.1 only.
type host struct {
	name        string           // as the header Host says it
	domain      string           // without port
	address     string           // host and port, to dial
	tls         *tls.Config      // nil: plain HTTP, on loopback
	certificate *tls.Certificate // to show where one is asked for; nil: none
	proxy       *Proxy           // nil: none
	proxyTLS    *tls.Config      // nil: the way to the proxy is plain
	room        chan struct{}    // one token a connection in use or being dialled

	mu         sync.Mutex
	idle       []*conn   // the one used last comes last
	generation int       // connections of an earlier one are not used again
	opened     time.Time // when a connection was made last
	reuse      reuse
	traced     bool // calls are
}

// newHost returns the host of an address. An error is a *ConfigError.
func (c Config) newHost(u *url.URL) (*host, error) {
	h := &host{traced: c.Trace != nil, name: u.Host, domain: u.Hostname(), certificate: c.Certificate, room: make(chan struct{}, c.Concurrency)}
	h.address = net.JoinHostPort(h.domain, cmp.Or(u.Port(), defaultPorts[u.Scheme]))
	if c.Proxy != nil {
		h.proxy = c.Proxy(u)
	}
	overTLS := h.proxy != nil && h.proxy.scheme == "https"
	if u.Scheme != "https" && !overTLS {
		return h, nil
	}
	trusted, err := roots(c.Authorities)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "https" {
		h.tls = tlsConfig(h.domain, trusted, c.Concurrency)
	}
	if overTLS {
		h.proxyTLS = tlsConfig(h.proxy.name, trusted, c.Concurrency)
	}
	return h, nil
}

// take returns a connection that no other call uses: the idle one that was used last, if this call may go over it, or a
// new one; first says that the host must have answered something over it before that can make nothing. Where there may be no more
// connections it waits, at most until limit. The caller must put it back.
func (h *host) take(ctx context.Context, limit time.Time, kind use) (c *conn, first trial, err error) {
	if err := h.enter(ctx, limit); err != nil {
		return nil, first, err
	}
	if c, first = h.takeIdle(kind, time.Now()); c != nil {
		return c, first, nil
	}
	if c, err = h.open(ctx, limit); err != nil {
		<-h.room
		return nil, first, err
	}
	c.restLimit, c.left, c.traced = idleLimit, -1, h.traced
	if kind == safeConn && h.singleUse() {
		c.left = 1
	}
	c.retires = time.Now().Add(retireAfter + rand.N(retireAfter/3))
	return c, trial{}, nil
}

// enter waits until there may be one connection more.
func (h *host) enter(ctx context.Context, limit time.Time) error {
	select {
	case h.room <- struct{}{}: // mostly, and a timer would be dear
		return nil
	default:
	}
	ctx, stop := context.WithDeadline(ctx, limit)
	defer stop()
	select {
	case h.room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeIdle takes out the idle connection that was used last, of those that the call may go over; nil where there is none.
// For a new one it makes room: no more than there may be are open, resting ones included.
func (h *host) takeIdle(kind use, now time.Time) (c *conn, first trial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, c := range slices.Backward(h.idle) {
		if may, first := h.reuse.allows(&c.usage, kind, now); may {
			h.idle = slices.Delete(h.idle, i, i+1)
			c.rested, c.served = c.rest(now), false
			return c, first
		}
	}
	for len(h.idle) > 0 && len(h.room)+len(h.idle) > cap(h.room) {
		h.closeOldest()
	}
	return nil, trial{}
}

func (h *host) closeOldest() {
	h.idle[0].Close()
	h.idle = slices.Delete(h.idle, 0, 1)
}

// put takes back a connection: keep says that another call can use it.
func (h *host) put(c *conn, keep bool) {
	if !h.putIdle(c, keep) {
		c.Close()
	}
	<-h.room
}

// putIdle notes what the call has shown of the host and keeps the connection for another one, unless it is of an earlier
// generation. It closes those that have been idle for too long.
func (h *host) putIdle(c *conn, keep bool) bool {
	c.release()
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.served {
		h.reuse.answered(&c.usage)
	}
	if c.explores {
		c.explores, h.reuse.exploring = false, false
	}
	if !keep || c.generation != h.generation || !c.lasts(c.idleSince, 0) {
		return false
	}
	h.idle = append(h.idle, c)
	for !h.idle[0].lasts(c.idleSince, h.idle[0].rest(c.idleSince)) {
		h.closeOldest()
	}
	return true
}

// tried notes that a request was answered over a used connection, which goes on without rest.
func (h *host) tried(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reuse.answered(&c.usage)
	c.rested = 0
}

// closed takes back a connection that was found closed before anything was sent over it.
func (h *host) closed(c *conn) {
	h.mu.Lock()
	h.reuse.closed(c.rested)
	h.mu.Unlock()
	h.put(c, false)
}

// lost notes that the host closed a used connection, or fell silent upon it, instead of answering. From now on each create
// gets a connection of its own: first is said when it did not before.
func (h *host) lost(closed bool) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if closed {
		h.reuse.lost = time.Now()
	}
	first, h.reuse.single = !h.reuse.single, true
	return first
}

// singleUse tells whether each create gets a connection of its own.
func (h *host) singleUse() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reuse.single
}

// closeIdle closes the idle connections; those in use are not used again once their calls are over.
func (h *host) closeIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.generation++
	for _, c := range h.idle {
		c.Close()
	}
	h.idle = nil
}
