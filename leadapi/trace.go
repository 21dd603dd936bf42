package leadapi

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Call is one request as Observe and Trace see it; calls come from several goroutines at
// once. It holds nothing of what was sent or answered.
type Call struct {
	Kind     string // "create", "update", "token", "login", "client" or "reach"
	Method   string
	Began    time.Time
	Duration time.Duration // up to the answer's last byte
	Waited   time.Duration // of Duration, for a connection
	Sent     int           // bytes that left for the request, those of TLS included
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

func (d *Detail) failed(err error) {
	if d == nil {
		return
	}
	if d.complete(); d.Cause == "" {
		d.Cause = causeOf(err)
	}
}

func (d *Detail) complete() {
	d.dialled.mu.Lock()
	defer d.dialled.mu.Unlock()
	d.DNS, d.Connect, d.Handshake = d.dialled.took[lookingUp], d.dialled.took[connecting], d.dialled.took[shakingHands]
	d.Cause = d.dialled.cause
}

// causeOf is a failure in the words of the system, or of what found it.
func causeOf(err error) string {
	dns, unknown := errors.AsType[*net.DNSError](err)
	switch text := broken(err); {
	case text != "":
		return text
	case unknown:
		return redact(dns.Err)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "the time was over"
	case errors.Is(err, context.Canceled):
		return "given up"
	case errors.Is(err, net.ErrClosed):
		return "the connection was closed here"
	}
	return redact(err.Error())
}
