package leadapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Step is one thing that Probe has tried.
type Step struct {
	LeadCreation bool          // with the lead creation application; else with the general API
	Name         string        // "connect", "proxy", "tls", "answer" or "sign-in"
	Works        bool          //
	Text         string        // what was found, or why it does not work; no secrets
	Hint         string        // what the user can do; may be ""
	Took         time.Duration // 0 where nothing was tried
}

// Probe tries step by step what a run needs: for each application the way to it (connection, proxy, TLS), an answer of
// lead creation to a GET without token, and a token for the account. It can make nothing. It tells of each step when it
// is over, and leaves out the steps behind one that does not work.
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

// probeWay makes a connection and lets go of it. It reports whether that went well.
func (c *Client) probeWay(ctx context.Context, h *host, tell func(Step)) bool {
	began := time.Now()
	made, fault := h.dial(ctx, began.Add(dialLimit), func(step string, made *conn) {
		tell(Step{Name: step, Works: true, Text: redact(h.found(step, made)), Took: time.Since(began)})
		began = time.Now()
	})
	if fault != nil {
		tell(Step{Name: fault.step, Text: redact(fault.text), Hint: redact(fault.hint), Took: time.Since(began)})
		return false
	}
	made.Close()
	return true
}

// found says what a step has shown.
func (h *host) found(step string, made *conn) string {
	switch step {
	case "connect":
		return made.socket.RemoteAddr().String()
	case "proxy":
		return h.proxy.String() + " opens the way to " + h.address
	}
	state := made.Conn.(*tls.Conn).ConnectionState()
	leaf := state.PeerCertificates[0] // there is one where the handshake went well
	text := fmt.Sprintf("%s, certificate of %s, good for %d days more", tls.VersionName(state.Version),
		cmp.Or(leaf.Issuer.String(), "an authority without name"), time.Until(leaf.NotAfter)/(24*time.Hour))
	if made.asked {
		text += "; it asks for a client certificate"
	}
	return text
}

// probeAnswer has lead creation answer a request that can make nothing.
func (c *Client) probeAnswer(ctx context.Context) Step {
	began := time.Now()
	status, fault := c.do(ctx, c.reaching(), func([]byte) bool { return true })
	s := Step{Name: "answer", Works: true, Took: time.Since(began)}
	s.Text = fmt.Sprintf("a GET without token is answered with HTTP %d", status)
	switch {
	case fault == nil: // as any address does that takes GET
	case status == 0:
		s.Works, s.Text, s.Hint = false, fault.Message, fault.Hint
	case status == http.StatusNotFound:
		s.Hint = "this may be how the service answers a GET; it may also not know the address or the trunk ID"
	case fault.Reason == ReasonRedirect:
		s.Works, s.Hint = false, "redirects are never followed: name the address to which it leads with --leads-url"
	case fault.Reason != ReasonRefused && fault.Reason != ReasonUnauthorized:
		s.Works, s.Hint = false, cmp.Or(fault.Hint,
			"the service, or what is before it, is out of order: try again later")
	}
	return s
}

func (c *Client) probeToken(ctx context.Context) Step {
	s, began := Step{Name: "sign-in"}, time.Now()
	if c.config.ClientID == "" {
		s.Text = "no OAuth client with its secret is set, so nothing was tried"
		s.Hint = "leadferry login makes one and stores it; or set LEADFERRY_CLIENT_ID and its secret"
		return s
	}
	err := c.SignIn(ctx)
	s.Works, s.Text, s.Took = err == nil, "the token endpoint gives the OAuth client a token", time.Since(began)
	if fault, failed := errors.AsType[*Error](err); failed {
		s.Text, s.Hint = fault.Error(), fault.Hint
		if _, reason := appliedBy(fault.Status); reason == ReasonUnauthorized || reason == ReasonRefused {
			s.Hint = cmp.Or(s.Hint, "check client ID and secret, and whether they are of this region, US or EU")
		}
	}
	return s
}
