// Package leadapi is the client of the lead service: it signs in, creates leads and updates them.
//
// The importer makes one call for each request. It decides when to wait, to repeat and to give up; this package never
// does. The package knows nothing of rows, files or checkpoints.
//
//	Create, Update                     leads.go
//	   │ a token                    token.go     renewed once for all calls
//	   ▼
//	 a slot ─▶ a connection         conn.go      at most Concurrency; one that rested for < 750 ms, else a new one:
//	   │                            dial.go      dial, proxy, TLS (10 s). Nothing of the request has left: "not applied"
//	   ▼
//	 Leave? still open? ─▶ write    request.go   bytes are counted below TLS. None left: "not applied". After the
//	   │                                         first one, only the status of an answer can say "not applied"
//	   ▼
//	 answer, within Timeout         request.go   head 64 KiB, body 1 MiB. No readable head in time: "maybe"
//	   │                            error.go     4xx except 408, 425, 499: "not applied". The expected status
//	   ▼                                         with an unreadable body: "yes". Any other failure: "maybe"
//	 rest, or close                 conn.go      closed after an error that leaves doubt, after unexpected bytes,
//	                                             after the caller's context ended, and when the peer says so
//
// The peer can close the connection or fall silent. The caller's context and Timeout can end a call at any moment.
// What that means depends on when it happens:
//
//	while dialling, at the proxy, in TLS   no byte has left                  not applied
//	while the connection rests             a look before the write finds it  another connection
//	between that look and the write        bytes that left: none, or some    not applied, or maybe
//	before the head of the answer is here  a byte has left                   maybe. If a used connection was closed,
//	                                                                         later creates get a new one each
//	within the body of the answer          the status is known               as the status says, see above
//
// It promises:
//
//   - A call sends its request at most once, and never if [Config].Leave says no. It speaks HTTP/1.1 over its own
//     connections, through proxies by CONNECT or SOCKS5. It follows no redirect and sends no idempotency header. So
//     nothing repeats a request after a byte of it has left.
//   - Every failed call returns an *[Error], which says whether the request was applied. "Not applied" rests on the
//     bytes that left the socket or on the status of the answer, never on the text of an error.
//   - An answer counts only if it is whole and within the limits: strict JSON, exact names, no name twice, IDs of a
//     fixed pattern. Bytes that came before a request never count as its answer.
//   - No error text holds a secret, a token or the query of an address.
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

// The limits of the client. A [Config] adds two: the time of a request and the number of connections.
const (
	maxHead     = 64 << 10 // bytes of an answer's head, informational answers included
	maxBody     = 1 << 20  // bytes of an answer's body, unpacked too
	maxText     = 500      // characters of a text from outside
	secretPiece = 12       // this many characters in a row reveal a secret

	dialLimit = 10 * time.Second // connecting, a proxy's answer and the TLS handshakes, together

	restLimit = 750 * time.Millisecond // longest rest between two calls; some balancers close a connection after 1 s
	maxWrite  = 8 << 10                // bytes in one write

	renewPause  = 30 * time.Second    // least time between two renewals of the token, except after a 401
	defaultLife = 3 * time.Hour       // of an access token (section "Limits")
	longestLife = 30 * 24 * time.Hour // a token that claims a longer life counts as one of defaultLife

	// MaxRetryAfter is the longest wait that an answer can ask for: a longer one counts as this.
	MaxRetryAfter = 15 * time.Minute
)

// Client speaks to one service with one account. It is safe for concurrent use.
type Client struct {
	config  Config // its defaults filled in
	general *host  // base URL
	base    string // its path
	leads   *host  // leads URL; nil: no leads can be created
	create  string // its path
	keeper  *keeper
}

// New returns a Client, or an error for the first setting that cannot be used. Nothing is sent.
func New(config Config) (*Client, error) {
	base, create, err := config.check()
	if err != nil {
		return nil, err
	}
	c := &Client{config: config.withDefaults(), base: base.EscapedPath()}
	if c.general, err = c.config.newHost(base); err != nil {
		return nil, err
	}
	if create != nil {
		c.leads, c.create = c.general, create.EscapedPath()
		if create.Scheme != base.Scheme || create.Host != base.Host {
			if c.leads, err = c.config.newHost(create); err != nil {
				return nil, err
			}
		}
	}
	c.keeper = &keeper{
		fetch: c.fetch, now: c.config.Now, store: c.config.Tokens, patience: c.config.Timeout,
		lock: make(chan struct{}, 1),
	}
	return c, nil
}

// Close closes the connections. The calls in flight must have returned.
func (c *Client) Close() {
	c.general.closeIdle()
	if c.leads != nil {
		c.leads.closeIdle()
	}
}

// Call describes one request to Observe, which several goroutines call at once. It holds no body, token or query.
type Call struct {
	Kind      string // "create", "update", "token", "login", "client" or "reach"
	Method    string
	URL       string // without the query
	RequestID string // carried by the request; "": none
	Began     time.Time
	Duration  time.Duration // up to the answer's last byte
	Dialled   time.Duration // the part of Duration that made a connection: name, socket, proxy, TLS
	Sent      int           // bytes of the request that left, counted below TLS
	Reused    bool          // the connection had carried a call before
	Status    int           // HTTP status; 0: no answer
	Fault     *Error        // nil: the call succeeded
	Cause     string        // why no answer came, in the words of the system or of Go
}

// Step is one thing that Probe has tried.
type Step struct {
	LeadCreation bool          // with the lead creation application; else with the general API
	Name         string        // "connect", "proxy", "tls", "answer" or "sign-in"
	Works        bool          // false: Text says why
	Text         string        // what was found, or why it does not work; no secrets
	Hint         string        // what the user can do; may be ""
	Took         time.Duration // 0: nothing was tried
}

// Probe tries step by step what a run needs: a connection to each application (with proxy and TLS), a token for the
// account, and an answer of lead creation to a GET without a token. It creates nothing. It calls tell after each step.
// Without a connection to an application it skips the steps that need one.
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

// probeWay tries a connection to the host and closes it. It reports whether that worked.
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

// found says what a successful step has shown.
func (h *host) found(step string, made *conn) string {
	switch step {
	case "connect":
		return made.socket.RemoteAddr().String()
	case "proxy":
		return h.proxy.String() + " opens the way to " + h.address
	}
	state := made.Conn.(*tls.Conn).ConnectionState()
	leaf := state.PeerCertificates[0] // there is one after a handshake
	text := fmt.Sprintf("%s, certificate of %s, good for %d days more", tls.VersionName(state.Version),
		cmp.Or(leaf.Issuer.String(), "an authority without name"), time.Until(leaf.NotAfter)/(24*time.Hour))
	if made.asked {
		text += "; it asks for a client certificate"
	}
	return text
}

// probeAnswer sends lead creation a request that cannot make a lead.
func (c *Client) probeAnswer(ctx context.Context) Step {
	began := time.Now()
	status, fault := c.do(ctx, c.reaching(), func([]byte) bool { return true })
	s := Step{Name: "answer", Took: time.Since(began)}
	s.Works = fault == nil || fault.Reason == ReasonRefused || fault.Reason == ReasonUnauthorized
	s.Text = fmt.Sprintf("a GET without token is answered with HTTP %d", status)
	switch {
	case status == 0:
		s.Text, s.Hint = fault.Message, fault.Hint
	case status == http.StatusNotFound:
		s.Hint = "this may be how the service answers a GET; it may also not know the address or the trunk ID"
	case !s.Works:
		s.Hint = "the service, or a proxy before it, does not work: try again later; if this is a redirect, name its " +
			"target with --leads-url, because leadferry follows none"
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
