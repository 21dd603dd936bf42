package leadapi

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Call is one request as Observe and Trace see it; calls come from several goroutines at
// once. It holds nothing of what was sent or answered.
type Call struct {
	Kind     string // "create", "update", "token", "login", "client" or "reach"
	Method   string
	Began    time.Time
	Duration time.Duration // up to the answer's last byte
	Waited   time.Duration // of Duration, for a connection
	Sent     int           // bytes of the request, head and body; 0: none left
	Received int           // bytes of the answer's body
	Reused   bool          // the connection had carried a call before
	Status   int           // HTTP status; 0: no answer
	Fault    *Error        // nil: as the specification has it
	Detail   *Detail       // for Trace alone, since it takes time to find out; else nil
}

// Detail is what a person needs who looks for a fault between here and the service: no query, no value of a header, no body.
type Detail struct {
	Host      string // with its port, where that is given
	Path      string // without the query
	Proxy     string // without user and password; "": none
	TLS       string // its version; "": none
	DNS       time.Duration
	Connect   time.Duration // to the service or the proxy, without DNS
	Handshake time.Duration // of TLS, a proxy's included
	FirstByte time.Duration // of the answer, after the request had left; 0: none came
	Headers   []string      // the names of the answer's, in order
	RequestID string        // that the request carried; "": none
	Cause     string        // of a failure, in the operating system's words where it has some

	dialled dialled
}

// dialled is what a dial shows. An address of several is tried in a goroutine of its own, which may end after the dial.
type dialled struct {
	mu    sync.Mutex
	began [3]time.Time
	took  [3]time.Duration
	cause string // of its last failure
}

// The stages of a dial.
const (
	lookingUp = iota
	connecting
	shakingHands
)

func (d *dialled) begin(stage int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began[stage].IsZero() {
		d.began[stage] = time.Now()
	}
}

func (d *dialled) end(stage int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.took[stage] = time.Since(d.began[stage]); err != nil { // from the first of several to the last
		d.cause = causeOf(err)
	}
}

// detail is an empty Detail for a call, nil where nobody wants one.
func (c *Client) detail(r request) *Detail {
	if c.config.Trace == nil {
		return nil
	}
	d := &Detail{Host: r.host.name, RequestID: r.id}
	d.Path, _, _ = strings.Cut(r.target, "?")
	if r.host.proxy != nil {
		d.Proxy = r.host.proxy.String()
	}
	return d
}

// watch is a context in which d takes the times of a dial, and why it failed.
func (d *Detail) watch(ctx context.Context) context.Context {
	if d == nil {
		return ctx
	}
	on := &d.dialled
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { on.begin(lookingUp) },
		DNSDone:           func(i httptrace.DNSDoneInfo) { on.end(lookingUp, i.Err) },
		ConnectStart:      func(string, string) { on.begin(connecting) },
		ConnectDone:       func(_, _ string, err error) { on.end(connecting, err) },
		TLSHandshakeStart: func() { on.begin(shakingHands) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { on.end(shakingHands, err) },
	})
}

// shaking tells a traced dial that a TLS handshake begins; done is to be called with its end.
func shaking(ctx context.Context) (done func(error)) {
	trace := httptrace.ContextClientTrace(ctx)
	if trace == nil {
		return func(error) {}
	}
	trace.TLSHandshakeStart()
	return func(err error) { trace.TLSHandshakeDone(tls.ConnectionState{}, err) }
}

// exchanged completes a Detail with what an exchange has shown.
func (d *Detail) exchanged(c *conn, a answer, err error) {
	if d == nil {
		return
	}
	d.complete()
	d.FirstByte, d.Cause = c.firstByte, "" // that of an address that did not answer says nothing
	if secure, ok := c.Conn.(*tls.Conn); ok {
		d.TLS = tls.VersionName(secure.ConnectionState().Version)
	}
	if a.Response != nil {
		d.Headers = slices.Sorted(maps.Keys(a.Header))
	}
	if err != nil {
		d.Cause = causeOf(err)
	}
}

// failed notes why there is no connection.
func (d *Detail) failed(err error) {
	if d == nil {
		return
	}
	if d.complete(); d.Cause == "" {
		d.Cause = causeOf(err)
	}
}

// complete takes over what the dial has shown.
func (d *Detail) complete() {
	d.dialled.mu.Lock()
	defer d.dialled.mu.Unlock()
	d.DNS, d.Connect, d.Handshake = d.dialled.took[lookingUp], d.dialled.took[connecting], d.dialled.took[shakingHands]
	d.Cause = d.dialled.cause
}

// causeOf is a failure in the words of the system, or of what found it.
func causeOf(err error) string {
	var errno syscall.Errno
	var dns *net.DNSError
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &dns):
		return redact(dns.Err)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "the time was over"
	case errors.Is(err, context.Canceled):
		return "given up"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the peer closed the connection"
	case errors.Is(err, net.ErrClosed):
		return "the connection was closed here"
	}
	return redact(err.Error())
}

// NewRequestID returns a random UUID for the header that [Config].RequestIDHeader names, to be that of a request's first
// attempt.
func NewRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return RequestIDOf(fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]), 1)
}

// RequestIDOf is the ID of a request's n-th attempt, n from 1: its last two digits count them. So each attempt has an ID of its
// own, and one that is known before the first leaves tells all; "" has none.
func RequestIDOf(id string, n int) string {
	if len(id) < 2 {
		return id
	}
	return fmt.Sprintf("%s%02x", id[:len(id)-2], min(n, 255))
}

// CheckRequestIDHeader refuses, by a *[ConfigError], names that a request ID cannot stand under: those of HTTP itself, and those
// for which somebody on the way might send the request again or somewhere else.
func CheckRequestIDHeader(name string) error {
	if name == "" {
		return nil
	}
	fail := func(sentence, hint string) error {
		return &ConfigError{"RequestIDHeader", "the header for request IDs " + sentence, hint}
	}
	small := strings.ToLower(name)
	meaning := func(prefix string) bool { return strings.HasPrefix(small, prefix) }
	switch {
	case len(name) > 64 || !httpguts.ValidHeaderFieldName(name):
		return fail("is not a name of a header", "letters, digits and - only, at most 64, such as X-Request-ID")
	case strings.Contains(small, "idempot"):
		return fail("would let others repeat the request", "the service knows no idempotency keys; use a name such as X-Request-ID")
	case slices.Contains(takenHeaders, small) || slices.ContainsFunc(takenPrefixes, meaning):
		return fail("has a meaning of its own in HTTP", "use a name such as X-Request-ID")
	}
	return nil
}

var (
	takenHeaders = []string{
		"age", "allow", "authorization", "cache-control", "connection", "cookie", "cookie2", "date", "dnt", "early-data", "etag", "expect", "expires",
		"forwarded", "from", "host", "http2-settings", "keep-alive", "last-modified", "location", "max-forwards", "origin", "pragma", "prefer", "priority", "range",
		"referer", "retry-after", "server", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade", "upgrade-insecure-requests", "user-agent", "vary",
		"via", "warning", "www-authenticate", "x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-real-ip", "x-rewrite-url",
	}
	takenPrefixes = []string{"accept", "access-control-", "content-", "if-", "proxy-", "sec-", "x-forwarded-"}
)
