package leadapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// resting is how many connections wait for another call.
func resting(h *host) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.idle)
}

// A connection is used again only when the call before it has left nothing upon it. faults 36, 40, 47
func TestWhichConnectionsAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		kept   int
	}{
		"created":             {answerText(201, createdBody), 1},
		"refused":             {answerText(422, "{}"), 1},
		"throttled":           {answerText(429, "{}"), 1},
		"misdirected":         {answerText(421, "{}"), 0},
		"says that it closes": {answerText(201, createdBody, "Connection: close"), 0},
		"of HTTP/1.0":         {strings.Replace(answerText(201, createdBody), "HTTP/1.1", "HTTP/1.0", 1), 0},
		"server error":        {answerText(500, "{}"), 0},
		"without an ID":       {answerText(202, "{}"), 0},
		"of unknown length":   {"HTTP/1.1 201 x\r\n\r\n" + createdBody, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := listen(t, func(p *peer, c net.Conn) { // which keeps its side open, but where only the end ends the answer
				if _, err := p.next(bufio.NewReader(c)); err == nil {
					io.WriteString(c, test.answer)
				}
				if name != "of unknown length" {
					io.Copy(io.Discard, c)
				}
			})
			client := signedIn(t, config(p.address()))
			fault(t, client)
			if n := resting(client.leads); n != test.kept {
				t.Errorf("%d connections are kept, want %d", n, test.kept)
			}
		})
	}
}

// A peer that answers before it has taken the whole body would take the next request for the rest of it. fault 47
func TestConnectionWithHalfARequestIsNotKept(t *testing.T) {
	t.Parallel()
	p := listen(t, func(p *peer, c net.Conn) {
		io.ReadFull(c, make([]byte, 1000))
		io.WriteString(c, answerText(413, "{}"))
		<-t.Context().Done()
	})
	c := config(p.address())
	c.Timeout = 4 * time.Second // in which the answer comes, however busy the machine is
	client := signedIn(t, c)
	r := someLead()
	r.Content[0].Value = strings.Repeat("x", 12<<20) // more than the sockets hold
	_, err := client.Create(t.Context(), r)
	if e, ok := err.(*Error); !ok || e.Status != 413 {
		t.Errorf("%v", err)
	}
	if n := resting(client.leads); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
}

// What asks to be held back leaves nothing, be it a lead request or the token that it needs. fault 139
func TestARequestThatIsHeldBackDoesNotLeave(t *testing.T) {
	p := answers(t, answerText(201, createdBody))
	c := config(p.address())
	var asked []string
	c.Leave = func(kind string) bool { asked = append(asked, kind); return false }
	for _, client := range []*Client{signedIn(t, c), connect(t, c)} {
		if e := fault(t, client); e == nil || e.Reason != ReasonHeld || e.Applied != No || e.Status != 0 {
			t.Errorf("%v", e)
		}
	}
	if p.seen() != 0 || strings.Join(asked, " ") != "create token" {
		t.Errorf("%d requests left; asked for %s", p.seen(), asked)
	}
}

// A request that wants a new connection gets one, although there are used ones that would do. fault 138
func TestRequestsThatWantANewConnection(t *testing.T) {
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
	if got, want := fmt.Sprint(s.seen()), "[[POST] [POST] [PATCH]]"; got != want {
		t.Errorf("the connections carried %s, want %s", got, want)
	}
}
