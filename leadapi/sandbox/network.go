package sandbox

import (
	"cmp"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Network says at which addresses of this machine a Server is served, and how. A port of 0 takes a free one.
type Network struct {
	Addr      string        // of the general API, and of lead creation where that has none of its own
	LeadsAddr string        // of lead creation
	IdleClose time.Duration // after how long without a request a connection is closed; 0: never
	TLS       *TLS          // nil: plain HTTP
	ProxyAddr string        // of an HTTP proxy that leads to the two above and nowhere else; "": none
	ProxyUser *url.Userinfo // whom the proxy lets in; nil: everybody
}

// Listener serves a Server on ports of this machine. One goroutine accepts at each; Close waits for them.
type Listener struct {
	servers            []*http.Server
	url, leads         *url.URL
	proxy              *url.URL
	certificates       *certificates
	cancel             context.CancelFunc
	accepting, tunnels sync.WaitGroup
}

// Listen serves s at addr, such as 127.0.0.1:0 for any free port. It fails for an address that other machines reach.
func Listen(addr string, s *Server) (*Listener, error) { return s.Serve(Network{Addr: addr}) }

// Serve serves s as n says. It fails for addresses that other machines reach, and where certificates cannot be written.
func (s *Server) Serve(n Network) (l *Listener, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	l = &Listener{cancel: cancel}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("sandbox: %w", err), l.Close())
			l = nil
		}
	}()
	var secure *tls.Config
	if n.TLS != nil {
		if l.certificates, err = n.TLS.issue(time.Now()); err != nil {
			return l, err
		}
		secure = l.certificates.config
	}
	base, leads := http.Handler(s), http.Handler(s)
	if n.LeadsAddr != "" {
		base, leads = s.only("/v3/"), s.only("/v1/")
	}
	if l.url, err = l.serve(ctx, n, n.Addr, base, secure); err != nil {
		return l, err
	}
	if l.leads = l.url; n.LeadsAddr != "" {
		if l.leads, err = l.serve(ctx, n, n.LeadsAddr, leads, secure); err != nil {
			return l, err
		}
	}
	if n.ProxyAddr != "" {
		p := &proxy{server: s, user: n.ProxyUser, ports: []string{l.url.Port(), l.leads.Port()}, tunnels: &l.tunnels}
		if l.proxy, err = l.serve(ctx, n, n.ProxyAddr, p, nil); err != nil {
			return l, err
		}
		l.proxy.User = n.ProxyUser
	}
	return l, nil
}

// serve has a handler answer at an address, and returns its URL.
func (l *Listener) serve(ctx context.Context, n Network, addr string, h http.Handler, secure *tls.Config) (*url.URL, error) {
	host, _, err := net.SplitHostPort(addr)
	if err == nil && !isLoopback(host) {
		err = errors.New("the sandbox serves this machine only, at 127.0.0.1, [::1] or localhost")
	}
	var ln net.Listener
	if err == nil {
		ln, err = net.Listen("tcp", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	u := &url.URL{Scheme: "http", Host: ln.Addr().String()}
	if secure != nil {
		u.Scheme, ln = "https", tls.NewListener(ln, secure)
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: n.IdleClose,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // clients that break off are what it is for
	}
	l.servers = append(l.servers, server)
	l.accepting.Go(func() { _ = server.Serve(ln) }) // ends by Close alone
	return u, nil
}

func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// only serves one of the two applications: the paths that begin so.
func (s *Server) only(prefix string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, prefix) {
			s.ServeHTTP(w, r)
			return
		}
		a := refused(refuse(http.StatusNotFound, "this is the other application's address"))
		s.note("other", r, nil, a)
		a.write(w)
	})
}

// URL returns the address of the general API, without a path.
func (l *Listener) URL() string { return l.url.String() }

// LeadsURL returns the address of lead creation, without a path.
func (l *Listener) LeadsURL() string { return l.leads.String() }

// ProxyURL returns the address of the proxy, with user and password where it asks for them; "" where there is none.
func (l *Listener) ProxyURL() string {
	if l.proxy == nil {
		return ""
	}
	return l.proxy.String()
}

// Files returns the files that clients need for TLS, each "" where they need none: the certificate to trust, and their
// own certificate and key.
func (l *Listener) Files() (ca, cert, key string) {
	if l.certificates == nil {
		return "", "", ""
	}
	return l.certificates.ca, l.certificates.clientCert, l.certificates.clientKey
}

// Close stops serving. Answers that are late by a fault or a latency are cut short; other requests in
// flight have 2 seconds. The Server stays open.
func (l *Listener) Close() error {
	l.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var errs []error
	for _, server := range l.servers {
		if server.Shutdown(ctx) != nil {
			errs = append(errs, server.Close())
		}
	}
	l.accepting.Wait()
	l.tunnels.Wait()
	if l.certificates != nil && l.certificates.temporary {
		errs = append(errs, os.RemoveAll(l.certificates.dir))
	}
	return errors.Join(errs...)
}

const proxyKind = "proxy"

// proxy leads to the sandbox's own ports alone, by CONNECT.
type proxy struct {
	server  *Server
	user    *url.Userinfo
	ports   []string
	tunnels *sync.WaitGroup
}

// ServeHTTP makes a tunnel, or says why it does not.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := p.server.faults.pick(proxyKind)
	if f != nil && f.name == "slow" {
		p.server.pause(r.Context(), cmp.Or(f.pause, slowness))
	}
	if f != nil && (f.name == "hang" || f.name == "drop") {
		if f.name == "hang" {
			p.server.pause(r.Context(), forEver)
		}
		p.server.note(proxyKind, r, f, answer{})
		panic(http.ErrAbortHandler)
	}
	a, fault := p.refusal(r), f != nil && f.status > 0
	if fault {
		a = p.server.faults.answer(f)
	}
	if a.status == 0 {
		conn, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
		if err == nil {
			p.server.note(proxyKind, r, f, answer{status: http.StatusOK})
			p.tunnel(w, r, conn)
			return
		}
		a = refused(refuse(http.StatusBadGateway, "the sandbox cannot be reached"))
	}
	p.server.note(proxyKind, r, f, a)
	a.write(w)
}

// refusal is what speaks against a tunnel, or nothing.
func (p *proxy) refusal(r *http.Request) (a answer) {
	host, port, err := net.SplitHostPort(r.Host)
	switch {
	case r.Method != http.MethodConnect:
		return refused(&refusal{status: http.StatusMethodNotAllowed, reason: "this proxy takes CONNECT", allow: http.MethodConnect})
	case !p.admits(r.Header.Get("Proxy-Authorization")):
		a = refused(refuse(http.StatusProxyAuthRequired, "user or password of the proxy is wrong or missing"))
		a.header["Proxy-Authenticate"] = `Basic realm="leadferry sandbox"`
	case err != nil || !isLoopback(host) || port != p.ports[0] && port != p.ports[1]:
		return refused(refuse(http.StatusForbidden, "this proxy leads to the sandbox alone"))
	}
	return a
}

func (p *proxy) admits(header string) bool {
	if p.user == nil {
		return true
	}
	password, _ := p.user.Password()
	want := base64.StdEncoding.EncodeToString([]byte(p.user.Username() + ":" + password))
	scheme, have, _ := strings.Cut(header, " ")
	return strings.EqualFold(scheme, "Basic") && subtle.ConstantTimeCompare([]byte(have), []byte(want)) == 1
}

// tunnel carries bytes both ways until both sides have ended, or the Listener is closed.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request, far net.Conn) {
	defer far.Close()
	near, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	p.tunnels.Add(1) // nobody else waits for a connection that was hijacked
	defer p.tunnels.Done()
	defer context.AfterFunc(r.Context(), func() { _, _ = near.Close(), far.Close() })()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { carry(near, far) })
	carry(far, early.Reader)
	back.Wait()
}

// carry copies one way to its end, and tells the receiver of it.
func carry(to net.Conn, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close() // what came is not whole
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
