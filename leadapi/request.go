package leadapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/failpoint"
)

// request is a call before it is written.
type request struct {
	op      string
	method  string
	host    *host
	reuse   bool                  // it may go over a used connection
	target  string                // path, and query where there is one
	content func(b []byte) []byte // appends the body; nil: there is none
	bearer  string                // "": no Authorization header
	id      string                // of the request, in Config's RequestIDHeader; "": none
	success int                   // the status that the specification names
	limit   time.Time             // its time is over then
	lead    string                // the lead that it updates; "": none
	named   *string               // gets the lead that the answer names; nil: its answers name none
}

// do makes a call; every request goes through it. read gets the body of a 2xx and reports whether it could be read.
func (c *Client) do(ctx context.Context, r request, read func(body []byte) bool) (int, *Error) {
	if ctx.Err() != nil {
		return 0, interrupted(ctx.Err(), r.op, No)
	}
	path, _, _ := strings.Cut(r.target, "?")
	seen := Call{Kind: r.op, Method: r.method, URL: r.host.origin + path, RequestID: r.id, Began: c.config.Now()}
	r.limit = time.Now().Add(c.config.Timeout)
	status, fault := c.exchange(ctx, r, read, &seen)
	seen.Status, seen.Fault, seen.Duration = status, fault, c.config.Now().Sub(seen.Began)
	if c.config.Observe != nil {
		c.config.Observe(seen)
	}
	return status, fault
}

// exchange makes a call and notes in seen what happened.
func (c *Client) exchange(ctx context.Context, r request, read func(body []byte) bool, seen *Call) (int, *Error) {
	conn, fault := c.ready(ctx, &r, seen)
	if fault != nil {
		return 0, fault
	}
	keep := false
	defer func() { r.host.put(conn, keep) }()

	c.write(conn, &r)
	a, err := conn.roundTrip(ctx, r.limit, seen)
	if err != nil {
		seen.Cause = redact(err.Error())
		// The peer closed a reused connection, and not a byte of an answer had come.
		closed := seen.Sent > 0 && seen.Reused && conn.bounds.N == maxHead &&
			!errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil
		if closed && r.op == "create" {
			r.host.single.Store(true)
		}
		if fault := r.host.certificateRefused(conn, err); fault != nil {
			err = fault
		}
		return 0, unanswered(ctx, r, seen.Sent > 0, err)
	}
	good := a.StatusCode/100 == 2 && a.readable && read(a.body)
	other := good && conn.noteLead(&r)
	keep = good && a.whole && !a.Close && r.op != "reach" && !other // the context of a reach ends
	if good && (!other || r.lead != "") {                           // the caller of an update sees which lead came back
		return a.StatusCode, nil
	}
	if fault = c.answered(r, a); other {
		fault.Applied, fault.Reason, fault.Message = Maybe, ReasonLeadTaken, "an earlier answer named its lead"
	}
	return a.StatusCode, fault
}

// ready returns a connection over which the request may leave now. The last look: has the peer closed it?
func (c *Client) ready(ctx context.Context, r *request, seen *Call) (*conn, *Error) {
	for {
		conn, err := r.host.take(ctx, r)
		if err != nil {
			seen.Cause = redact(err.Error())
			return nil, unanswered(ctx, *r, false, err)
		}
		if c.config.Leave != nil && !c.config.Leave(r.op) {
			r.host.put(conn, false)
			return nil, unsent(r.op, ReasonHeld, "held back")
		}
		if seen.Reused = conn.carried > 0; !seen.Reused {
			seen.Dialled = conn.dialled
			return conn, nil
		}
		if conn.usable() {
			return conn, nil
		}
		r.host.put(conn, false)
	}
}

// write puts a checked request into the connection's buffer, without Idempotency-Key: proxies might repeat it.
func (c *Client) write(to *conn, r *request) {
	if to.body.Reset(); r.content != nil {
		to.body.Write(r.content(to.body.AvailableBuffer()))
	}
	to.request.Reset()
	add := func(parts ...string) {
		for _, part := range parts {
			to.request.WriteString(part)
		}
	}
	add(r.method, " ", r.target, " HTTP/1.1\r\nHost: ", r.host.name, "\r\nUser-Agent: ", c.config.UserAgent,
		"\r\nAccept: application/json\r\nAccept-Encoding: identity\r\nContent-Length: ", strconv.Itoa(to.body.Len()))
	if r.content != nil {
		add("\r\nContent-Type: application/json")
	}
	if to.restLimit == 0 { // it carries no other request
		add("\r\nConnection: close")
	}
	if r.bearer != "" {
		add("\r\nAuthorization: Bearer ", r.bearer)
	}
	if r.id != "" {
		add("\r\n", c.config.RequestIDHeader, ": ", r.id)
	}
	add("\r\n\r\n")
	to.request.Write(to.body.Bytes())
}

// roundTrip sends a request and reads its answer, until limit or the end of ctx. If seen.Sent is 0, nothing has left.
func (c *conn) roundTrip(ctx context.Context, limit time.Time, seen *Call) (a answer, err error) {
	if c.ctx != ctx { // most calls share one: to bind to it takes a thirtieth of a call
		if !c.unbind() {
			return a, net.ErrClosed
		}
		c.ctx, c.unbind = ctx, context.AfterFunc(ctx, func() { _ = c.SetDeadline(longAgo) })
	}
	_ = c.SetDeadline(limit) // fails only for a closed connection, and then the first write fails, too
	if ctx.Err() != nil {    // SetDeadline may have undone what the end of ctx set
		return a, ctx.Err()
	}
	before := c.socket.out
	c.socket.late = false
	unsent := c.send()
	if seen.Sent = int(c.socket.out - before); seen.Sent == 0 {
		return a, unsent
	}
	c.carried++
	// If the peer stopped reading early, it may have said why.
	if a, err = c.receive(); err != nil {
		return a, errors.Join(err, unsent)
	}
	c.noteKeepAlive(a.Header)
	a.Close = a.Close || unsent != nil // the next request would be taken for the rest of this one
	return a, nil
}

func (c *conn) send() error {
	for part := range slices.Chunk(c.request.Bytes(), maxWrite) {
		failpoint.At("write")
		_, err := c.Write(part)
		failpoint.At("written")
		if err != nil {
			return err
		}
	}
	return nil
}

// answer is what a request got: the head, and as much of the body as came.
type answer struct {
	*http.Response
	body     []byte
	whole    bool // the body ended, within bounds
	readable bool // it is whole and unpacked
}

// receive reads an answer to the end of its body, or as far as it comes. It skips informational answers.
func (c *conn) receive() (a answer, err error) {
	c.bounds.N = maxHead
	for a.Response == nil || a.StatusCode >= 100 && a.StatusCode < 200 &&
		a.StatusCode != http.StatusSwitchingProtocols {
		if a.Response, err = http.ReadResponse(c.in, nil); err != nil {
			return a, err
		}
	}
	if a.StatusCode < 200 {
		return a, nil // 101: what follows is not HTTP, and may have no end
	}
	c.bounds.N = maxBody + maxHead // chunks add their lengths to the body
	c.body.Reset()
	_, err = c.body.ReadFrom(a.Body)
	a.body = c.body.Bytes()
	a.whole = err == nil && len(a.body) <= maxBody
	a.unpack()
	return a, nil
}

// unpack makes a whole body readable: it undoes gzip, which nobody asked for, and removes a byte order mark.
func (a *answer) unpack() {
	if !a.whole {
		return
	}
	if bytes.HasPrefix(a.body, []byte("\x1f\x8b")) {
		r, err := gzip.NewReader(bytes.NewReader(a.body))
		if err != nil {
			return
		}
		plain, err := io.ReadAll(io.LimitReader(r, maxBody+1))
		if err != nil || len(plain) > maxBody {
			return
		}
		a.body = plain
	}
	a.body, a.readable = bytes.TrimPrefix(a.body, []byte("\ufeff")), true
}

// fieldsOf returns the members of a JSON object; nil if the body is not one object of valid UTF-8, or has a name twice.
// A member may be of any type: the service is in alpha, and a changed counter must not lose a lead's ID.
func fieldsOf(body []byte) (all map[string]jsontext.Value) {
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	return all
}

// textOf returns the text that a member holds, "" for any other type.
func textOf(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, v) // it is valid: it was decoded before
	return string(text)
}

// validText returns a text that is valid for its kind, else "". This bounds what callers keep and show of an answer.
func validText(v jsontext.Value, valid func(string) bool) string {
	if text := textOf(v); valid(text) {
		return text
	}
	return ""
}
