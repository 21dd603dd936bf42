// Package leadapi is the client of the lead service: it signs in, creates leads and updates them.
//
// The engine calls it once a request and asks every error what became of that request; waiting, repeating and
// giving up are decided there, never here. The package knows nothing of rows, files or checkpoints.
//
//	Create, Update
//	   │ a token                    keeper       renewed once for all calls
//	   ▼
//	 a place ─▶ a connection        host         at most Concurrency; one that rested for less than 750 ms, else a new one:
//	   │                            reuse        dial, proxy, TLS (10 s). Nothing of the request has left: "not applied"
//	   ▼
//	 Leave? still open? ─▶ write    conn         bytes are counted below TLS. None left: "not applied". From the first one
//	   │                                         on, nothing but the status of an answer says "not applied"
//	   ▼
//	 answer, within Timeout         answer       head 64 KiB, body 1 MiB. Cut, late, unreadable or none: "maybe"
//	   │                            error        401, 407, 421, 429 and 4xx for good: "not applied"
//	   ▼
//	 rest, or close                 reuse        closed after an error that leaves doubt, after bytes that nobody awaited,
//	                                             after a context that ended, and when the peer says so
//
// The caller's context and Timeout end a call at any moment; whether a byte had left by then decides what is said of it.
//
// It promises:
//
//   - A request leaves at most once a call, and not at all where the Leave of its [Config] says no. HTTP/1.1 only, over
//     connections of our own, through proxies by CONNECT alone, no redirects, no idempotency header: nothing repeats a request of which a byte has left.
//   - Every failed call returns an *[Error], which says whether the request was applied. "Not applied" rests on the bytes
//     that left the socket or on the status of the answer, never on the text of an error.
//   - Answers are bounded (headers 64 KiB, body 1 MiB) and believed only when whole: strict JSON, exact names, no name twice,
//     IDs of a fixed pattern. An answer that came before its request is never taken for its answer.
//   - No error text holds a secret, a token or the query of an address.
package leadapi

import (
	"context"
	"strconv"
	"time"
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

// New returns a Client, or a *[ConfigError] for the first setting that cannot be used. Nothing is sent.
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
		fetch: c.fetch, now: c.config.Now, store: c.config.Tokens, patience: c.config.Timeout, turn: make(chan struct{}, 1),
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

type request struct {
	op      string
	method  string
	host    *host
	use     use
	target  string    // path, and query where there is one
	content content   // nil: a request without body
	bearer  string    // "": no Authorization header
	id      string    // of the request, in Config's RequestIDHeader; "": none
	success int       // the status that the specification names
	limit   time.Time // when its time is over
	lead    string    // that it is about; "": one that is to be made, or none
	named   *string   // the lead that its answer names, once that was read; nil: answers name none
}

type content interface{ AppendJSON(b []byte) []byte }

// do is the one way out: it makes a call and reads the answer to its end. read is given the body of a 2xx,
// which it must not keep, and says whether it could be read.
func (c *Client) do(ctx context.Context, r request, read func(body []byte) bool) (int, *Error) {
	if ctx.Err() != nil {
		return 0, interrupted(ctx.Err(), r.op, No)
	}
	seen := Call{Kind: r.op, Method: r.method, Began: c.config.Now(), Detail: c.detail(r)}
	r.limit = time.Now().Add(c.config.Timeout)
	status, fault := c.carry(ctx, r, read, &seen)
	seen.Status, seen.Fault = status, fault
	c.told(seen)
	return status, fault
}

// told tells those who want to know of a call that is over.
func (c *Client) told(seen Call) {
	seen.Duration = c.config.Now().Sub(seen.Began)
	if c.config.Observe != nil && seen.Sent > 0 {
		c.config.Observe(seen)
	}
	if c.config.Trace != nil {
		c.config.Trace(seen)
	}
}

// carry takes a call to its end and notes for Trace what it sees.
func (c *Client) carry(ctx context.Context, r request, read func(body []byte) bool, seen *Call) (status int, fault *Error) {
	conn, fault := c.ready(ctx, &r, seen)
	if fault != nil {
		return 0, fault
	}
	seen.Reused = conn.carried > 0
	keep := false
	defer func() { r.host.put(conn, keep && !conn.interrupted) }() // last: the body is in the connection's room

	a, sent, err := conn.roundTrip(ctx, r.limit, seen)
	if err != nil {
		if sent && seen.Reused && conn.closedUnanswered(err) && ctx.Err() == nil {
			c.lost(r.host, conn)
		}
		return 0, unanswered(ctx, r, sent, conn.untaken(r.host, err))
	}
	keep = a.whole && !a.Close
	if status = a.StatusCode; status/100 == 2 && a.readable && read(a.body) {
		keep = keep && !conn.strays(&r)
		return status, nil
	}
	fault = c.answered(r, a)
	if fault.Reason == ReasonMisdirected {
		r.host.closeIdle()
	}
	keep = keep && fault.Applied == No // else the answer may be another request's, and this one's still to come
	return status, fault
}

// ready returns a connection over which the request, which stands written in it, may leave now. The last thing that is
// looked at is whether the peer has closed it.
func (c *Client) ready(ctx context.Context, r *request, seen *Call) (*conn, *Error) {
	for {
		conn, err := r.host.take(seen.Detail.watch(ctx), r.limit, r.use)
		seen.Waited = c.config.Now().Sub(seen.Began)
		if err != nil {
			seen.Detail.failed(err)
			return nil, unanswered(ctx, *r, false, err)
		}
		conn.request = c.appendRequest(conn.request[:0], *r, conn)
		if c.config.Leave != nil && !c.config.Leave(r.op) {
			r.host.put(conn, false)
			return nil, unsent(r.op, ReasonHeld, "held back")
		}
		if conn.carried == 0 || conn.usable() {
			return conn, nil
		}
		r.host.foundClosed(conn)
		r.host.put(conn, false)
	}
}

// lost notes that a host closed a used connection under a call.
func (c *Client) lost(h *host, conn *conn) {
	h.foundClosed(conn)
	if h.useOnce() && c.config.SingleUse != nil {
		c.config.SingleUse(h.domain)
	}
}

// appendRequest appends a request, whose body is made in the connection's room. Its parts are checked where they come from:
// addresses and IDs hold no blanks, tokens visible ASCII only. There is never an Idempotency-Key: what lies between us and the
// service might repeat the request for it.
func (c *Client) appendRequest(b []byte, r request, conn *conn) []byte {
	var body []byte
	if r.content != nil {
		conn.body.Reset()
		conn.body.Write(r.content.AppendJSON(conn.body.AvailableBuffer()))
		body = conn.body.Bytes()
	}
	b = append(append(append(append(b, r.method...), ' '), r.target...), " HTTP/1.1\r\nHost: "...)
	b = append(append(append(b, r.host.name...), "\r\nUser-Agent: "...), c.config.UserAgent...)
	b = strconv.AppendInt(append(b, "\r\nAccept: application/json\r\nAccept-Encoding: identity\r\nContent-Length: "...), int64(len(body)), 10)
	if body != nil {
		b = append(b, "\r\nContent-Type: application/json"...)
	}
	if conn.left == 1 {
		b = append(b, "\r\nConnection: close"...)
	}
	if r.bearer != "" {
		b = append(append(b, "\r\nAuthorization: Bearer "...), r.bearer...)
	}
	if r.id != "" {
		b = append(append(append(append(b, "\r\n"...), c.config.RequestIDHeader...), ": "...), r.id...)
	}
	return append(append(b, "\r\n\r\n"...), body...)
}
