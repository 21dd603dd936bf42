package leadapi

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"syscall"
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
	restLimit  time.Duration
	single     bool // it has closed a used connection under a request: creates get one each
}

// newHost returns the host of an address. An error is a *ConfigError.
func (c Config) newHost(u *url.URL) (*host, error) {
	h := &host{restLimit: restLimit, name: u.Host, domain: u.Hostname(), certificate: c.Certificate, room: make(chan struct{}, c.Concurrency)}
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
// new one. Where there may be no more connections it waits, at most until limit. The caller must put it back.
func (h *host) take(ctx context.Context, limit time.Time, kind use) (*conn, error) {
	if err := h.enter(ctx, limit); err != nil {
		return nil, err
	}
	c, once := h.takeIdle(kind, time.Now())
	if c != nil {
		return c, nil
	}
	c, err := h.open(ctx, limit)
	if err != nil {
		<-h.room
		return nil, err
	}
	if c.restLimit, c.left = restLimit, -1; once {
		c.left = 1
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

// takeIdle takes out the idle connection that was used last, if the call may go over it; once says that it must be the only
// one on its own. For a new one it makes room: no more than there may be are open, resting ones included.
func (h *host) takeIdle(kind use, now time.Time) (c *conn, once bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closeRested(now)
	once = kind == safeConn && h.single
	if last := len(h.idle) - 1; last >= 0 && kind != newConn && !once {
		c, h.idle = h.idle[last], h.idle[:last]
		c.rested = c.rest(now)
		return c, false
	}
	for len(h.idle) > 0 && len(h.room)+len(h.idle) > cap(h.room) {
		h.closeOldest()
	}
	return nil, once
}

// closeRested closes the connections that have rested for too long.
func (h *host) closeRested(now time.Time) {
	h.idle = slices.DeleteFunc(h.idle, func(c *conn) bool {
		old := c.left == 0 || c.rest(now) >= min(c.restLimit, h.restLimit)
		if old {
			c.Close()
		}
		return old
	})
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

// putIdle keeps the connection for another call, unless it is of an earlier generation.
func (h *host) putIdle(c *conn, keep bool) bool {
	c.release()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closeRested(c.idleSince)
	if !keep || c.generation != h.generation || c.left == 0 || min(c.restLimit, h.restLimit) <= 0 {
		return false
	}
	h.idle = append(h.idle, c)
	return true
}

// foundClosed notes that the host had closed a connection, or was about to, after it had rested for so long.
func (h *host) foundClosed(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.restLimit = min(h.restLimit, c.rested/2)
}

// useOnce gives each create a connection of its own from now on. It reports whether none had one before.
func (h *host) useOnce() (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, h.single = !h.single, true
	return first
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

// dialError is why there is no connection, in words made here: what lies below may quote an address with a password in it.
type dialError struct {
	reason     string // ReasonConnect, where it may be otherwise the next time
	text, hint string
	untaken    bool // a request was written, and the peer ended the handshake before it could have read it
}

func (e *dialError) Error() string { return e.text }

// open dials, and where that fails fast although the host was there lately, it dials again at once: behind one address
// there may be several nodes, of which one is down, and a run has no reason to pause for it.
func (h *host) open(ctx context.Context, limit time.Time) (c *conn, err error) {
	for n := 0; ; n++ {
		began := time.Now()
		c, err = h.dial(ctx, limit)
		h.mu.Lock()
		known := began.Sub(h.opened) < recentDial
		if err == nil {
			h.opened = began
		}
		h.mu.Unlock()
		fault, _ := errors.AsType[*dialError](err)
		if err == nil || !known || n == redials || fault.reason != ReasonConnect || time.Since(began) > fastFailure || ctx.Err() != nil {
			return c, err
		}
	}
}

// dial connects, over the proxy where there is one, and makes a TLS handshake where the host wants it. Of what is written
// here nothing is the request's: its bytes are counted from then on. An error is a *dialError.
func (h *host) dial(ctx context.Context, limit time.Time) (*conn, error) {
	within := min(dialLimit, time.Until(limit))
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	h.mu.Lock()
	c := &conn{generation: h.generation}
	h.mu.Unlock()
	fault := h.reach(ctx, c)
	if fault != nil {
		if c.socket != nil {
			c.socket.Close()
		}
		if ctx.Err() != nil { // what was under way tells no more than that it was interrupted
			fault = &dialError{reason: ReasonConnect, text: fmt.Sprintf("no connection%s within %s", h.proxy.over(), max(within, 0).Round(time.Millisecond)), hint: h.hint()}
		}
		return nil, fault
	}
	c.in = bufio.NewReader(&c.bounds)
	c.bounds.R = c.Conn
	return c, nil
}

// layer is a part of a connection, which is made upon what there is.
type layer struct {
	name string
	make func(ctx context.Context, c *conn) *dialError
}

// layers are those of a connection to the host, from the socket up.
func (h *host) layers() []layer {
	all := append(make([]layer, 0, 3), layer{"connect", h.connect})
	if h.proxy != nil {
		all = append(all, layer{"proxy", h.cross})
	}
	if h.tls != nil {
		all = append(all, layer{"tls", h.secure})
	}
	return all
}

func (h *host) reach(ctx context.Context, c *conn) *dialError {
	for _, l := range h.layers() {
		if fault := l.make(ctx, c); fault != nil {
			return fault
		}
	}
	return nil
}

func (h *host) connect(ctx context.Context, c *conn) *dialError {
	at := h.address
	if h.proxy != nil {
		at = h.proxy.address
	}
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err != nil {
		return h.unconnected(err)
	}
	peek, err := newPeek(tcp)
	if err != nil {
		tcp.Close()
		return h.unconnected(err)
	}
	c.socket = &socket{Conn: tcp, peek: peek}
	c.Conn = c.socket
	return nil
}

func (h *host) cross(ctx context.Context, c *conn) (fault *dialError) {
	c.Conn, fault = h.tunnel(ctx, c.socket)
	if fault == nil && h.tls == nil && h.proxyTLS == nil && !c.socket.nothingToRead() { // it would be taken for the first answer
		return h.proxy.fault(ownWords)
	}
	return fault
}

func (h *host) secure(ctx context.Context, c *conn) *dialError {
	c.tap = &tap{Conn: c.Conn}
	secure, err := handshake(ctx, c.tap, h.tls, h.certificate)
	if err != nil {
		return h.handshakeFault(c.tap, err)
	}
	c.Conn = secure
	return nil
}

// unconnected says why there is no connection to the service, or to the proxy where there is one.
func (h *host) unconnected(err error) *dialError {
	fault := &dialError{reason: ReasonConnect, text: cmp.Or(broken(err), noConnection), hint: h.hint()}
	_, unknown := errors.AsType[*net.DNSError](err)
	switch {
	case unknown && h.proxy == nil:
		fault.text = "the name could not be looked up"
	case unknown:
		fault.text = "the name of the proxy " + h.proxy.String() + " could not be looked up"
	case h.proxy != nil:
		fault.text = "the proxy " + h.proxy.String() + " cannot be reached: " + fault.text
	}
	return fault
}

// hint says what to look at where nobody answers.
func (h *host) hint() string {
	switch {
	case h.proxy != nil:
		return "check that a proxy listens there, and whether it is http://, https:// or socks5://; leadferry config show tells where it is named"
	case loopback(h.domain):
		return ""
	}
	return "check the address; where this machine reaches the internet over a proxy alone, name it with --proxy or HTTPS_PROXY"
}

// broken says in the system's words what became of a connection; nothing where it has none.
func broken(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the peer closed the connection"
	}
	return ""
}

const noConnection = "no connection, or one that was closed meanwhile"

// handshake speaks TLS upon t, and shows the certificate where one is asked for.
func handshake(ctx context.Context, t *tap, config *tls.Config, certificate *tls.Certificate) (*tls.Conn, error) {
	config = config.Clone()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		t.asked, t.shown = true, certificate
		if certificate == nil {
			return new(tls.Certificate), nil
		}
		return certificate, nil // also where it is of another authority than asked for: the peer says so better
	}
	secure := tls.Client(t, config)
	trace := httptrace.ContextClientTrace(ctx) // of a Detail; only net/http's own transport would tell it
	if trace != nil {
		trace.TLSHandshakeStart()
	}
	err := secure.HandshakeContext(ctx)
	if trace != nil {
		trace.TLSHandshakeDone(tls.ConnectionState{}, err)
	}
	t.done = true
	return secure, err
}
