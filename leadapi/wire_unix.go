//go:build unix

package leadapi

import (
	"net"
	"syscall"
)

// glance reads what is there, and never waits.
type glance struct {
	raw  syscall.RawConn
	look func(fd uintptr) // made once: it would be an allocation a call
	into []byte
	one  [1]byte
	n    int
	err  error
}

func newSocket(c net.Conn) (*socket, error) {
	s := &socket{Conn: c}
	g := &s.glance
	g.look = func(fd uintptr) { g.n, g.err = syscall.Read(int(fd), g.into) }
	var err error
	g.raw, err = c.(syscall.Conn).SyscallConn()
	return s, err
}

// read takes no notice of the connection's time limits.
func (g *glance) read(b []byte) (int, error) {
	g.into = b
	err := g.raw.Control(g.look)
	g.into = nil
	if err != nil {
		return 0, err
	}
	return g.n, g.err
}

// nothing tells whether the error of a glance says that nothing was there.
func nothing(err error) bool { return err == syscall.EAGAIN }
