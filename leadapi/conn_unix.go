//go:build unix

package leadapi

import (
	"net"
	"syscall"
)

// peek reads what is there, and never waits.
type peek struct {
	raw  syscall.RawConn
	look func(fd uintptr) // made once: it would be an allocation a call
	into []byte
	one  [1]byte
	n    int
	err  error
}

func newSocket(c net.Conn) (*socket, error) {
	s := &socket{Conn: c}
	g := &s.peek
	g.look = func(fd uintptr) { g.n, g.err = syscall.Read(int(fd), g.into) }
	var err error
	g.raw, err = c.(syscall.Conn).SyscallConn()
	return s, err
}

// read takes no notice of the connection's time limits.
func (g *peek) read(b []byte) (int, error) {
	g.into = b
	err := g.raw.Control(g.look)
	g.into = nil
	if err != nil {
		return 0, err
	}
	return g.n, g.err
}

// nothing tells whether the error of a look says that nothing was there.
func nothing(err error) bool { return err == syscall.EAGAIN }
