package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Listener serves a Server on a port of this machine. One goroutine accepts; Close waits for it.
type Listener struct {
	server  *http.Server
	url     string
	cancel  context.CancelFunc
	serving sync.WaitGroup
}

// Listen serves s at addr, such as 127.0.0.1:0 for any free port. It closes a connection without a request for
// idleClose, 0 for never. It fails for an address that other machines reach.
func Listen(addr string, s *Server, idleClose time.Duration) (*Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err == nil && !strings.EqualFold(host, "localhost") && !net.ParseIP(host).IsLoopback() {
		err = errors.New("the sandbox serves this machine only, at 127.0.0.1, [::1] or localhost")
	}
	var ln net.Listener
	if err == nil {
		ln, err = net.Listen("tcp", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: listen on %s: %w", addr, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Listener{url: "http://" + ln.Addr().String(), cancel: cancel}
	l.server = &http.Server{
		Handler: s, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: idleClose,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // clients that break off are expected
	}
	l.serving.Go(func() { _ = l.server.Serve(ln) }) // ends by Close alone
	return l, nil
}

// URL returns the address of both applications, without a path.
func (l *Listener) URL() string { return l.url }

// Close stops serving. Answers that are late by a fault or a latency are cut short; other requests in
// flight have 2 seconds. The Server stays open.
func (l *Listener) Close() (err error) {
	l.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		err = l.server.Close()
	}
	l.serving.Wait()
	return err
}
