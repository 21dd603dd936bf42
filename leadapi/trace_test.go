package leadapi

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// The cause of a failure is told in the words of what found it.
func TestCausesOfFailures(t *testing.T) {
	silent := listen(t, func(p *peer, c net.Conn) { io.Copy(io.Discard, c) })
	plain := listen(t, func(p *peer, c net.Conn) { io.WriteString(c, "HTTP/1.1 503 x\r\n\r\n") })
	untrusted := serve(t, true, nil)
	for want, address := range map[string]string{
		"connection refused":                  "http://127.0.0.1:1",
		"i/o timeout":                         silent.address(),
		"does not look like a TLS handshake":  "https://" + plain.Addr().String(),
		"certificate signed by unknown autho": untrusted.URL,
	} {
		var seen Call
		c := config(address)
		if address == silent.address() {
			c.Timeout = 300 * time.Millisecond
		}
		c.Observe = func(call Call) { seen = call }
		client := withToken(connect(t, c))
		client.Reach(context.Background())
		if !strings.Contains(seen.Cause, want) {
			t.Errorf("%s: %+v", want, seen)
		}
	}
}
