package leadapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
)

// maxBody is the longest answer that is read, in bytes.
const maxBody = 1 << 20

// call is one request.
type call struct {
	op      string
	method  string
	url     *url.URL
	body    []byte   // nil: a request without body
	bearer  string   // "": no Authorization header
	success int      // the status that the specification names
	secrets []string // what no text may repeat, beside the client secret and bearer
}

// do is the one way out: it makes a call and reads the answer to its end. read is given the body of a 200, 201 or 202
// and says whether it could be read.
func (c *Client) do(ctx context.Context, r call, read func(body []byte) bool) (int, *Error) {
	r.secrets = append(r.secrets, c.secret, r.bearer)
	began, trip := c.now(), new(trip)
	limited, stop := context.WithTimeout(httptrace.WithClientTrace(ctx, trip.hooks()), c.timeout)
	defer stop()
	resp, err := c.transport.RoundTrip(c.request(limited, r))
	var status int
	var body []byte
	var whole bool
	if err == nil {
		status = resp.StatusCode
		body, whole = drain(resp)
	}
	// An answered call was sent; by now its connection may be another call's.
	if err == nil || trip.sent() {
		c.observe(Call{Kind: r.op, Status: status, Duration: c.now().Sub(began)})
	}
	switch {
	case err != nil:
		return 0, c.unanswered(ctx, limited, r, trip, err)
	case trip.crossed.Load():
		return 0, &Error{Op: r.op, Applied: Maybe, Reason: ReasonBadAnswer, Message: "an answer came before the request; the connection was dropped"}
	case status >= 200 && status <= 202 && whole && read(body):
		return status, nil
	}
	return status, c.answered(r, resp, body)
}

// request builds the request by hand: http.NewRequest would set GetBody, with which net/http repeats requests by itself.
func (c *Client) request(ctx context.Context, r call) *http.Request {
	header := http.Header{"User-Agent": {c.userAgent}, "Accept": {"application/json"}}
	if r.bearer != "" {
		header["Authorization"] = []string{"Bearer " + r.bearer}
	}
	// A body of unknown length would go chunked; without one, "Content-Length: 0" goes. Over HTTP/1.1 net/http sends
	// such a request again only when not one byte of it has left.
	req := &http.Request{Method: r.method, URL: r.url, Host: r.url.Host, Header: header, Body: http.NoBody}
	if r.body != nil {
		header["Content-Type"] = []string{"application/json"}
		req.Body = io.NopCloser(bytes.NewReader(r.body))
		req.ContentLength = int64(len(r.body))
	}
	return req.WithContext(ctx)
}

// drain reads an answer to its end, so that its connection can be used again, and tells whether all of it was got.
func drain(resp *http.Response) (body []byte, whole bool) {
	defer resp.Body.Close()
	if resp.StatusCode < 200 {
		return nil, false // 101: its body is the bare connection, which no time limit ends
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	return body, err == nil && len(body) <= maxBody
}

// answered is the error of a call that got an answer other than a readable success.
func (c *Client) answered(r call, resp *http.Response, body []byte) *Error {
	e := &Error{Op: r.op, Status: resp.StatusCode}
	e.RetryAfter, e.HasRetryAfter = retryAfter(resp.Header, c.now())
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
		e.Message = clean(words(body), r.secrets...)
	}
	return e
}
