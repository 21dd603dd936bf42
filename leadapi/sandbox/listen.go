package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const closeWait = 2 * time.Second // for requests in flight

// Listener serves a Server on a port of this machine. One goroutine accepts; Close waits for it.
type Listener struct {
	http   *http.Server
	addr   net.Addr
	cancel context.CancelFunc
	done   chan error
}

// Listen serves s at addr, such as 127.0.0.1:0 for any free port. It fails for an address that other machines reach.
func Listen(addr string, s *Server) (*Listener, error) {
	if err := loopback(addr); err != nil {
		return nil, fmt.Errorf("sandbox: listen on %s: %w", addr, err)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("sandbox: listen on %s: %w", addr, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Listener{addr: ln.Addr(), cancel: cancel, done: make(chan error, 1)}
	l.http = &http.Server{
		Handler: s, ReadHeaderTimeout: 30 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() { l.done <- l.http.Serve(ln) }()
	return l, nil
}

func loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("the sandbox serves this machine only, at 127.0.0.1, [::1] or localhost")
	}
	return nil
}

// URL returns the address of both the general API and lead creation, without a path.
func (l *Listener) URL() string { return "http://" + l.addr.String() }

// Close stops serving. Answers that are late by a fault or a latency are cut short; other requests in
// flight have 2 seconds. The Server stays open.
func (l *Listener) Close() error {
	l.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	err := l.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = l.http.Close()
	}
	if served := <-l.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
