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

	"leadferry/internal/testsupport/must"
)

func TestPeerClosesAtEveryByteOfTheRequest(t *testing.T) { // faults 35, 36
	var size atomic.Int64
	p := listen(t, func(p *peer, c net.Conn) { // measures a request
		n, _ := c.Read(make([]byte, 4096))
		size.Store(int64(n))
	})
	tryCreate(t, signedIn(t, config(p.address())))

	var stop, reached atomic.Int64
	p = listen(t, func(p *peer, c net.Conn) {
		n, _ := io.CopyN(io.Discard, c, stop.Load())
		if n > 0 {
			reached.Add(1)
		}
	})
	client := signedIn(t, config(p.address()))
	for n := range size.Load() + 1 {
		stop.Store(n)
		reached.Store(0)
		e := tryCreate(t, client)
		// A peer that reads no byte may close before the client writes one.
		if e == nil || e.Applied == Yes || e.Status != 0 || n > 0 && (e.Applied != Maybe || e.Reason != ReasonNoAnswer) {
			t.Fatalf("closed after %d bytes: %v, applied %v", n, e, e.Applied)
		}
		if reached.Load() > 1 {
			t.Fatalf("closed after %d bytes: sent %d times", n, reached.Load())
		}
	}
}

func TestPeerClosesAtEveryByteOfTheAnswer(t *testing.T) { // faults 37, 38, m8, m9
	for name, head := range map[string]string{
		"length":  fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n", len(createdBody)),
		"chunked": fmt.Sprintf("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", len(createdBody)),
		"close":   "HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n",
	} {
		whole, headers := head+createdBody, strings.Index(head, "\r\n\r\n")+4
		if name == "chunked" {
			whole += "\r\n0\r\n\r\n"
		}
		var stop atomic.Int64
		p := listen(t, func(p *peer, c net.Conn) {
			if _, err := p.next(bufio.NewReader(c)); err == nil {
				io.WriteString(c, whole[:stop.Load()])
			}
		})
		client := signedIn(t, config(p.address()))
		for n := range len(whole) + 1 {
			stop.Store(int64(n))
			e := tryCreate(t, client)
			switch {
			case n == len(whole) && e != nil:
				t.Fatalf("%v: whole answer: %v", name, e)
			case n < len(whole) && e == nil:
				t.Fatalf("%v: cut at %d: accepted as a whole answer", name, n)
			case n < headers && (e.Applied != Maybe || e.Reason != ReasonNoAnswer || e.Status != 0),
				n >= headers && e != nil && (e.Applied != Yes || e.Reason != ReasonNoLeadID || e.Status != 201):
				t.Fatalf("%v: cut at %d: %v, applied %v, reason %s", name, n, e, e.Applied, e.Reason)
			}
			if p.seen() != n+1 {
				t.Fatalf("%v: cut at %d: %d requests, want 1", name, n, p.seen()-n)
			}
		}
	}
}

func TestACanceledCallSaysWhetherItMayHaveLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := listen(t, func(p *peer, c net.Conn) {
		p.next(bufio.NewReader(c))
		cancel()
		io.Copy(io.Discard, c)
	})
	client := signedIn(t, config(p.address()))
	_, err := client.Create(ctx, someLead())
	if e := err.(*Error); e.Applied != Maybe || e.Reason != ReasonCanceled || !errors.Is(err, context.Canceled) {
		t.Errorf("in flight: %v, applied %v", e, e.Applied)
	}
	_, err = client.Create(ctx, someLead())
	if e := err.(*Error); e.Applied != No || e.Reason != ReasonCanceled {
		t.Errorf("before: %v, applied %v", e, e.Applied)
	}
}

// A connection serves calls with different contexts. Only the end of the last call's context closes it.
func TestEndOfAContextEndsOnlyItsCalls(t *testing.T) {
	var reused []bool
	c := config(answers(t, answerText(201, createdBody)).address())
	c.Observe = func(call Call) { reused = append(reused, call.Reused) }
	client := signedIn(t, c)
	first, endFirst := context.WithCancel(t.Context())
	second, endSecond := context.WithCancel(t.Context())
	create := func(ctx context.Context) {
		_, err := client.Create(ctx, someLead())
		must.Do(t, err)
	}
	create(first)
	create(second)
	endFirst()
	create(second)
	endSecond()
	create(t.Context())
	must.Same(t, []bool{false, true, true, false}, reused, "calls over a connection that was there")
}
