package leadapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one request.
type call struct {
	op      string
	method  string
	host    *host
	target  string // path, and query where there is one
	body    []byte // nil: a request without body; may be used again once do has returned
	bearer  string // "": no Authorization header
	success int    // the status that the specification names
}

// do is the one way out: it makes a call and reads the answer to its end. read is given the body of a 200, 201 or 202,
// which it must not keep, and says whether it could be read.
func (c *Client) do(ctx context.Context, r call, read func(body []byte) bool) (int, *Error) {
	if ctx.Err() != nil {
		return 0, interrupted(ctx.Err(), r.op, No)
	}
	seen := Call{Kind: r.op, Method: r.method, Began: c.now()}
	status, fault := c.carry(ctx, r, read, &seen)
	seen.Status, seen.Fault, seen.Duration = status, fault, c.now().Sub(seen.Began)
	c.trace(seen)
	return status, fault
}

// carry takes a call to its end and notes for Trace what it sees.
func (c *Client) carry(ctx context.Context, r call, read func(body []byte) bool, seen *Call) (int, *Error) {
	began, limit := seen.Began, time.Now().Add(c.timeout)
	w, err := r.host.take(ctx, limit)
	seen.Waited = c.now().Sub(began)
	if err != nil {
		return 0, c.unanswered(ctx, limit, r, false, err)
	}
	if !c.leave(r.op) {
		r.host.leave(w, false)
		return 0, &Error{Op: r.op, Applied: No, Reason: ReasonHeld, Message: "held back: nothing was sent"}
	}
	_ = w.SetDeadline(limit) // fails for a closed connection only, as the first write then does
	unhook := context.AfterFunc(ctx, func() { _ = w.SetDeadline(longAgo) })

	seen.Reused = !w.rested.IsZero()
	w.out = append(c.appendHead(w.out[:0], r), r.body...)
	answer, sent, err := w.exchange(w.out)
	var status int
	var body []byte
	var whole, readable bool
	if err == nil {
		status = answer.StatusCode
		if body, whole = w.drain(answer); whole {
			body, readable = unpacked(body)
		}
	}
	seen.Received = len(body)
	if sent {
		seen.Sent = len(w.out)
		c.observe(Call{Kind: r.op, Status: status, Duration: c.now().Sub(began)})
	}
	// The wire is left last: the body is in its room.
	keep := unhook() && whole && !answer.Close
	defer func() { r.host.leave(w, keep) }()
	switch {
	case err != nil:
		return 0, c.unanswered(ctx, limit, r, sent, err)
	case status >= 200 && status <= 202 && readable && read(body):
		return status, nil
	}
	if whole && !readable || packed(answer) {
		body = []byte{0} // no text
	}
	fault := c.answered(r, answer, body)
	if fault.Reason == ReasonMisdirected {
		r.host.renew()
	}
	keep = keep && fault.Applied != Maybe // the answer may be another request's, and this one's still to come
	return status, fault
}

// appendHead appends a request's head. Its parts are checked where they come from: addresses and IDs hold no blanks, tokens
// visible ASCII only. There is never an Idempotency-Key: what lies between us and the service might repeat the request for it.
func (c *Client) appendHead(b []byte, r call) []byte {
	b = append(append(append(append(b, r.method...), ' '), r.target...), " HTTP/1.1\r\nHost: "...)
	b = append(append(append(b, r.host.name...), "\r\nUser-Agent: "...), c.userAgent...)
	b = strconv.AppendInt(append(b, "\r\nAccept: application/json\r\nAccept-Encoding: identity\r\nContent-Length: "...), int64(len(r.body)), 10)
	if r.body != nil {
		b = append(b, "\r\nContent-Type: application/json"...)
	}
	if r.bearer != "" {
		b = append(append(b, "\r\nAuthorization: Bearer "...), r.bearer...)
	}
	return append(b, "\r\n\r\n"...)
}

// unanswered is the error of a call that got no answer. Its text is made here: what lies below may quote the peer or the address.
func (c *Client) unanswered(ctx context.Context, limit time.Time, r call, sent bool, err error) *Error {
	applied := No
	if sent {
		applied = Maybe
	}
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx.Err(), r.op, applied)
	case !time.Now().Before(limit):
		return interrupted(context.DeadlineExceeded, r.op, applied)
	}
	e := &Error{Op: r.op, Applied: applied, Reason: ReasonNoAnswer, Message: "the connection broke before a readable answer came"}
	if applied == No {
		e.Reason, e.Message = unsent(err)
		e.Message = clean("nothing could be sent to "+r.host.domain+": "+e.Message, c.secret, r.bearer)
	}
	return e
}

// answered is the error of a call that got an answer other than a readable success.
func (c *Client) answered(r call, answer *http.Response, body []byte) *Error {
	e := &Error{Op: r.op, Status: answer.StatusCode}
	e.RetryAfter, e.HasRetryAfter = retryAfter(answer.Header, c.now())
	e.Applied, e.Reason = verdict(e.Status, e.HasRetryAfter)
	if e.Status == r.success {
		e.Applied = Yes
	}
	if e.Status/100 == 2 && r.op == "create" {
		e.Reason = ReasonNoLeadID
	}
	switch e.Reason {
	case ReasonNoLeadID:
		e.Message = "the answer holds no readable leadID"
	case ReasonBadAnswer:
		e.Message = "the answer cannot be read"
	case ReasonRedirect:
		e.Message = "the service redirects, which is never followed"
	default:
		if r.op != "create" && r.op != "update" {
			e.Message = code(body)
			break
		}
		e.Message = clean(words(body), c.secret, r.bearer)
	}
	return e
}

// packed tells whether the body of an answer is in a form that is not read here.
func packed(answer *http.Response) bool {
	form := strings.ToLower(answer.Header.Get("Content-Encoding"))
	return !slices.Contains([]string{"", "identity", "gzip", "x-gzip"}, form)
}
