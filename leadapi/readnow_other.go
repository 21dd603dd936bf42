//go:build !unix

package leadapi

import (
	"errors"
	"net"
	"os"
	"time"
)

// newReadNow returns what reads the bytes that have come, or come within a millisecond. That stays the time limit.
func newReadNow(c net.Conn) (func(b []byte) (int, error), error) {
	return func(b []byte) (int, error) {
		if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return 0, err
		}
		return c.Read(b)
	}, nil
}

// isNothing tells whether a look's error says that nothing was there.
func isNothing(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
