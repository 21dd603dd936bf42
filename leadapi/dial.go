package leadapi

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/proxy"
)

// way is how a host is reached: directly or through a proxy, HTTP/1.1 only.
type way struct {
	origin      string           // scheme and host
	name        string           // for the header Host
	domain      string           // without port
	address     string           // host and port, to dial
	tls         *tls.Config      // nil: plain HTTP, on loopback
	certificate *tls.Certificate // shown if the host asks for one; nil: none
	proxy       *Proxy           // nil: none
	proxyTLS    *tls.Config      // nil: the connection to the proxy is plain
}

// newHost returns the host of an address.
func (c Config) newHost(u *url.URL) (*host, error) {
	w := way{origin: u.Scheme + "://" + u.Host, name: u.Host, domain: u.Hostname(), certificate: c.Certificate}
	w.address = net.JoinHostPort(w.domain, cmp.Or(u.Port(), defaultPorts[u.Scheme]))
	if c.Proxy != nil {
		w.proxy = c.Proxy(u)
	}
	proxyTLS := w.proxy != nil && w.proxy.Scheme == "https"
	if u.Scheme == "https" || proxyTLS {
		trusted, err := x509.SystemCertPool() // takes as long as a short run, so only if needed
		if err != nil && len(c.Authorities) == 0 {
			return nil, wrong("certificates", "that this machine trusts cannot be read",
				"correct that (SSL_CERT_FILE, SSL_CERT_DIR), or name the service's authority with --ca-file")
		}
		trusted = cmp.Or(trusted, x509.NewCertPool()) // those of the Config may be enough
		for _, authority := range c.Authorities {
			trusted.AddCert(authority)
		}
		if u.Scheme == "https" {
			w.tls = c.tlsFor(w.domain, trusted)
		}
		if proxyTLS {
			w.proxyTLS = c.tlsFor(w.proxy.Hostname(), trusted)
		}
	}
	return &host{way: w, room: make(chan struct{}, c.Concurrency)}, nil
}

// tlsFor returns the TLS settings for a host name. Resumed sessions save most of a handshake.
func (c Config) tlsFor(name string, trusted *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, ServerName: name, RootCAs: trusted,
		ClientSessionCache: tls.NewLRUClientSessionCache(c.Concurrency),
	}
}

// dialError says why there is no connection, in our own words: a library's words may quote an address with a password.
type dialError struct {
	step       string // "connect", "proxy" or "tls"
	reason     string // ReasonConnect if the next try may work
	text, hint string
}

func (e *dialError) Error() string { return e.text }

// dial connects, goes through the proxy if there is one, and makes a TLS handshake if the host needs it. It calls made
// after each step. It writes nothing of the request: those bytes are counted later.
func (w *way) dial(ctx context.Context, limit time.Time, made func(step string, c *conn)) (*conn, *dialError) {
	began, within := time.Now(), min(dialLimit, time.Until(limit))
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	c := &conn{restLimit: restLimit, unbind: func() bool { return true }}
	step, fault := "connect", w.connect(ctx, c)
	if fault == nil && w.proxy != nil {
		made(step, c)
		step, fault = "proxy", w.throughProxy(ctx, c)
	}
	if fault == nil && w.tls != nil {
		made(step, c)
		step, fault = "tls", w.secure(ctx, c)
	}
	if fault == nil {
		made(step, c)
		c.in = bufio.NewReader(&c.bounds)
		c.bounds.R, c.dialled = c.Conn, time.Since(began)
		return c, nil
	}
	if c.socket != nil {
		c.socket.Close()
	}
	if ctx.Err() != nil { // the error of the step only says that it was interrupted
		fault = w.unconnected(fmt.Errorf("no connection within %s", max(within, 0).Round(time.Millisecond)))
	}
	fault.step = step
	return nil, fault
}

func (w *way) connect(ctx context.Context, c *conn) *dialError {
	at := w.address
	if w.proxy != nil {
		at = w.proxy.Host
	}
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err != nil {
		return w.unconnected(err)
	}
	c.socket = &socket{Conn: tcp, readNow: newReadNow(tcp)}
	c.Conn = c.socket
	return nil
}

// unconnected says why there is no connection to the service, or to the proxy if there is one.
func (w *way) unconnected(err error) *dialError {
	fault := &dialError{reason: ReasonConnect, text: cmp.Or(broken(err), err.Error())}
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		fault.text = "the name could not be looked up"
	}
	switch {
	case errors.Is(err, syscall.EMFILE):
		fault.hint = "this process may not open more files: raise that limit (ulimit -n), or lower --concurrency"
	case w.proxy != nil:
		fault.text, fault.hint = "the proxy "+w.proxy.String()+" cannot be reached: "+fault.text, wrongProxy
	case !loopback(w.domain):
		fault.hint = "check the address; if only a proxy reaches the internet, name it with --proxy or HTTPS_PROXY"
	}
	return fault
}

// broken says in the system's words what happened to a connection; "": the system has no words for it.
func broken(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the peer closed the connection"
	}
	return ""
}

const (
	wrongProxy = "check that a proxy listens there (http, https or socks5); leadferry config show tells who names it"
	ownWords   = "sends something of its own instead of what the service says"
)

// throughProxy asks the proxy to open a way to the host.
func (w *way) throughProxy(ctx context.Context, c *conn) *dialError {
	p := w.proxy
	if w.proxyTLS != nil {
		if err := c.handshake(ctx, w.proxyTLS, nil); err != nil {
			return handshakeFault(err, "the certificate of the proxy "+p.String(), p.Hostname())
		}
	}
	limit, _ := ctx.Deadline()
	_ = c.SetDeadline(limit)
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(longAgo) })()
	ask := p.connect
	if p.Scheme == "socks5" {
		ask = p.socks
	}
	fault := ask(ctx, c.Conn, w.address)
	if fault == nil && w.tls == nil && w.proxyTLS == nil && !c.socket.nothingToRead() { // it would count as the answer
		return p.fault(ReasonConnect, ownWords, "")
	}
	return fault
}

// connect asks an HTTP proxy for a connection (RFC 9110, section 9.3.6). It reads only the head of the answer.
func (p *Proxy) connect(_ context.Context, c net.Conn, address string) *dialError {
	request := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\nUser-Agent: leadferry\r\n"
	if p.User != nil {
		request += "Proxy-Authorization: Basic " +
			base64.StdEncoding.EncodeToString([]byte(p.User.Username()+":"+p.password())) + "\r\n"
	}
	_, err := io.WriteString(c, request+"\r\n")
	in := bufio.NewReader(io.LimitReader(c, maxHead))
	a := &http.Response{StatusCode: http.StatusContinue}
	for err == nil && a.StatusCode/100 == 1 && a.StatusCode != http.StatusSwitchingProtocols {
		a, err = http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	}
	switch {
	case err != nil:
		return p.silent(err)
	case a.StatusCode/100 != 2:
		return p.refusal(a.StatusCode)
	case in.Buffered() > 0:
		return p.fault(ReasonConnect, ownWords, "")
	}
	return nil
}

// refusal returns the error of an HTTP proxy that refuses. After a 429 or 5xx (not 501) the run waits, else it stops.
func (p *Proxy) refusal(status int) *dialError {
	reason := ReasonProxy
	switch {
	case status == http.StatusProxyAuthRequired:
		return p.fault(ReasonProxyAuth, "asks for a user and a password, or does not accept the user and password of "+
			"its address (HTTP 407)",
			"put them into its address, best in LEADFERRY_PROXY: "+p.Scheme+"://USER:PASSWORD@"+p.Host+"; "+escapes+
				"; a proxy that wants NTLM or Kerberos needs a helper on this machine, such as cntlm or px")
	case status/100 == 5 && status != http.StatusNotImplemented, status == http.StatusTooManyRequests:
		reason = ReasonConnect
	}
	return p.fault(reason, fmt.Sprintf("opens no way to the service: it answers CONNECT with HTTP %d", status),
		"ask its administrator whether it allows CONNECT to this address and port; --proxy none goes without")
}

// silent returns the error of a proxy that gave no readable answer.
func (p *Proxy) silent(err error) *dialError {
	return p.fault(ReasonConnect, "gave no answer: "+cmp.Or(broken(err), "none that can be read"), wrongProxy)
}

func (p *Proxy) fault(reason, text, hint string) *dialError {
	return &dialError{reason: reason, text: "the proxy " + p.String() + " " + text, hint: hint}
}

// socks asks a SOCKS5 proxy for a connection. Its errors are in the words of x/net.
func (p *Proxy) socks(ctx context.Context, c net.Conn, address string) *dialError {
	var auth *proxy.Auth
	if p.User.Username() != "" {
		auth = &proxy.Auth{User: p.User.Username(), Password: p.password()}
	}
	d, _ := proxy.SOCKS5("tcp", p.Host, auth, nil) // never fails
	_, err := d.(connected).DialWithConn(ctx, c, "tcp", address)
	switch {
	case err == nil:
		return nil
	case broken(err) != "" || errors.Is(err, os.ErrDeadlineExceeded):
		return p.silent(err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok { // its own text repeats the addresses
		err = op.Err
	}
	return p.fault(ReasonConnect, "opens no way to the service: "+err.Error(),
		"check its user and password, and whether it allows this address and port; --proxy none goes without")
}

// connected is what a Dialer of x/net does over a connection that is there already.
type connected interface {
	DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
}

// secure makes the TLS handshake with the service.
func (w *way) secure(ctx context.Context, c *conn) *dialError {
	err := c.handshake(ctx, w.tls, w.certificate)
	if err == nil {
		return nil
	}
	if fault := w.certificateRefused(c, err); fault != nil {
		return fault
	}
	return handshakeFault(err, "its certificate", w.domain)
}

// handshake starts TLS on the connection, and shows the certificate if the peer asks for one.
func (c *conn) handshake(ctx context.Context, config *tls.Config, certificate *tls.Certificate) error {
	config = config.Clone()
	c.asked = false
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		c.asked = true
		if certificate == nil {
			return new(tls.Certificate), nil
		}
		return certificate, nil // even if the peer wants another authority: its error says more than ours would
	}
	upon := tls.Client(c.Conn, config)
	if err := upon.HandshakeContext(ctx); err != nil {
		return err
	}
	c.Conn = upon
	return nil
}

// certificateRefused returns the error of a peer that asks for a client certificate and then sends a TLS alert; nil for
// any other err. In TLS 1.3 the alert comes after the handshake, instead of the answer. It does not say whether the
// request was applied.
func (w *way) certificateRefused(c *conn, err error) *dialError {
	alert, ok := errors.AsType[*net.OpError](err)
	if !ok || !c.asked || c.carried > 1 || alert.Op != "remote error" {
		return nil
	}
	fault := &dialError{
		reason: ReasonClientCert, text: "it asks for a client certificate, and none is set (" + plainly(alert.Err) +
			")",
		hint: "name one that the service accepts with --client-cert and --client-key",
	}
	if w.certificate != nil {
		fault.text = "it does not accept the client certificate of --client-cert (" + plainly(alert.Err) + ")"
		fault.hint = "ask the service's operators which certificates it accepts, and check if yours has expired"
	}
	return fault
}

// handshakeFault says why a handshake failed. A bad certificate stays bad. Any other fault may pass: one node of many
// may still be starting, or answer in plain text.
func handshakeFault(err error, whose, name string) *dialError {
	untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok {
		text := "the TLS handshake failed: " + cmp.Or(broken(err), plainly(err))
		return &dialError{reason: ReasonConnect, text: text, hint: "check the address and its port"}
	}
	issuer := cmp.Or(untrusted.UnverifiedCertificates[0].Issuer.String(), "nobody")
	return &dialError{
		reason: ReasonTLS, text: whose + " (for " + name + ", signed by " + issuer + ") is not good: " +
			plainly(untrusted.Err),
		hint: "check the address and this machine's clock; if your company opens TLS or has its own authority, name " +
			"the authority's certificate with --ca-file; otherwise somebody else may be answering",
	}
}

func plainly(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "tls: "), "x509: ")
}
