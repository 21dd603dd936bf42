package leadapi

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
)

// restingConn returns the only idle connection.
func restingConn(t *testing.T, h *host) *conn {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.idle) != 1 {
		t.Fatalf("%d connections rest, want 1", len(h.idle))
	}
	return h.idle[0]
}

// fault 47: if anything comes behind an answer, its connection is not used again, so the next call cannot read it.
func TestStrayAnswerIsNotTakenForTheNext(t *testing.T) {
	stray := answerText(201, `{"leadID":"stray"}`)
	for name, send := range map[string]func(c net.Conn){
		"in one piece": func(c net.Conn) { io.WriteString(c, answerText(201, createdBody)+stray) },
		"behind it":    func(c net.Conn) { io.WriteString(c, answerText(201, createdBody)); io.WriteString(c, stray) },
	} {
		for _, secure := range []bool{false, true} {
			var conns atomic.Int64
			gone := make(chan bool, 1)
			serve := func(p *peer, c net.Conn) {
				conns.Add(1)
				r := bufio.NewReader(c)
				for {
					if _, err := p.next(r); err != nil {
						return
					}
					send(c)
					gone <- true
				}
			}
			p, client := plainOrTLS(t, secure, serve)
			for range 20 {
				if got, err := client.Create(t.Context(), someLead()); err != nil || got.LeadID != "lead-1" {
					t.Errorf("%s, secure %v: %v, %v", name, secure, got, err)
				}
				<-gone // bytes that come after the next request look like its answer
			}
			must.Same(t, []any{int64(20), 20}, []any{conns.Load(), p.seen()}, name, secure)
		}
	}
}

// plainOrTLS starts a service with or without TLS, and a client for it.
func plainOrTLS(t *testing.T, secure bool, play func(p *peer, c net.Conn)) (*peer, *Client) {
	t.Helper()
	if !secure {
		p := listen(t, play)
		return p, signedIn(t, config(p.address()))
	}
	known := serve(t, true, func(http.ResponseWriter, *http.Request) {})
	settings := &tls.Config{Certificates: known.TLS.Certificates}
	p := listen(t, func(p *peer, c net.Conn) {
		upon := tls.Server(c, settings)
		defer upon.Close()
		play(p, upon)
	})
	return p, trust(signedIn(t, config("https://"+p.Addr().String())), known)
}

// fault 47: a service repeats an answer on the same connection. No create gets the lead of another row, neither this
// one nor the next.
func TestARepeatedAnswerIsNotTakenForTheNextCreate(t *testing.T) {
	var conns atomic.Int64
	p := listen(t, func(p *peer, c net.Conn) {
		r, mine := bufio.NewReader(c), conns.Add(1)
		for _, n := range []int{1, 2, 1} {
			if _, err := p.next(r); err != nil {
				return
			}
			io.WriteString(c, answerText(201, fmt.Sprintf(`{"leadID":"lead-%d-%d"}`, mine, n)))
		}
	})
	client := signedIn(t, config(p.address()))
	for n, want := range []string{"lead-1-1", "lead-1-2", "", "lead-2-1"} {
		if got, err := client.Create(t.Context(), someLead()); want != cmp.Or(got, new(Created)).LeadID || err == nil == (want == "") {
			t.Errorf("create %d: %v, %v, want %s", n+1, got, err, want)
		}
	}
}

// fault 69: if an update is answered with another lead, the connection is closed.
func TestConnectionThatBroughtAnotherLeadIsNotKept(t *testing.T) {
	for lead, kept := range map[string]int{"lead-1": 1, "lead-2": 0} {
		client := signedIn(t, config(answers(t, answerText(200, `{"ID":"`+lead+`"}`)).address()))
		for range 2 {
			if got, err := client.Update(t.Context(), "lead-1", &UpdateRequest{}); err != nil || got.ID != lead {
				t.Fatalf("%v, %v", got, err)
			}
		}
		must.Same(t, kept, resting(client.general), lead, "connections are kept")
	}
}

// fault 40: a connection that the peer closed while it was idle is not used.
func TestConnectionThatThePeerClosedIsNotUsed(t *testing.T) {
	for _, secure := range []bool{false, true} {
		p, client := plainOrTLS(t, secure, func(p *peer, c net.Conn) {
			if _, err := p.next(bufio.NewReader(c)); err == nil {
				io.WriteString(c, answerText(201, createdBody)) // then closes, unannounced
			}
		})
		for range 3 {
			if e := tryCreate(t, client); e != nil {
				t.Fatalf("secure %v: %v", secure, e)
			}
			for w := restingConn(t, client.leads); w.socket.nothingToRead(); {
				time.Sleep(time.Millisecond)
			}
		}
		must.Same(t, 3, p.seen(), secure, "requests arrived")
	}
}

// A connection that was idle for long is not used: the peer will soon close it. The time while the machine slept counts
// too, although the monotonic clock stood still. faults 40, 77
func TestLongRestedConnectionIsNotUsed(t *testing.T) {
	for what, before := range map[string]func(time.Time) time.Time{
		"rested": func(since time.Time) time.Time { return since.Add(-restLimit) },
		"slept":  func(since time.Time) time.Time { return since.Round(0).Add(-time.Hour) },
	} {
		client := signedIn(t, config(answers(t, answerText(201, createdBody)).address()))
		tryCreate(t, client)
		old := restingConn(t, client.leads)
		old.idleSince = before(old.idleSince)
		if tryCreate(t, client); restingConn(t, client.leads) == old {
			t.Errorf("%s: the same connection was used again", what)
		}
	}
}

// fault 7: the process is stopped until after the deadline. An answer that has arrived meanwhile is still read.
func TestAnswerThatWaitsAfterTheDeadlineIsRead(t *testing.T) {
	for _, secure := range []bool{false, true} {
		written := make(chan bool)
		_, client := plainOrTLS(t, secure, func(p *peer, c net.Conn) {
			if _, err := p.next(bufio.NewReader(c)); err == nil {
				io.WriteString(c, answerText(201, createdBody))
				written <- true
				io.Copy(io.Discard, c)
			}
		})
		w, err := client.leads.take(t.Context(), &request{reuse: true, limit: time.Now().Add(time.Minute)})
		must.Do(t, err)
		post := request{method: "POST", host: client.leads, target: client.create}
		client.write(w, &post)
		must.Do(t, w.send())
		<-written
		w.SetDeadline(time.Unix(1, 0))
		got, err := w.receive()
		if err != nil {
			t.Fatalf("secure %v: %v", secure, err)
		}
		if !got.whole || string(got.body) != createdBody {
			t.Errorf("secure %v: whole %v: %s", secure, got.whole, got.body)
		}
		if _, err := w.in.ReadByte(); err == nil {
			t.Errorf("secure %v: a later read does not time out", secure)
		}
		client.leads.put(w, false)
	}
}

func resting(h *host) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.idle)
}

// A connection is used again only if no byte of the last call can still be on it. faults 36, 40, 47
func TestWhichConnectionsAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		kept   int
	}{
		"created":             {answerText(201, createdBody), 1},
		"refused":             {answerText(422, "{}"), 0},
		"throttled":           {answerText(429, "{}"), 0},
		"misdirected":         {answerText(421, "{}"), 0},
		"says that it closes": {answerText(201, createdBody, "Connection: close"), 0},
		"of HTTP/1.0":         {strings.Replace(answerText(201, createdBody), "HTTP/1.1", "HTTP/1.0", 1), 0},
		"server error":        {answerText(500, "{}"), 0},
		"without an ID":       {answerText(202, "{}"), 0},
		"of unknown length":   {"HTTP/1.1 201 x\r\n\r\n" + createdBody, 0},
	} {
		p := listen(t, func(p *peer, c net.Conn) { // closes only if that ends the answer
			if _, err := p.next(bufio.NewReader(c)); err == nil {
				io.WriteString(c, test.answer)
			}
			if name != "of unknown length" {
				io.Copy(io.Discard, c)
			}
		})
		client := signedIn(t, config(p.address()))
		tryCreate(t, client)
		must.Same(t, test.kept, resting(client.leads), "connections are kept", name)
	}
}

// A peer that answers before it read the whole body would read the next request as the rest of it. fault 47
func TestConnectionWithHalfARequestIsNotKept(t *testing.T) {
	t.Parallel()
	p := listen(t, func(p *peer, c net.Conn) {
		io.ReadFull(c, make([]byte, 1000))
		io.WriteString(c, answerText(413, "{}"))
		<-t.Context().Done()
	})
	c := config(p.address())
	c.Timeout = 4 * time.Second // enough even on a busy machine
	client := signedIn(t, c)
	r := someLead()
	r.Content[0].Value = strings.Repeat("x", 12<<20) // more than the sockets hold
	_, err := client.Create(t.Context(), r)
	if e, ok := err.(*Error); !ok || e.Status != 413 {
		t.Errorf("%v", err)
	}
	must.Same(t, 0, resting(client.leads), "connections are kept")
}

// If Leave says no, nothing is sent: no lead request and no token request. fault 139
func TestARequestThatIsHeldBackDoesNotLeave(t *testing.T) {
	p := answers(t, answerText(201, createdBody))
	c := config(p.address())
	var asked []string
	c.Leave = func(kind string) bool { asked = append(asked, kind); return false }
	for _, client := range []*Client{signedIn(t, c), connect(t, c)} {
		if e := tryCreate(t, client); e == nil || e.Reason != ReasonHeld || e.Applied != No || e.Status != 0 {
			t.Errorf("%v", e)
		}
	}
	must.Same(t, []any{0, "create token"}, []any{p.seen(), strings.Join(asked, " ")}, "requests left, asked for")
}

// A request that asks for a new connection gets one, even if an idle one exists. fault 138
func TestRequestsGetTheNewConnectionTheyAskFor(t *testing.T) {
	var s closer
	p := listen(t, s.serve(func(int, string) bool { return false }))
	client := signedIn(t, config(p.address()))
	creates(t, client, 1)
	anew := someLead()
	anew.NewConnection = true
	if _, err := client.Create(t.Context(), anew); err != nil {
		t.Error(err)
	}
	if _, err := client.Update(t.Context(), "lead-1", &UpdateRequest{NewConnection: true}); err != nil {
		t.Error(err)
	}
	must.Same(t, "[[POST] [POST] [PATCH]]", fmt.Sprint(s.seen()), "the connections carried")
}

// closer is a service that closes connections as the test says, and notes the requests of each connection.
type closer struct {
	mu      sync.Mutex
	carried [][]string // methods, by connection
	closing []string   // requests that said Connection: close
}

// serve answers requests until ends returns true for request n of a connection (from 0), then closes it unanswered.
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

// creates sends n creates, one after another, and counts their outcomes.
func creates(t *testing.T, client *Client, n int) (made, doubts int) {
	t.Helper()
	for range n {
		switch e := tryCreate(t, client); {
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

// After a host closed a reused connection during a create, each create gets a new connection. fault 140
func TestCreatesGetNewConnectionsAfterAHostDroppedOne(t *testing.T) {
	for _, secure := range []bool{false, true} {
		var s closer
		_, client := plainOrTLS(t, secure, s.serve(func(n int, _ string) bool { return n == 1 }))
		if made, doubts := creates(t, client, 5); made != 4 || doubts != 1 {
			t.Errorf("%v: %d made, %d in doubt", secure, made, doubts)
		}
		must.Same(t, "[[POST POST] [POST] [POST] [POST]]", fmt.Sprint(s.seen()), "the connections carried", secure)
		must.Same(t, 3, len(s.closing), "requests say that they are the last on their connection", secure)
	}
}

// A connection is idle for at most half the time that the server's Keep-Alive header announces.
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
