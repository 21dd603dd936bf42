package leadapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

const dialLimit = 10 * time.Second // for connecting and the TLS handshake

// handshakeError is a handshake that failed for what the peer is, not for the network: it will be so the next time.
type handshakeError struct{ error }

// dial connects and, where the host wants it, makes a TLS handshake.
func (h *host) dial(ctx context.Context, limit time.Time) (*conn, error) {
	ctx, stop := context.WithTimeout(ctx, min(dialLimit, time.Until(limit)))
	defer stop()
	h.mu.Lock()
	c := &conn{generation: h.generation}
	h.mu.Unlock()
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", h.address)
	if err != nil {
		return nil, err
	}
	peek, err := newPeek(tcp)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	c.socket = &socket{Conn: tcp, peek: peek}
	c.Conn = c.socket
	if h.tls != nil {
		secure := tls.Client(c.socket, h.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			tcp.Close()
			return nil, handshakeFault(ctx, err)
		}
		c.Conn = secure
	}
	c.in = bufio.NewReader(&c.bounds)
	c.bounds.R = c.Conn
	return c, nil
}

func handshakeFault(ctx context.Context, err error) error {
	_, broken := errors.AsType[syscall.Errno](err)
	if ctx.Err() != nil || broken || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return handshakeError{err}
}
