package leadapi

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// slowConn takes the bytes of a write at once and returns from it late.
type slowConn struct {
	net.Conn
	taken, release chan struct{}
}

func (c slowConn) Write(b []byte) (int, error) {
	close(c.taken)
	<-c.release
	return len(b), nil
}

// An answer, or the end of the connection, may come before the write has returned:
// what may have left counts as sent until the write says otherwise. faults 35, 37
func TestAWriteUnderWayCountsAsSent(t *testing.T) {
	slow := slowConn{taken: make(chan struct{}), release: make(chan struct{})}
	s := &socket{Conn: slow}
	c := &conn{Conn: s, socket: s}
	tr := new(trip)
	tr.conn.Store(c)
	c.begin()
	if tr.sent() {
		t.Error("sent before anything was written")
	}
	done := make(chan error)
	go func() {
		_, err := c.Write([]byte("POST"))
		done <- err
	}()
	<-slow.taken
	if !tr.sent() {
		t.Error("not sent while a write is under way")
	}
	close(slow.release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !tr.sent() {
		t.Error("not sent after the write")
	}
}

// Connections go from call to call: what one call sees of its connection must not be
// what the next one has done with it.
func TestEveryAnsweredCallIsObserved(t *testing.T) {
	var observed atomic.Int64
	c := config(answers(t, answer(201, `{"leadID":"l-1"}`)).address())
	c.Concurrency = 4
	c.Observe = func(call Call) {
		if call.Kind == "create" {
			observed.Add(1)
		}
	}
	client := signedIn(t, c)
	const workers, calls = 32, 300
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range calls {
				if _, err := client.Create(t.Context(), someLead()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n := observed.Load(); n != workers*calls {
		t.Errorf("%d of %d calls observed", n, workers*calls)
	}
}
