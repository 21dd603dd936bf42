package leadapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// others are the calls beside the create, whose sweeps are in broken_test.go.
func others() map[string]struct {
	body string // of a right answer
	call func(c *Client) error
	op   string
} {
	status := "contacted"
	return map[string]struct {
		body string
		call func(c *Client) error
		op   string
	}{
		"update": {`{"ID":"lead-1","Status":"contacted"}`, func(c *Client) error {
			_, err := c.Update(context.Background(), "lead-1", &UpdateRequest{Status: &status})
			return err
		}, "update"},
		"token": {`{"access_token":"` + access + `","expires_in":10800,"refresh_token":"` + refresh + `"}`, func(c *Client) error {
			return c.SignIn(context.Background())
		}, "token"},
	}
}

// fresh returns a client that holds a token, or for the token call none.
func fresh(t *testing.T, op, address string) *Client {
	if op == "token" {
		return connect(t, config(address))
	}
	return signedIn(t, config(address))
}

// judged is what a call's error says; the token call is never applied, whatever became
// of its bytes.
func judged(t *testing.T, err error) *Error {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("a %T: %v", err, err)
	}
	if strings.Contains(err.Error(), secret[:12]) || strings.Contains(err.Error(), access[:12]) {
		t.Fatalf("the error shows a secret: %v", err)
	}
	return e
}

// faults 35, 36, 73: the sweeps of broken_test.go for updates and tokens.
func TestPeerClosesAtEveryByteOfOtherRequests(t *testing.T) {
	for name, other := range others() {
		t.Run(name, func(t *testing.T) {
			var stop, size, reached atomic.Int64
			stop.Store(1 << 20)
			p := listen(t, func(p *peer, c net.Conn) {
				b := make([]byte, 4096)
				if stop.Load() == 1<<20 {
					n, _ := c.Read(b)
					size.Store(int64(n))
					return
				}
				if n, _ := io.ReadFull(c, b[:stop.Load()]); n > 0 {
					reached.Add(1)
				}
			})
			judged(t, other.call(fresh(t, other.op, p.address())))
			for n := int64(1); n <= size.Load(); n++ {
				stop.Store(n)
				reached.Store(0)
				e := judged(t, other.call(fresh(t, other.op, p.address())))
				want := Maybe
				if other.op == "token" {
					want = No
				}
				if e == nil || e.Op != other.op || e.Status != 0 || e.Applied != want || reached.Load() != 1 {
					t.Fatalf("closed after %d bytes: %v, sent %d times", n, e, reached.Load())
				}
			}
			if size.Load() < 100 {
				t.Errorf("the request has %d bytes", size.Load())
			}
		})
	}
}

// faults 37, 38, 73
func TestPeerClosesAtEveryByteOfOtherAnswers(t *testing.T) {
	for name, other := range others() {
		t.Run(name, func(t *testing.T) {
			whole := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(other.body), other.body)
			headers := strings.Index(whole, "\r\n\r\n") + 4
			var stop atomic.Int64
			p := listen(t, func(p *peer, c net.Conn) {
				if _, err := p.next(bufio.NewReader(c)); err == nil {
					io.WriteString(c, whole[:stop.Load()])
				}
			})
			for n := range len(whole) + 1 {
				stop.Store(int64(n))
				before := p.seen()
				e := judged(t, other.call(fresh(t, other.op, p.address())))
				if whole := n == len(whole); whole != (e == nil) {
					t.Fatalf("cut at %d: %v", n, e)
				}
				if e != nil && (e.Status != 0) != (n >= headers) {
					t.Fatalf("cut at %d: %v", n, e)
				}
				if p.seen() != before+1 {
					t.Fatalf("cut at %d: %d requests, want 1", n, p.seen()-before)
				}
			}
		})
	}
}
