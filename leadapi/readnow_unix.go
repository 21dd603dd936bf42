//go:build unix

package leadapi

import (
	"net"
	"syscall"
)

// newReadNow returns a function that reads what has come to a connection. It never waits.
func newReadNow(c net.Conn) func(b []byte) (int, error) {
	raw, _ := c.(syscall.Conn).SyscallConn() // it has one: it was just dialled
	var into []byte
	var n int
	var fault error
	look := func(fd uintptr) { n, fault = syscall.Read(int(fd), into) } // made once, to save an allocation in each call
	return func(b []byte) (int, error) {
		into = b
		err := raw.Control(look)
		into = nil
		if err != nil {
			return 0, err
		}
		return n, fault
	}
}

// isNothing reports whether that function's error says that nothing had come.
func isNothing(err error) bool { return err == syscall.EAGAIN }
