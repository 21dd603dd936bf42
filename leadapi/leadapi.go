// Package leadapi is the client of the lead service: it signs in, creates leads and updates them.
//
// The engine calls it once a request and asks every error what became of that request; waiting, repeating and
// giving up are decided there, never here. The package knows nothing of rows, files or checkpoints.
//
// It promises:
//
//   - A request leaves at most once a call, and not at all where the Leave of its [Config] says no. HTTP/1.1 only, over
//     connections of our own, no redirects, no proxy, no idempotency header: nothing repeats a request of which a byte has left.
//   - Every failed call returns an *[Error], which says whether the request was applied. "Not applied" rests on the bytes
//     that left the socket or on the status of the answer, never on the text of an error.
//   - Answers are bounded (headers 64 KiB, body 1 MiB) and believed only when whole: strict JSON, exact names, no name twice,
//     IDs of a fixed pattern. An answer that came before its request is never taken for its answer.
//   - No error text holds a secret, a token or the query of an address.
package leadapi

import (
	"sync"
	"time"
)

// Config says which service a Client speaks to, and how. BaseURL is needed always. Without ClientID and ClientSecret the
// Client is good for Login and CreateOAuthClient only; without LeadsURL and TrunkID it creates no leads.
type Config struct {
	BaseURL      string // general API, without /v3
	LeadsURL     string // lead creation application, without /v1
	TrunkID      string // the brand's trunk organization
	ClientID     string
	ClientSecret string
	Concurrency  int                    // connections a host at most; below 1 counts as 1
	Timeout      time.Duration          // for one request, from dialling to the answer's last byte; 0 = 30 s
	UserAgent    string                 // "" = leadferry
	Leave        func(kind string) bool // asked just before the first byte of a request leaves: false holds it back, with ReasonHeld; may be nil
	Observe      func(Call)             // called after each request of which a byte left, by its caller; may be nil
	Trace        func(Call)             // called after each call that was tried, sent or not; may be nil
	Now          func() time.Time       // nil = time.Now
	Tokens       TokenStore             // keeps the token for later runs and other processes; nil: nobody does
}

// Call is one request as Observe and Trace see it; calls come from several goroutines at
// once. It holds nothing of what was sent or answered.
type Call struct {
	Kind     string        // "create", "update", "token", "login", "client" or "reach"
	Status   int           // HTTP status; 0: no answer
	Duration time.Duration // up to the answer's last byte

	// For Trace alone:
	Method   string
	Began    time.Time
	Waited   time.Duration // of Duration, for a connection
	Sent     int           // bytes of the request, head and body; 0: none left
	Received int           // bytes of the answer's body
	Reused   bool          // the connection had carried a call before
	Fault    *Error        // nil: as the specification has it
}

// Client speaks to one service with one account. It is safe for concurrent use.
type Client struct {
	general   *host  // base URL
	base      string // its path
	leads     *host  // leads URL; nil: no leads can be created
	create    string // its path
	id        string
	secret    string
	timeout   time.Duration
	userAgent string
	leave     func(kind string) bool
	observe   func(Call)
	trace     func(Call)
	now       func() time.Time
	keeper    *keeper
	bodies    sync.Pool // *[]byte, for requests
	scanners  sync.Pool // *scanner, for answers
}

// New returns a Client, or a *[ConfigError] for the first setting that cannot be used. Nothing is sent.
func New(c Config) (*Client, error) {
	base, create, err := c.check()
	if err != nil {
		return nil, err
	}
	client := &Client{
		general: newHost(base, max(c.Concurrency, 1)), base: base.EscapedPath(), id: c.ClientID, secret: c.ClientSecret,
		timeout: c.Timeout, userAgent: c.UserAgent, leave: c.Leave, observe: c.Observe, trace: c.Trace, now: c.Now,
	}
	if create != nil {
		client.leads, client.create = client.general, create.EscapedPath()
		if create.Scheme != base.Scheme || create.Host != base.Host {
			client.leads = newHost(create, max(c.Concurrency, 1))
		}
	}
	if client.timeout <= 0 {
		client.timeout = 30 * time.Second
	}
	if client.userAgent == "" {
		client.userAgent = "leadferry"
	}
	if client.leave == nil {
		client.leave = func(string) bool { return true }
	}
	if client.observe == nil {
		client.observe = func(Call) {}
	}
	if client.trace == nil {
		client.trace = func(Call) {}
	}
	if client.now == nil {
		client.now = time.Now
	}
	client.bodies.New = func() any { return new([]byte) }
	client.keeper = &keeper{fetch: client.fetch, now: client.now, store: c.Tokens, patience: client.timeout}
	return client, nil
}

// Close closes the connections. The calls in flight must have returned.
func (c *Client) Close() {
	c.general.close()
	if c.leads != nil {
		c.leads.close()
	}
}
