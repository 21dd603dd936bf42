package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sink imitates the lead service as cheaply as it can, so that what is measured is its client. It
// judges no body and keeps no lead unless it is told to: the last four digits of a lead ID say the organization and
// the status of its create. It answers
//
//	POST  /v3/oauth2/token      200, a token
//	POST  /v1/{trunkID}         201, a lead ID that it has never given before
//	PATCH /v3/lead/{leadID}     200, the Lead with what was sent
//	GET   /stats                200, its counters
//
// and 401 without a bearer token, 404 to anything else. All connections share one processor.
type sink struct {
	latency time.Duration // added to every answer but /stats
	begun   uint64        // makes IDs differ from those of earlier sinks
	keep    bool          // content and ExternalID of each lead, so that they can be read
	kept    sync.Map      // leads by their ID
	counters
}

// counters are what /stats shows. Requests and connections for /stats do not count.
type counters struct{ creates, updates, tokens, refused, now, most atomic.Int64 }

// stats are the counters as JSON. Most is how many connections there were at once.
type stats struct{ Creates, Updates, Tokens, Refused, Most int64 }

func (c *counters) stats() stats {
	return stats{c.creates.Load(), c.updates.Load(), c.tokens.Load(), c.refused.Load(), c.most.Load()}
}

func runSink(ctx context.Context, args []string, s streams) error {
	set := flags("sink", s)
	addr := set.String("addr", "127.0.0.1:0", "loopback `ADDRESS` to listen on; port 0 takes a free one")
	latency := set.Duration("latency", 0, "time added to every answer")
	keep := set.Bool("keep", false, "keep content and ExternalID of leads, for who reads them")
	tied := set.Bool("tied", false, "end when standard input does")
	if err := set.Parse(args); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(*addr)
	if err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("-addr %s: a loopback address with a port is wanted, such as 127.0.0.1:8099", *addr)
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
	service := newSink(*latency)
	service.keep = *keep
	return service.serve(ctx, l)
}

func newSink(latency time.Duration) *sink {
	return &sink{latency: latency, begun: uint64(time.Now().UnixNano())}
}

// serve answers until ctx ends, and then closes the listener and every connection.
func (s *sink) serve(ctx context.Context, l net.Listener) error {
	var peers sync.WaitGroup
	defer peers.Wait()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		peers.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			s.answerAll(c)
		})
	}
}

// connected counts a connection that has sent its first request. Where that would be more at once than ever, it waits
// a moment for the end of another one to be noticed: a client may have closed that before it opened this.
func (c *counters) connected() {
	now := c.now.Add(1)
	for wait := 100 * time.Microsecond; now > c.most.Load() && wait < 10*time.Millisecond; wait *= 2 {
		time.Sleep(wait)
		now = c.now.Load()
	}
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); {
		most = c.most.Load()
	}
}

// answerAll answers the requests of a connection one after another, until one cannot be read.
func (s *sink) answerAll(c net.Conn) {
	in := bufio.NewReaderSize(c, 64<<10)
	counted := false
	var r request
	for r.read(in) == nil {
		if r.is("GET", "/stats") {
			text, _ := json.Marshal(s.stats())
			_, _ = c.Write(r.reply("200 OK", text))
			continue
		}
		if !counted {
			counted = true
			s.connected()
			defer s.now.Add(-1)
		}
		status, body := s.decide(&r)
		time.Sleep(s.latency)
		if _, err := c.Write(r.reply(status, body)); err != nil || r.last {
			return
		}
	}
}

// decide is the whole of the service.
func (s *sink) decide(r *request) (status string, body []byte) {
	const token = `{"access_token":"access","expires_in":10800,"refresh_token":"refresh","token_type":"Bearer"}`
	id, update := strings.CutPrefix(r.path, "/v3/lead/")
	switch {
	case r.is("POST", "/v3/oauth2/token"):
		s.tokens.Add(1)
		return "200 OK", []byte(token)
	case !r.bearer:
		s.refused.Add(1)
		return "401 Unauthorized", []byte(`{"error":"Not Authorized"}`)
	case r.method == "POST" && strings.HasPrefix(r.path, "/v1/"):
		return "201 Created", s.created(r, uint64(s.creates.Add(1)))
	case r.method == "PATCH" && update && len(id) == len(someLead) && !strings.ContainsAny(id, `/"\`):
		s.updates.Add(1)
		return "200 OK", s.updated(r, id)
	}
	s.refused.Add(1)
	return "404 Not Found", []byte(`{"error":"Not Found"}`)
}

// organization is what organizations begin with here; three digits that tell them apart follow.
const organization = "d0000000-0000-4000-8000-000000000"

const someLead = "3d0f8a52-7c41-4e19-8b06-58a1c2d70000"

// statuses are the keys of the specification (section "States and transitions").
var statuses = [...]string{
	"open", "contacted", "inProgress", "onHold",
	"closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand",
}

// created answers a create with the n-th lead ID; IDs ascend.
func (s *sink) created(r *request, n uint64) []byte {
	owner, _ := strconv.Atoi(strings.TrimPrefix(member(r.body, "organizationID", ""), organization))
	status := max(0, slices.Index(statuses[:], member(r.body, "status", statuses[0])))
	r.out = fmt.Appendf(r.out[:0], `{"leadID":"%08x-%04x-4%03x-8%03x-%08x%03x%x",`+
		`"assignedOrganizationID":"%s%03d","assignedLocationName":""}`,
		s.begun>>28&0xffffffff, s.begun>>12&0xffff, s.begun&0xfff, n>>32&0xfff, n&0xffffffff, owner, status,
		organization, owner)
	if s.keep {
		s.kept.Store(string(r.out[len(`{"leadID":"`):][:len(someLead)]), lead{content: object(r.body, "content")})
	}
	return r.out
}

// lead is what is kept of one.
type lead struct {
	content    []byte
	externalID string
}

// updated is the Lead as it was made, with what the update brings. What it does not bring is as it is kept.
func (s *sink) updated(r *request, id string) []byte {
	owner, _ := strconv.ParseUint(id[32:35], 16, 16)
	status, _ := strconv.ParseUint(id[35:], 16, 16)
	was, _ := s.kept.Load(id)
	now, known := was.(lead)
	now.externalID = member(r.body, "ExternalID", now.externalID)
	if content := object(r.body, "Content"); len(content) > len("{}") || !known {
		now.content = content
	}
	if known {
		s.kept.Store(id, now)
	}
	r.out = fmt.Appendf(r.out[:0], `{"ID":"%s","ReadOnly":false,"CreatedAt":"2026-03-01T08:00:00.000000Z",`+
		`"UpdatedAt":"2026-03-01T08:00:01.000000Z","OwnerID":"%s%03d","Content":%s,"Impressions":0,"IsTestLead":false,`+
		`"Location":{"Name":"","Address":""},"RequestMeta":{"ContentType":"application/json","Host":"","IP":"",`+
		`"Locale":"","URL":"","UserAgent":""},"Source":"lead-collector","Status":"%s","Stage":"lead",`+
		`"TypeKey":"contact-form","TypeLabel":"Contact form","Views":0,"ExternalID":"%s","DisplayName":""}`,
		id, organization, owner, now.content, member(r.body, "Status", statuses[status%8]), now.externalID)
	return r.out
}

// member is a text of a JSON object, as it is written. The sink knows its clients: they write no spaces, and no inner
// object has a member of that name.
func member(text []byte, name, otherwise string) string {
	_, rest, ok := bytes.Cut(text, []byte(`"`+name+`":"`))
	if !ok {
		return otherwise
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

// object is an object of a JSON object, as it is written, or an empty one.
func object(text []byte, name string) []byte {
	value := json.RawMessage("{}")
	if _, rest, ok := bytes.Cut(text, []byte(`"`+name+`":`)); ok {
		_ = json.NewDecoder(bytes.NewReader(rest)).Decode(&value)
	}
	return value
}

// request is what the sink needs to know of a request. Its buffers are used again for the next one.
type request struct {
	method, path string
	body, out    []byte
	head         []byte
	bearer       bool // it carries a bearer token, whichever
	last         bool // the connection ends after it
}

func (r *request) is(method, path string) bool { return r.path == path && r.method == method }

// read reads a request of HTTP/1.1 with a length; nothing that is measured sends another kind.
func (r *request) read(in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	var target string
	r.method, target, _ = strings.Cut(string(line), " ")
	target, _, _ = strings.Cut(target, " ")
	r.path, _, _ = strings.Cut(target, "?")
	r.bearer, r.last = false, false
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		name, value, ok := bytes.Cut(line, []byte(": "))
		if !ok {
			break
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		case bytes.EqualFold(name, []byte("Authorization")):
			r.bearer = len(value) > len("Bearer ") && bytes.EqualFold(value[:7], []byte("Bearer "))
		case bytes.EqualFold(name, []byte("Connection")):
			r.last = bytes.EqualFold(value, []byte("close"))
		}
	}
	r.body = slices.Grow(r.body[:0], length)[:length]
	_, err = io.ReadFull(in, r.body)
	return err
}

// reply is a whole answer.
func (r *request) reply(status string, body []byte) []byte {
	r.head = fmt.Appendf(r.head[:0], "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, len(body), body)
	return r.head
}
