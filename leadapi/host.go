package leadapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	dialLimit = 10 * time.Second // for connecting and the TLS handshake
	// idleLimit is below the 5 s after which common servers close a connection: a create that crosses such a close
	// would be in doubt.
	idleLimit = 4 * time.Second
)

// host is an application of the service and the connections to it: straight there, over no proxy, HTTP/1.1 only.
type host struct {
	name    string        // as the header Host says it
	domain  string        // without port
	address string        // host and port, to dial
	tls     *tls.Config   // nil: plain HTTP, on loopback
	room    chan struct{} // one token a connection in use or being dialled

	mu      sync.Mutex
	resting []*wire // the one used last comes last
	era     int     // connections of an earlier one are not used again
}

// newHost returns the host of an address, with conns connections at most.
func newHost(u *url.URL, conns int) *host {
	h := &host{name: u.Host, domain: u.Hostname(), room: make(chan struct{}, conns)}
	port := "80"
	if u.Scheme == "https" {
		port = "443"
		h.tls = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, ServerName: u.Hostname()}
	}
	if u.Port() != "" {
		port = u.Port()
	}
	h.address = net.JoinHostPort(u.Hostname(), port)
	return h
}

// take returns a connection that no other call uses, and waits for one up to limit.
func (h *host) take(ctx context.Context, limit time.Time) (*wire, error) {
	if err := h.enter(ctx, limit); err != nil {
		return nil, err
	}
	if w := h.rested(); w != nil {
		return w, nil
	}
	if soon := time.Now().Add(dialLimit); soon.Before(limit) {
		limit = soon
	}
	ctx, stop := context.WithDeadline(ctx, limit)
	defer stop()
	h.mu.Lock()
	era := h.era
	h.mu.Unlock()
	w, err := h.dial(ctx)
	if err != nil {
		<-h.room
		return nil, err
	}
	w.era = era
	return w, nil
}

// enter waits until there may be one connection more.
func (h *host) enter(ctx context.Context, limit time.Time) error {
	select {
	case h.room <- struct{}{}:
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

// rested returns a resting connection that can be used, or nil.
func (h *host) rested() *wire {
	for {
		h.mu.Lock()
		n := len(h.resting) - 1
		if n < 0 {
			h.mu.Unlock()
			return nil
		}
		w := h.resting[n]
		h.resting[n] = nil
		h.resting = h.resting[:n]
		h.mu.Unlock()
		if w.fit(time.Now()) {
			return w
		}
		w.Close()
	}
}

// leave takes back a connection: keep says that another call can use it.
func (h *host) leave(w *wire, keep bool) {
	if keep {
		w.rest()
		h.shelve(w)
	} else {
		w.Close()
	}
	<-h.room
}

// shelve lets a connection rest, and closes those that have rested for too long.
func (h *host) shelve(w *wire) {
	h.mu.Lock()
	if w.era != h.era {
		h.mu.Unlock()
		w.Close()
		return
	}
	h.resting = append(h.resting, w)
	n := 0
	for h.resting[n].stale(w.rested) {
		n++
	}
	old := slices.Clone(h.resting[:n])
	h.resting = slices.Delete(h.resting, 0, n)
	h.mu.Unlock()
	for _, w := range old {
		w.Close()
	}
}

// renew has every connection that there is used no more once its call is over.
func (h *host) renew() {
	h.mu.Lock()
	h.era++
	h.mu.Unlock()
	h.close()
}

// close closes the resting connections.
func (h *host) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.resting {
		w.Close()
	}
	h.resting = nil
}

// handshakeError is a handshake that failed for what the peer is, not for the network: it will be so the next time.
type handshakeError struct{ error }

func (h *host) dial(ctx context.Context) (*wire, error) {
	var d net.Dialer
	tcp, err := d.DialContext(ctx, "tcp", h.address)
	if err != nil {
		return nil, err
	}
	s, err := newSocket(tcp)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	if h.tls == nil {
		return newWire(s, s), nil
	}
	upon := tls.Client(s, h.tls)
	if err := upon.HandshakeContext(ctx); err != nil {
		tcp.Close()
		return nil, handshakeFault(ctx, err)
	}
	return newWire(s, upon), nil
}

func handshakeFault(ctx context.Context, err error) error {
	var errno syscall.Errno
	broken := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &errno)
	if ctx.Err() != nil || broken {
		return err
	}
	return handshakeError{err}
}

// unsent says why nothing left.
func unsent(err error) (reason, text string) {
	var errno syscall.Errno
	if fault, ok := errors.AsType[handshakeError](err); ok {
		return ReasonTLS, fault.Error()
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return ReasonConnect, "the name could not be looked up"
	}
	if errors.As(err, &errno) {
		return ReasonConnect, errno.Error()
	}
	return ReasonConnect, "no connection, or one that was closed meanwhile"
}
