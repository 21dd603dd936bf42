//go:build !unix

package leadapi

import (
	"errors"
	"net"
	"os"
	"time"
)

// newReadNow returns a function that reads what comes to a connection within 1 ms. It sets the read deadline.
func newReadNow(c net.Conn) func(b []byte) (int, error) {
	return func(b []byte) (int, error) {
		if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return 0, err
		}
		return c.Read(b)
	}
}

// isNothing reports whether that function's error says that nothing had come.
func isNothing(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
