//go:build !unix

package leadapi

import (
	"errors"
	"net"
	"os"
	"time"
)

// peek reads what is there, or comes within a millisecond. It leaves that as the connection's time limit.
type peek struct {
	net.Conn
	one [1]byte
}

func newSocket(c net.Conn) (*socket, error) {
	return &socket{Conn: c, peek: peek{Conn: c}}, nil
}

func (g *peek) read(b []byte) (int, error) {
	if err := g.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return 0, err
	}
	return g.Read(b)
}

// nothing tells whether the error of a look says that nothing was there.
func nothing(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
