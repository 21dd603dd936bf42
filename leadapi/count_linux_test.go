package leadapi

import (
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// established tells whether the peer of a connection has not closed it yet, by what the system says.
func established(c net.Conn) bool {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	open := false
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		open = err == nil && info.State == unix.BPF_TCP_ESTABLISHED
	}) // fails for a connection that is closed here
	return open
}

// To the service, no more connections are open at once than there may be, whatever it does to them: resting ones count, too.
func TestConnectionsOpenAtOnce(t *testing.T) {
	const most, workers, calls = 4, 8, 60
	for name, ends := range map[string]func(n int, method string) bool{
		"keeps":                func(int, string) bool { return false },
		"closes after some":    func(n int, _ string) bool { return n == 7 },
		"closes after each":    func(n int, _ string) bool { return n == 1 },
		"closes before a GET":  func(_ int, method string) bool { return method == "GET" },
		"closes before 1 in 5": func(n int, _ string) bool { return n%5 == 4 },
	} {
		var s closer
		var mu sync.Mutex
		var conns []net.Conn
		told := false
		client, _ := strangerTo(t, false, func(p *peer, c net.Conn) {
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			s.serve(func(n int, method string) bool {
				mu.Lock() // nobody is answered meanwhile, so what is too much stays so
				defer mu.Unlock()
				now := func() (n int) {
					for _, c := range conns {
						if established(c) {
							n++
						}
					}
					return n
				}
				for until := time.Now().Add(2 * time.Second); now() > most && !told; time.Sleep(time.Millisecond) {
					if time.Now().After(until) {
						told = true
						t.Errorf("%s: %d connections at once, want %d at most", name, now(), most)
						break
					}
				}
				return ends(n, method)
			})(p, c)
		})
		var wait sync.WaitGroup
		for range workers {
			wait.Go(func() { creates(t, client, calls) })
		}
		wait.Wait()
		if mu.Lock(); len(conns) < most {
			t.Errorf("%s: %d connections in all", name, len(conns))
		}
		mu.Unlock()
	}
}
