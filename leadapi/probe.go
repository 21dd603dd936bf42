package leadapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

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
	state := made.Conn.(*tls.Conn).ConnectionState()
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
