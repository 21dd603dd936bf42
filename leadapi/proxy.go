package leadapi

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/net/proxy"
)

// Proxy is what stands between this machine and the service, and opens a way through itself: an HTTP proxy, by CONNECT, or
// a SOCKS5 proxy (RFC 1928). It sees neither requests nor answers.
type Proxy struct {
	scheme       string // http, https or socks5
	name         string // of its host
	address      string // host and port, to dial
	user, secret string // "": none
}

var proxyPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080"}

// ParseProxy reads the address of a proxy: http, which is meant where there is no scheme, https or socks5, with user and
// password if need be. Its error is a *[ConfigError] that repeats nothing of the address.
func ParseProxy(text string) (*Proxy, error) {
	fail := func(sentence, hint string) (*Proxy, error) {
		return nil, &ConfigError{"Proxy", "the proxy " + sentence, hint}
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.Contains(u.Hostname(), "%") || !port(u) || strings.ContainsFunc(text, blank) || normalize(u) != nil {
		return fail("is not an address", "it looks like http://proxy.example.com:3128; in a user or password, signs such as @ : / # are written as %40 %3A %2F %23")
	}
	p := &Proxy{scheme: strings.ToLower(u.Scheme), name: u.Hostname()}
	if p.scheme == "socks5h" { // names are never looked up here
		p.scheme = "socks5"
	}
	p.address = net.JoinHostPort(p.name, cmp.Or(u.Port(), proxyPorts[p.scheme]))
	p.user = u.User.Username()
	p.secret, _ = u.User.Password()
	switch {
	case proxyPorts[p.scheme] == "":
		return fail("must begin with http://, https:// or socks5://", "")
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return fail("has something behind the port", "in a user or password, signs such as / ? # are written as %2F %3F %23")
	case p.scheme == "socks5" && max(len(p.user), len(p.secret)) > 255:
		return fail("has a user or password of more than 255 bytes, which SOCKS5 cannot carry", "")
	}
	return p, nil
}

// String is the proxy's address without user and password.
func (p *Proxy) String() string { return p.scheme + "://" + p.address }

// URL is the whole address, user and password included, for another client.
func (p *Proxy) URL() *url.URL {
	u := &url.URL{Scheme: p.scheme, Host: p.address}
	if p.user != "" || p.secret != "" {
		u.User = url.UserPassword(p.user, p.secret)
	}
	return u
}

// HasPassword reports whether the address holds what nobody else may see.
func (p *Proxy) HasPassword() bool { return p.secret != "" }

// over names the proxy in a sentence; nothing where there is none.
func (p *Proxy) over() string {
	if p == nil {
		return ""
	}
	return " over the proxy " + p.String()
}

// tunnel has the host's proxy open a way to the host, upon a connection to the proxy.
func (h *host) tunnel(ctx context.Context, c net.Conn) (net.Conn, *dialError) {
	p := h.proxy
	if h.proxyTLS != nil {
		under := &tap{Conn: c}
		secure, err := handshake(ctx, under, h.proxyTLS, nil)
		if err != nil {
			return nil, h.proxyHandshakeFault(under, err)
		}
		c = secure
	}
	if limit, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(limit) // fails for a closed connection only
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(longAgo) })()
	if p.scheme == "socks5" {
		return c, p.socks(ctx, c, h.address)
	}
	return c, p.connect(c, h.address)
}

// connect asks an HTTP proxy for a connection (RFC 9110, section 9.3.6). The answer's head is bounded, its body is not read.
func (p *Proxy) connect(c net.Conn, address string) *dialError {
	request := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\nUser-Agent: leadferry\r\n"
	if p.user != "" || p.secret != "" {
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.user+":"+p.secret)) + "\r\n"
	}
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
		return p.silent(err)
	}
	in := bufio.NewReader(io.LimitReader(c, maxHead))
	a := &http.Response{StatusCode: http.StatusContinue}
	for a.StatusCode/100 == 1 && a.StatusCode != http.StatusSwitchingProtocols {
		var err error
		if a, err = http.ReadResponse(in, &http.Request{Method: http.MethodConnect}); err != nil {
			return p.silent(err)
		}
	}
	switch {
	case a.StatusCode == http.StatusProxyAuthRequired && !offersBasic(a.Header):
		fault := p.fault("asks for a sign-in of a kind other than Basic (HTTP 407)")
		fault.reason, fault.hint = ReasonProxyAuth, "Basic alone is supported: where the proxy wants NTLM or Kerberos, a helper on this machine, such as cntlm or px, can sign in, and is named as the proxy"
		return fault
	case a.StatusCode/100 != 2:
		return p.refusal(a.StatusCode)
	case in.Buffered() > 0:
		return p.fault(ownWords)
	}
	return nil
}

// offersBasic reports whether a proxy takes a user and a password as they are, or does not say what it takes.
func offersBasic(h http.Header) bool {
	offered := h.Values("Proxy-Authenticate")
	return len(offered) == 0 || slices.ContainsFunc(offered, func(text string) bool { return strings.Contains(strings.ToLower(text), "basic") })
}

const ownWords = "sent something of its own behind its answer"

// silent is the error of a proxy that gave no answer that can be read.
func (p *Proxy) silent(err error) *dialError {
	fault := p.fault("gave no answer that can be read")
	if what := broken(err); what != "" {
		fault.text = "the proxy " + p.String() + " gave no answer: " + what
	}
	fault.hint = "check that a proxy listens there, and whether it is http://, https:// or socks5://"
	return fault
}

// fault is an error of the proxy that may pass.
func (p *Proxy) fault(text string) *dialError {
	return &dialError{reason: ReasonConnect, text: "the proxy " + p.String() + " " + text}
}

// refusal is the error for an answer of an HTTP proxy that opens no way. What says that the proxy cannot now is waited for;
// what says that it does not, stops a run.
func (p *Proxy) refusal(status int) *dialError {
	fault := p.fault(fmt.Sprintf("opens no way to the service: it answers CONNECT with HTTP %d", status))
	fault.hint = "check the address; if it is right, whoever runs the proxy can tell why it cannot reach it"
	final := []int{http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusNetworkAuthenticationRequired}
	passing := []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, 499}
	switch {
	case status == http.StatusProxyAuthRequired:
		return p.unauthorized("HTTP 407")
	case status == http.StatusForbidden:
		fault.reason, fault.hint = ReasonProxy, "ask whoever runs the proxy to allow CONNECT to this address and port, or take the address out of its use with NO_PROXY or --proxy none"
	case status/100 != 5 && !slices.Contains(passing, status), slices.Contains(final, status):
		fault.reason, fault.hint = ReasonProxy, "check that this is an HTTP proxy that allows CONNECT; --proxy none goes without"
	}
	return fault
}

// unauthorized is the error of a proxy that does not take the user, or wants one.
func (p *Proxy) unauthorized(how string) *dialError {
	fault := p.fault("asks for a user and a password (" + how + ")")
	fault.reason, fault.hint = ReasonProxyAuth, "put them into its address, best in LEADFERRY_PROXY, which the process list does not show: "+p.scheme+"://USER:PASSWORD@"+p.address
	if p.user != "" || p.secret != "" {
		fault.text = "the proxy " + p.String() + " does not accept the user and password of its address (" + how + ")"
		fault.hint = "check both: signs such as @ : / # are written as %40 %3A %2F %23"
	}
	return fault
}

// socks asks a SOCKS5 proxy for a connection. Why it opens none is told in x/net's words, so all but a sign-in without a user
// is taken for something that may pass.
func (p *Proxy) socks(ctx context.Context, c net.Conn, address string) *dialError {
	var auth *proxy.Auth
	if p.user != "" {
		auth = &proxy.Auth{User: p.user, Password: p.secret}
	}
	d, err := proxy.SOCKS5("tcp", p.address, auth, connected{c})
	if err == nil {
		_, err = d.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
	}
	if err == nil {
		return nil
	}
	if what := broken(err); what != "" || errors.Is(err, os.ErrDeadlineExceeded) {
		return p.silent(err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok { // which names the addresses once more
		err = op.Err
	}
	fault := p.fault("opens no way to the service: " + err.Error())
	fault.hint = "check its address, user and password, and whether it allows this address and port; --proxy none goes without"
	return fault
}

// connected is a Dialer that has dialled already.
type connected struct{ net.Conn }

// Dial returns the connection that there is.
func (c connected) Dial(string, string) (net.Conn, error) { return c.Conn, nil }
