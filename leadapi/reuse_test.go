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
	client.leads.reuse = reuse{}
	var mu sync.Mutex
	var hosts []string
	client.config.SingleUse = func(host string) { mu.Lock(); defer mu.Unlock(); hosts = append(hosts, host) }
	return client, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(hosts) }
}

// A host that closes a used connection instead of answering costs no lead: what finds out can make nothing. From then on
// each create has a connection of its own. fault 140
func TestHostThatClosesAfterEachAnswer(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint(secure), func(t *testing.T) {
			var s closer
			client, single := strangerTo(t, secure, s.serve(func(n int, _ string) bool { return n == 1 }))
			if made, doubts := creates(t, client, 5); made != 5 || doubts != 0 {
				t.Errorf("%d made, %d in doubt", made, doubts)
			}
			if got, want := fmt.Sprint(s.seen()), "[[POST GET] [POST] [POST] [POST] [POST]]"; got != want {
				t.Errorf("the connections carried %s, want %s", got, want)
			}
			if got := single(); len(got) != 1 || got[0] != "127.0.0.1" {
				t.Errorf("said of %q", got)
			}
			if len(s.closing) != 4 {
				t.Errorf("%d requests say that they are the last on their connection", len(s.closing))
			}
		})
	}
}

// After a number of requests that nobody announced, one create is in doubt, whatever is in flight beside it. fault 140
func TestHostThatClosesAfterSomeRequests(t *testing.T) {
	var s closer
	client, single := strangerTo(t, false, s.serve(func(n int, _ string) bool { return n == 20 }))
	var mu sync.Mutex
	made, doubts := 0, 0
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 100 {
				m, d := creates(t, client, 1)
				mu.Lock()
				made, doubts = made+m, doubts+d
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if made+doubts != 400 || doubts > 1 || len(single()) != 1 {
		t.Errorf("%d made, %d in doubt, said %q", made, doubts, single())
	}
}

// What a host shows of its patience is an answer, not a connection that was found closed or was not needed after all.
func TestOnlyAnswersShowPatience(t *testing.T) {
	for name, give := range map[string]func(c *Client, w *conn){
		"found closed": func(c *Client, w *conn) { c.leads.closed(w) },
		"held back":    func(c *Client, w *conn) { c.leads.put(w, false) },
	} {
		client, _ := strangerTo(t, false, new(closer).serve(func(int, string) bool { return false }))
		for range 2 {
			creates(t, client, 1)
		}
		shown := client.leads.reuse.rest
		held(t, client.leads).idleSince = time.Now().Add(-2 * time.Second)
		w, _, err := client.leads.take(t.Context(), time.Now().Add(time.Minute), anyConn)
		if err != nil {
			t.Fatal(err)
		}
		if give(client, w); shown == 0 || client.leads.reuse.rest > shown {
			t.Errorf("%s: shown %s before, %s after", name, shown, client.leads.reuse.rest)
		}
	}
}

// While an answer and the next request are on their way, the host counts, too: a short rest proves nothing of a longer way.
func TestTheWayIsPartOfARest(t *testing.T) {
	const ms = time.Millisecond
	now := time.Now()
	for _, test := range []struct {
		rest, shown, trip time.Duration
		may               bool
		wait              time.Duration // before the GET; 0: none is needed
	}{
		{rest: 0, shown: 0, trip: 0, may: true, wait: 100 * ms},
		{rest: 5 * ms, shown: 90 * ms, trip: 1 * ms, may: true, wait: 101 * ms},
		{rest: 5 * ms, shown: 102 * ms, trip: 1 * ms, may: true},
		{rest: 5 * ms, shown: 102 * ms, trip: 800 * ms, may: true, wait: 900 * ms},
		{rest: 5 * ms, shown: 899 * ms, trip: 800 * ms, may: true, wait: 900 * ms},
		{rest: 5 * ms, shown: 910 * ms, trip: 800 * ms, may: true},
		{rest: 300 * ms, shown: 200 * ms, trip: 1 * ms, may: true, wait: 300 * ms},
		{rest: 750 * ms, shown: 2000 * ms, trip: 1 * ms},
	} {
		u := reuse{rest: test.shown, trip: test.trip, carried: 9}
		c := &usage{carried: 1, restLimit: idleLimit, left: -1, retires: now.Add(time.Hour), idleSince: now.Add(-test.rest)}
		may, first := u.allows(c, safeConn, now)
		if may != test.may || may && (first.needed != (test.wait > 0) || first.needed && first.rest != test.wait) {
			t.Errorf("%+v: %v, %+v", test, may, first)
		}
	}
	u := reuse{rest: time.Second, trip: 900 * ms, carried: 9}
	c := &usage{carried: 1, restLimit: idleLimit, left: -1, retires: now.Add(time.Hour), idleSince: now.Add(-60 * ms)}
	if u.allows(c, safeConn, now); !u.exploring {
		t.Error("a rest of which the way leaves no double is gone by all at once")
	}
}

// A host that closes sooner than a first trial waits is found out before anything leaves.
func TestHostThatClosesSoon(t *testing.T) {
	client, single := strangerTo(t, false, func(p *peer, c net.Conn) {
		if _, err := p.next(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, answerText(201, createdBody))
		time.Sleep(time.Millisecond)
	})
	if made, doubts := creates(t, client, 20); made != 20 || doubts != 0 || len(single()) != 1 {
		t.Errorf("%d made, %d in doubt, said %q", made, doubts, single())
	}
}

// Creates go over a used connection where the host has answered after as long a rest, else after a GET; never after a second.
func TestRestBeforeACreate(t *testing.T) {
	var s closer
	client, _ := strangerTo(t, false, s.serve(func(int, string) bool { return false }))
	creates(t, client, 1)
	for _, rest := range []time.Duration{0, 300, 200, 400, 900} {
		held(t, client.leads).idleSince = time.Now().Add(-rest * time.Millisecond)
		creates(t, client, 1)
	}
	if got, want := fmt.Sprint(s.seen()), "[[POST GET POST GET POST POST GET POST] [POST]]"; got != want {
		t.Errorf("the connections carried %s, want %s", got, want)
	}
}

// What a server announces is heeded, with a margin, and counted.
func TestKeepAliveIsHeeded(t *testing.T) {
	for _, test := range []struct {
		header string
		rest   time.Duration
		left   int
	}{
		{"timeout=5, max=100", 5 * time.Second / 2, 99},
		{"timeout=1", time.Second / 2, -1},
		{`Timeout="2" ,MAX = 7`, time.Second, 6},
		{"timeout=0", 0, -1},
		{"timeout=600", idleLimit, -1},
		{"max=1", idleLimit, 0},
		{"max=0", idleLimit, 0},
		{"timeout=-1, max=x", idleLimit, -1},
		{"timeout=99999999999999999999", idleLimit, -1},
	} {
		c := usage{restLimit: idleLimit, left: -1}
		c.noteKeepAlive(http.Header{"Keep-Alive": {test.header}})
		if c.restLimit != test.rest || c.left != test.left {
			t.Errorf("%s: rests %s, carries %d more; want %s, %d", test.header, c.restLimit, c.left, test.rest, test.left)
		}
	}
	var s closer
	client, _ := strangerTo(t, false, s.serve(func(int, string) bool { return false }, "Keep-Alive: timeout=60, max=3"))
	client.leads.reuse = reuse{rest: time.Hour, carried: 100}
	creates(t, client, 4)
	if got, want := fmt.Sprint(s.seen()), "[[POST POST POST] [POST]]"; got != want || len(s.closing) != 1 {
		t.Errorf("the connections carried %s, want %s; %d times said to be the last", got, want, len(s.closing))
	}
}

// An update may be sent again, so it needs no proof, and is one for creates.
func TestUpdatesProveThatAHostKeepsConnections(t *testing.T) {
	var s closer
	client, _ := strangerTo(t, false, s.serve(func(int, string) bool { return false }))
	external := "crm-1"
	for range 3 {
		if _, err := client.Update(t.Context(), "l-1", &UpdateRequest{ExternalID: &external}); err != nil {
			t.Fatal(err)
		}
		held(t, client.leads).idleSince = time.Now().Add(-500 * time.Millisecond)
	}
	held(t, client.leads).idleSince = time.Now().Add(-100 * time.Millisecond)
	creates(t, client, 1)
	if got, want := fmt.Sprint(s.seen()), "[[PATCH PATCH PATCH POST]]"; got != want {
		t.Errorf("the connections carried %s, want %s", got, want)
	}
}

// A busy connection is given up after some minutes: behind its name there may be another address by now.
func TestBusyConnectionsRetire(t *testing.T) {
	var s closer
	client, _ := strangerTo(t, false, s.serve(func(int, string) bool { return false }))
	creates(t, client, 1)
	left := time.Until(held(t, client.leads).retires)
	if left < retireAfter-time.Minute || left > 2*retireAfter {
		t.Errorf("it retires in %s", left)
	}
	held(t, client.leads).retires = time.Now()
	creates(t, client, 1)
	if n := len(s.seen()); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// Whoever answers the GET with a wish to wait is heard before the create leaves.
func TestTrialThatIsToldToWait(t *testing.T) {
	n := 0
	client, _ := strangerTo(t, false, func(p *peer, c net.Conn) {
		r := bufio.NewReader(c)
		for {
			if _, err := p.next(r); err != nil {
				return
			}
			text := answerText(201, createdBody)
			if n++; n == 2 {
				text = answerText(429, "{}", "Retry-After: 7")
			}
			io.WriteString(c, text)
		}
	})
	creates(t, client, 1)
	if e := fault(t, client); e == nil || e.Op != "reach" || e.Applied != No || e.RetryAfter != 7*time.Second {
		t.Errorf("%v", e)
	}
	creates(t, client, 1)
	if n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// There are no more connections than there may be, resting ones included, also while nothing is known of the host.
func TestConnectionsOfAStrangerAreBounded(t *testing.T) {
	var s closer
	var mu sync.Mutex
	open, most := 0, 0
	serve := s.serve(func(int, string) bool { return false })
	client, _ := strangerTo(t, false, func(p *peer, c net.Conn) {
		mu.Lock()
		open++
		most = max(most, open)
		mu.Unlock()
		serve(p, c)
		mu.Lock()
		open--
		mu.Unlock()
	})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() { creates(t, client, 50) })
	}
	wait.Wait()
	client.leads.mu.Lock()
	resting := len(client.leads.idle)
	client.leads.mu.Unlock()
	if resting > 4 {
		t.Errorf("%d connections rest, want 4 at most", resting)
	}
	posts := 0
	for _, methods := range s.seen() {
		for _, m := range methods {
			if m == "POST" {
				posts++
			}
		}
	}
	if posts != 400 {
		t.Errorf("%d creates arrived", posts)
	}
}
