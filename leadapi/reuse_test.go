package leadapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// closer is a service that answers and closes as it is told, and notes what each connection carried.
type closer struct {
	mu      sync.Mutex
	carried [][]string // methods, by connection
	closing []string   // requests that said Connection: close
}

// serve answers each connection's requests until ends says that it is closed instead, before request n (from 0) is answered.
func (s *closer) serve(ends func(n int, method string) bool, headers ...string) func(*peer, net.Conn) {
	return func(p *peer, c net.Conn) {
		s.mu.Lock()
		at := len(s.carried)
		s.carried = append(s.carried, nil)
		s.mu.Unlock()
		r := bufio.NewReader(c)
		for n := 0; ; n++ {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			s.mu.Lock()
			s.carried[at] = append(s.carried[at], req.Method)
			if req.Close {
				s.closing = append(s.closing, req.Method)
			}
			s.mu.Unlock()
			if ends(n, req.Method) {
				return
			}
			status, body := 201, fmt.Sprintf(`{"leadID":"lead-%d-%d"}`, at, n)
			if req.Method == "PATCH" {
				status, body = 200, leadBody
			}
			if req.Method == "GET" {
				status, body = 405, "{}"
			}
			if _, err := io.WriteString(c, answerText(status, body, headers...)); err != nil || req.Close {
				return
			}
		}
	}
}

func (s *closer) seen() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.carried)
}

// creates makes creates one after another and counts what became of them.
func creates(t *testing.T, client *Client, n int) (made, doubts int) {
	t.Helper()
	for range n {
		switch e := fault(t, client); {
		case e == nil:
			made++
		case e.Applied == Maybe:
			doubts++
		default:
			t.Errorf("%v", e)
		}
	}
	return made, doubts
}

// strangerTo is a Client that has a token and knows nothing else of a service at the level of bytes; single tells which
// hosts were said to get single-use connections.
func strangerTo(t *testing.T, secure bool, serve func(*peer, net.Conn)) (client *Client, single func() []string) {
	t.Helper()
	_, client = either(t, secure, serve)
	var mu sync.Mutex
	var hosts []string
	client.config.SingleUse = func(host string) { mu.Lock(); defer mu.Unlock(); hosts = append(hosts, host) }
	return client, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(hosts) }
}

// A host that closes a used connection under a create costs that one: from then on each create has a connection of its
// own. fault 140
func TestHostThatClosesUnderACreate(t *testing.T) {
	for _, secure := range []bool{false, true} {
		var s closer
		client, single := strangerTo(t, secure, s.serve(func(n int, _ string) bool { return n == 1 }))
		if made, doubts := creates(t, client, 5); made != 4 || doubts != 1 {
			t.Errorf("%v: %d made, %d in doubt", secure, made, doubts)
		}
		same(t, "[[POST POST] [POST] [POST] [POST]]", fmt.Sprint(s.seen()), "the connections carried", secure)
		if got := single(); len(got) != 1 || got[0] != "127.0.0.1" {
			t.Errorf("%v: said of %q", secure, got)
		}
		same(t, 3, len(s.closing), "requests say that they are the last on their connection", secure)
	}
}

// What a server announces is heeded, with a margin.
func TestKeepAliveIsHeeded(t *testing.T) {
	for header, rest := range map[string]time.Duration{
		"timeout=5, max=100": restLimit, "timeout=1": time.Second / 2, `Timeout="1" ,MAX = 7`: time.Second / 2, "timeout=0": 0, "timeout=600": restLimit,
		"timeout=-1, max=x": restLimit, "timeout=99999999999999999999": restLimit,
	} {
		c := conn{restLimit: restLimit}
		if c.noteKeepAlive(http.Header{"Keep-Alive": {header}}); c.restLimit != rest {
			t.Errorf("%s: rests %s, want %s", header, c.restLimit, rest)
		}
	}
}
