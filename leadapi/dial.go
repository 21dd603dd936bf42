package leadapi

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

const dialLimit = 10 * time.Second // for connecting, a proxy's answer and the TLS handshakes, together

// dialError is why there is no connection, in words made here: what lies below may quote an address with a password in it.
type dialError struct {
	reason     string // ReasonConnect, where it may be otherwise the next time
	text, hint string
	untaken    bool // a request was written, and the peer ended the handshake before it could have read it
}

func (e *dialError) Error() string { return e.text }

const (
	lately  = 30 * time.Second // since a connection was made: the host is there
	atOnce  = time.Second      // a dial that fails within it is tried again
	redials = 2
)

// open dials, and where that fails fast although the host was there lately, it dials again at once: behind one address
// there may be several nodes, of which one is down, and a run has no reason to pause for it.
func (h *host) open(ctx context.Context, limit time.Time) (c *conn, err error) {
	for n := 0; ; n++ {
		began := time.Now()
		c, err = h.dial(ctx, limit)
		h.mu.Lock()
		known := began.Sub(h.opened) < lately
		if err == nil {
			h.opened = began
		}
		h.mu.Unlock()
		fault, _ := errors.AsType[*dialError](err)
		if err == nil || !known || n == redials || fault.reason != ReasonConnect || time.Since(began) > atOnce || ctx.Err() != nil {
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
	if fault == nil && h.tls == nil && h.proxyTLS == nil && !c.socket.quiet() { // it would be taken for the first answer
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

// Step is one thing that Probe has tried.
type Step struct {
	LeadCreation bool          // with the lead creation application; else with the general API
	Name         string        // "lookup", "connect", "proxy", "tls", "answer" or "sign-in"
	Works        bool          //
	Text         string        // what was found, or why it does not work; no secrets
	Hint         string        // what the user can do; may be ""
	Took         time.Duration // 0 where nothing was tried
}

// Probe tries step by step what a run needs of the service: for each application the way to it (name, connection, proxy,
// TLS), then an answer of lead creation, to a GET without token, and a token for the account. It can make nothing. It tells
// of each step when it is over; the steps behind one that does not work are left out. Each step takes 10 s at most, those
// that wait for an answer Config.Timeout.
func (c *Client) Probe(ctx context.Context, tell func(Step)) {
	open := c.probeWay(ctx, c.general, tell)
	if open {
		tell(c.probeToken(ctx))
	}
	forLeads := func(s Step) { s.LeadCreation = true; tell(s) }
	if c.leads != nil && c.leads != c.general {
		open = c.probeWay(ctx, c.leads, forLeads)
	}
	if c.leads != nil && open {
		forLeads(c.probeAnswer(ctx))
	}
}

// probeWay makes a connection layer by layer, and lets go of it. It reports whether that went well.
func (c *Client) probeWay(ctx context.Context, h *host, tell func(Step)) bool {
	if s, needed := h.probeName(ctx); needed {
		if tell(s); !s.Works {
			return false
		}
	}
	ctx, stop := context.WithTimeout(ctx, dialLimit)
	defer stop()
	made := new(conn)
	defer func() {
		if made.socket != nil {
			made.socket.Close()
		}
	}()
	for _, l := range h.layers() {
		s, began := Step{Name: l.name, Works: true}, time.Now()
		fault := l.make(ctx, made)
		s.Took = time.Since(began)
		switch {
		case fault != nil && ctx.Err() != nil:
			s.Works, s.Text = false, fmt.Sprintf("no answer within %s", dialLimit)
			s.Hint = "check the address and its port, and whether a firewall is in the way or a proxy is needed"
		case fault != nil:
			s.Works, s.Text, s.Hint = false, redact(fault.text), redact(fault.hint)
		default:
			s.Text, s.Hint = h.found(l.name, made)
		}
		if tell(s); !s.Works {
			return false
		}
	}
	return true
}

// probeName looks up the name that connections begin with: the proxy's, where there is one. An address needs no look-up.
func (h *host) probeName(ctx context.Context) (s Step, needed bool) {
	name := h.domain
	if h.proxy != nil {
		name = h.proxy.name
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return s, false
	}
	ctx, stop := context.WithTimeout(ctx, dialLimit)
	defer stop()
	began := time.Now()
	found, err := net.DefaultResolver.LookupHost(ctx, name)
	s = Step{Name: "lookup", Works: err == nil, Text: redact(name + " is " + strings.Join(found, ", ")), Took: time.Since(began)}
	if err != nil {
		fault := h.unconnected(err)
		s.Text, s.Hint = redact(fault.text), redact(fault.hint)
	}
	return s, true
}

// found says what a layer turned out to be.
func (h *host) found(layer string, made *conn) (text, hint string) {
	switch layer {
	case "connect":
		return made.socket.RemoteAddr().String(), ""
	case "proxy":
		return h.proxy.String() + " opens the way to " + h.address, ""
	}
	secure, ok := made.Conn.(*tls.Conn)
	if !ok {
		return "", ""
	}
	state := secure.ConnectionState()
	leaf := state.PeerCertificates[0] // there is one where the handshake went well
	days := int(math.Floor(time.Until(leaf.NotAfter).Hours() / 24))
	text = fmt.Sprintf("%s, certificate of %s, good for %d days more", tls.VersionName(state.Version), cmp.Or(leaf.Issuer.String(), "an authority without name"), days)
	switch {
	case made.tap.shown != nil:
		text += "; it asks for a client certificate and gets that of --client-cert"
	case made.tap.asked:
		text += "; it asks for a client certificate and gets none"
	}
	if days < 5 {
		hint = "ask whoever runs the service to renew its certificate in time"
	}
	return redact(text), hint
}

// probeAnswer has lead creation answer a request that can make nothing.
func (c *Client) probeAnswer(ctx context.Context) Step {
	began := time.Now()
	status, fault := c.do(ctx, c.reaching(), func([]byte) bool { return true })
	s := Step{Name: "answer", Works: true, Text: fmt.Sprintf("a GET without token is answered with HTTP %d", status), Took: time.Since(began)}
	switch {
	case fault == nil: // as any address does that takes GET
	case status == 0:
		s.Works, s.Text, s.Hint = false, fault.Message, fault.Hint
	case status == http.StatusNotFound:
		s.Hint = "this may be how the service answers a GET; it may also not know the address or the trunk ID"
	case status/100 == 3:
		s.Works, s.Hint = false, "the service redirects, which is never followed: name the address to which it leads with --leads-url"
	case status/100 == 5 || status == http.StatusTooManyRequests || status == http.StatusProxyAuthRequired || status == http.StatusMisdirectedRequest:
		s.Works, s.Hint = false, cmp.Or(fault.Hint, "the service, or what stands before it, does not work now: try again later")
	}
	return s
}

func (c *Client) probeToken(ctx context.Context) Step {
	s, began := Step{Name: "sign-in"}, time.Now()
	if c.config.ClientID == "" {
		s.Text, s.Hint = "no OAuth client with its secret is set, so nothing was tried", "leadferry login makes one and stores it; or set LEADFERRY_CLIENT_ID and its secret"
		return s
	}
	err := c.SignIn(ctx)
	s.Works, s.Text, s.Took = err == nil, "the token endpoint gives the OAuth client a token", time.Since(began)
	if fault, failed := errors.AsType[*Error](err); failed {
		s.Text, s.Hint = fault.Error(), fault.Hint
		if fault.Status == http.StatusUnauthorized || fault.Status == http.StatusBadRequest || fault.Status == http.StatusForbidden {
			s.Hint = cmp.Or(s.Hint, "check client ID and secret, and that they are of this deployment: US and EU have accounts of their own")
		}
	}
	return s
}
