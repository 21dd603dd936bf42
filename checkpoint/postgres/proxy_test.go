package postgres

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

// proxy relays connections to a server and can cut one at a chosen message.
type proxy struct {
	server string
	dir    string

	mu    sync.Mutex
	left  int  // messages until the cut; 0: no cut
	after bool // whether left counts the server's messages or the client's
	cuts  int
	last  bool // after a cut no connection is accepted any more
	trips int  // complete answers of the server
	conns map[net.Conn]bool
}

func newProxy(t *testing.T, s *pgtest.Server) *proxy {
	p := &proxy{server: filepath.Join(s.Socket(), ".s.PGSQL.5432"), dir: pgtest.Folder(t), conns: map[net.Conn]bool{}}
	l, err := net.Listen("unix", filepath.Join(p.dir, ".s.PGSQL.5432"))
	must.Do(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

// through returns an address that goes through the proxy.
func (p *proxy) through(address string) string {
	u, _ := url.Parse(address)
	q := u.Query()
	q.Set("host", p.dir)
	u.RawQuery = q.Encode()
	return u.String()
}

// arm cuts the connection of the n-th message from now, before the message is relayed.
func (p *proxy) arm(n int, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.after = n, after
}

// passes counts a message and reports whether to relay it.
func (p *proxy) passes(ofServer bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 || ofServer != p.after {
		return true
	}
	if p.left--; p.left == 0 {
		p.cuts++
		return false
	}
	return true
}

// tripsOf counts the round trips that f makes.
func (p *proxy) tripsOf(f func()) int {
	count := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.trips
	}
	before := count()
	f()
	return count() - before
}

// cutAll ends all connections.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) serve(client net.Conn) {
	p.mu.Lock()
	away := p.last && p.cuts > 0
	p.mu.Unlock()
	server, err := net.Dial("unix", p.server)
	if err != nil || away {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	p.mu.Unlock()
	end := func() { client.Close(); server.Close() }
	go func() {
		defer end()
		first := make([]byte, 4) // the first message has no type byte
		if _, err := io.ReadFull(client, first); err != nil {
			return
		}
		server.Write(first)
		io.CopyN(server, client, int64(binary.BigEndian.Uint32(first))-4)
		p.pass(server, client, false)
	}()
	defer end()
	p.pass(client, server, true)
}

// pass relays messages, one by one.
func (p *proxy) pass(to io.Writer, from io.Reader, ofServer bool) {
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(from, head); err != nil || !p.passes(ofServer) {
			return
		}
		if ofServer && head[0] == 'Z' { // ReadyForQuery
			p.mu.Lock()
			p.trips++
			p.mu.Unlock()
		}
		if _, err := to.Write(head); err != nil {
			return
		}
		if _, err := io.CopyN(to, from, int64(binary.BigEndian.Uint32(head[1:]))-4); err != nil {
			return
		}
	}
}
