package leadapi

import (
	"cmp"
	"context"
	"crypto/tls"
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
	idle       []*conn // the one used last comes last
	generation int     // connections of an earlier one are not used again
}

// newHost returns the host of an address. An error is a *ConfigError.
func (c Config) newHost(u *url.URL) (*host, error) {
	h := &host{name: u.Host, domain: u.Hostname(), certificate: c.Certificate, room: make(chan struct{}, c.Concurrency)}
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

// take returns a connection that no other call uses: the idle one that was used last, if it can be used still, or a new one. Where
// there may be no more it waits, at most until limit. The caller must put it back.
func (h *host) take(ctx context.Context, limit time.Time) (*conn, error) {
	if err := h.enter(ctx, limit); err != nil {
		return nil, err
	}
	for c := h.takeIdle(); c != nil; c = h.takeIdle() {
		if c.fit(time.Now()) {
			return c, nil
		}
		c.Close()
	}
	c, err := h.dial(ctx, limit)
	if err != nil {
		<-h.room
		return nil, err
	}
	return c, nil
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

// takeIdle takes out the idle connection that was used last, nil where there is none.
func (h *host) takeIdle() *conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.idle) - 1
	if n < 0 {
		return nil
	}
	c := h.idle[n]
	h.idle = slices.Delete(h.idle, n, n+1)
	return c
}

// put takes back a connection: keep says that another call can use it.
func (h *host) put(c *conn, keep bool) {
	if !keep || !h.putIdle(c) {
		c.Close()
	}
	<-h.room
}

// putIdle keeps a connection for another call, unless it is of an earlier generation, and closes those that have been idle for too long.
func (h *host) putIdle(c *conn) bool {
	c.release()
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.generation != h.generation {
		return false
	}
	h.idle = append(h.idle, c)
	for h.idle[0].stale(c.idleSince) {
		h.idle[0].Close()
		h.idle = slices.Delete(h.idle, 0, 1)
	}
	return true
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
