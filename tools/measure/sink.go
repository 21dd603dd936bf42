package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// sink imitates the lead service as cheaply as it can, so that what is measured is its
// client. It judges no body and keeps no lead. It answers
//
//	POST  /v3/oauth2/token      200, a token
//	POST  /v1/{trunkID}         201, a lead ID that it has never given before
//	PATCH /v3/lead/{leadID}     200, the Lead with what was sent
//	GET   /stats                200, its counters
//
// and 401 without a bearer token, 404 to anything else. A connection has a goroutine,
// and all of them share one processor.
type sink struct {
	latency time.Duration // added to every answer but /stats
	closes  bool          // it closes connections without a word:
	after   time.Duration // when they have rested for so long; 0: after each answer
	ids     *leadIDs
	counters
	peers sync.WaitGroup
	mu    sync.Mutex
	open  map[net.Conn]bool
}

// counters are what /stats shows. Requests and connections for /stats do not count.
type counters struct {
	creates, updates, tokens, refused atomic.Int64
	connections, now, most            atomic.Int64
}

// connected counts a connection that has sent its first request. Where that would be more at once than ever, it waits a moment for
// the ends of others: the system tells what has come in no order, and one may have been closed before this one was made.
func (c *counters) connected() {
	c.connections.Add(1)
	now := c.now.Add(1)
	for wait := time.Millisecond; now > c.most.Load() && wait < 10*time.Millisecond; wait *= 2 {
		time.Sleep(wait)
		now = c.now.Load()
	}
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); {
		most = c.most.Load()
	}
}

// stats are the counters as JSON.
type stats struct {
	Creates     int64 `json:"creates"`
	Updates     int64 `json:"updates"`
	Tokens      int64 `json:"tokens"`
	Refused     int64 `json:"refused"` // answered neither 200 nor 201
	Requests    int64 `json:"requests"`
	Connections int64 `json:"connections"` // since the start
	Now         int64 `json:"connections_now"`
	Most        int64 `json:"connections_most"` // at once
}

func (c *counters) stats() stats {
	s := stats{
		Creates: c.creates.Load(), Updates: c.updates.Load(), Tokens: c.tokens.Load(), Refused: c.refused.Load(),
		Connections: c.connections.Load(), Now: c.now.Load(), Most: c.most.Load(),
	}
	s.Requests = s.Creates + s.Updates + s.Tokens + s.Refused
	return s
}

func runSink(ctx context.Context, args []string, s streams) error {
	set := flags("sink", s)
	addr := set.String("addr", "127.0.0.1:0", "loopback `ADDRESS` to listen on; port 0 takes a free one")
	latency := set.Duration("latency", 0, "time added to every answer")
	random := set.Bool("random", false, "lead IDs in no order (default: each above the one before)")
	tied := set.Bool("tied", false, "end when standard input does")
	if err := set.Parse(args); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(*addr)
	if err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("-addr %s: only a loopback address with a port will do, such as 127.0.0.1:8099", *addr)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if *tied {
		go func() { // ends with the process: a read of standard input cannot be called off
			_, _ = io.Copy(io.Discard, s.in)
			stop()
		}()
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	fmt.Fprintf(s.out, "http://%s\n", l.Addr())
	return newSink(*latency, *random).serve(ctx, l)
}

func newSink(latency time.Duration, random bool) *sink {
	return &sink{latency: latency, ids: newLeadIDs(random), open: map[net.Conn]bool{}}
}

// serve answers until ctx ends, and then closes the listener and every connection.
func (s *sink) serve(ctx context.Context, l net.Listener) error {
	release := context.AfterFunc(ctx, func() { l.Close() })
	defer release()
	defer s.peers.Wait()
	defer s.hangUp()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.open[c] = true
		s.mu.Unlock()
		s.peers.Go(func() {
			p := &peer{sink: s, conn: c}
			p.serve()
			s.forget(c)
		})
	}
}

func (s *sink) forget(c net.Conn) {
	c.Close()
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
}

func (s *sink) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Close()
	}
}
