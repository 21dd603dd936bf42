//go:build !unix

package leadapi

import (
	"errors"
	"net"
	"os"
	"time"
)

// newReadNow returns a function that reads bytes that come within a millisecond. It sets the read deadline.
func newReadNow(c net.Conn) (func(b []byte) (int, error), error) {
	return func(b []byte) (int, error) {
		if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return 0, err
		}
		return c.Read(b)
	}, nil
}

// isNothing reports whether an error of that function says that nothing was there.
func isNothing(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
