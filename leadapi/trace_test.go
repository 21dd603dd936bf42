package leadapi

import (
	"bufio"
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A trace says what a person needs who looks for the fault, and nothing of what a call carries. It is made where one is asked for alone.
func TestDetailsOfACall(t *testing.T) {
	n := 0
	p, client := either(t, true, func(p *peer, c net.Conn) {
		r := bufio.NewReader(c)
		for {
			if _, err := p.next(r); err != nil {
				return
			}
			if n++; n == 3 {
				return
			}
			io.WriteString(c, answerText(201, createdBody, "X-Planted: value"))
		}
	})
	var seen []Call
	client.config.RequestIDHeader = "X-Request-ID"
	client.config.Observe = func(call Call) {
		if (call.Detail == nil) != (client.config.Trace == nil) {
			t.Error("a Detail that nobody asked for, or none")
		}
	}
	fault(t, client)
	client.leads.closeIdle()
	client.config.Trace = func(call Call) { seen = append(seen, call) }
	for range 2 {
		fault(t, client)
	}
	first, second := seen[0].Detail, seen[1].Detail
	if first.Host != p.Addr().String() || first.Path != "/v1/trunk-1" || first.TLS != "TLS 1.3" || first.Proxy != "" || first.Cause != "" || len(first.RequestID) != 36 ||
		first.Connect <= 0 || first.Handshake <= 0 || first.FirstByte <= 0 || first.Connect+first.Handshake > seen[0].Waited {
		t.Errorf("%+v", first)
	}
	if !slices.Equal(first.Headers, []string{"Content-Length", "X-Planted"}) {
		t.Errorf("headers: %q", first.Headers)
	}
	if !seen[1].Reused || second.Connect != 0 || second.Handshake != 0 || second.FirstByte != 0 || second.Cause != "the peer closed the connection" || second.Headers != nil {
		t.Errorf("%+v", second)
	}
}

// The cause of a failure is the operating system's.
func TestCausesOfFailures(t *testing.T) {
	silent := listen(t, func(p *peer, c net.Conn) { io.Copy(io.Discard, c) })
	plain := listen(t, func(p *peer, c net.Conn) { io.WriteString(c, "HTTP/1.1 503 x\r\n\r\n") })
	untrusted := serve(t, true, nil)
	for want, address := range map[string]string{
		"connection refused":                  "http://127.0.0.1:1",
		"the time was over":                   silent.address(),
		"does not look like a TLS handshake":  "https://" + plain.Addr().String(),
		"certificate signed by unknown autho": untrusted.URL,
	} {
		var seen Call
		c := config(address)
		if address == silent.address() {
			c.Timeout = 300 * time.Millisecond
		}
		c.Trace = func(call Call) { seen = call }
		client := withToken(connect(t, c))
		client.Reach(context.Background())
		if seen.Detail == nil || !strings.Contains(seen.Detail.Cause, want) {
			t.Errorf("%s: %+v", want, seen.Detail)
		}
	}
}
