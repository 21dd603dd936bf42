package e2e

import (
	"bufio"
	"net"
	"sync"
	"testing"
)

// rawDoor is a listener whose connections are each served by one function, in a
// goroutine that the test's end waits for.
type rawDoor struct {
	net.Listener
	wait sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]bool
	accepted int
}

func listenRaw(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func openDoor(t *testing.T, l net.Listener, serve func(net.Conn, *bufio.Reader)) *rawDoor {
	d := &rawDoor{Listener: l, conns: map[net.Conn]bool{}}
	d.wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.conns[c] = true
			d.accepted++
			d.mu.Unlock()
			d.wait.Go(func() {
				defer d.forget(c)
				serve(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(d.close)
	return d
}

func (d *rawDoor) forget(c net.Conn) {
	d.mu.Lock()
	delete(d.conns, c)
	d.mu.Unlock()
	c.Close()
}

// close ends what is served and waits for it.
func (d *rawDoor) close() {
	d.Listener.Close()
	d.mu.Lock()
	for c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	d.wait.Wait()
}

// visits is how many connections were made.
func (d *rawDoor) visits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.accepted
}

func (d *rawDoor) url() string { return "http://" + d.Addr().String() }
