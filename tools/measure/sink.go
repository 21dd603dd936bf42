package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// sink imitates the lead service as cheaply as it can, so that a measurement is about its client. It does not check
// bodies, and keeps leads only with -keep: the last digits of an ID hold organization and status of the create. It
// answers
//
//	POST  /v3/oauth2/token      200, a token
//	POST  /v1/{trunkID}         201, a lead ID that it has never given before
//	PATCH /v3/lead/{leadID}     200, the Lead with what was sent
//	GET   /stats                200, its counters
//
// and 401 without a bearer token, 404 to anything else. All connections share one processor.
type sink struct {
	latency time.Duration // added to every answer except /stats
	begun   uint64        // the time; makes IDs differ from those of earlier sinks
	keep    bool          // keep content and ExternalID of each lead, to answer reads
	kept    sync.Map      // leads by their ID

	creates, updates, tokens, now, most atomic.Int64
}

// stats is what /stats shows. Most is the highest number of connections at once.
type stats struct{ Creates, Updates, Tokens, Most int64 }

func runSink(ctx context.Context, args []string, s streams) error {
	set := flags("sink", s)
	latency := set.Duration("latency", 0, "time added to every answer")
	keep := set.Bool("keep", false, "keep content and ExternalID of each lead, to answer reads")
	if err := set.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	fmt.Fprintf(s.out, "http://%s\n", l.Addr())
	service := &sink{latency: *latency, begun: uint64(time.Now().UnixNano()), keep: *keep}
	return service.serve(ctx, l)
}

// serve answers until ctx ends.
func (s *sink) serve(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	server := &fasthttp.Server{
		Handler: s.answer, ConnState: s.count, NoDefaultServerHeader: true, NoDefaultDate: true,
		MaxRequestBodySize: 1 << 20,
	}
	return server.Serve(l)
}

// count keeps the number of connections, and the highest so far.
func (s *sink) count(_ net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateNew:
		now := s.now.Add(1)
		s.most.Store(max(now, s.most.Load())) // one goroutine accepts
	case fasthttp.StateClosed:
		s.now.Add(-1)
	}
}

// answer answers every request.
func (s *sink) answer(c *fasthttp.RequestCtx) {
	path := string(c.Path())
	id, update := strings.CutPrefix(path, "/v3/lead/")
	bearer, _, _ := strings.Cut(string(c.Request.Header.Peek("Authorization")), " ")
	c.SetContentType("application/json")
	switch {
	case c.IsGet() && path == "/stats":
		now := stats{s.creates.Load(), s.updates.Load(), s.tokens.Load(), s.most.Load()}
		_ = json.NewEncoder(c).Encode(now)
		return
	case c.IsPost() && path == "/v3/oauth2/token":
		s.tokens.Add(1)
		c.SetBodyString(`{"access_token":"access","expires_in":10800,"refresh_token":"refresh","token_type":"Bearer"}`)
	case !strings.EqualFold(bearer, "Bearer"):
		c.SetStatusCode(fasthttp.StatusUnauthorized)
		c.SetBodyString(`{"error":"Not Authorized"}`)
	case c.IsPost() && strings.HasPrefix(path, "/v1/"):
		c.SetStatusCode(fasthttp.StatusCreated)
		s.create(c, uint64(s.creates.Add(1)))
	case c.IsPatch() && update && len(id) == len(someLead) && !strings.ContainsAny(id, `/"\`):
		s.updates.Add(1)
		s.update(c, id)
	default:
		c.SetStatusCode(fasthttp.StatusNotFound)
		c.SetBodyString(`{"error":"Not Found"}`)
	}
	time.Sleep(s.latency)
}

// organization begins the IDs of all organizations here; three digits follow.
const organization = "d0000000-0000-4000-8000-000000000"

const someLead = "3d0f8a52-7c41-4e19-8b06-58a1c2d70000"

// statuses are the keys of the specification (section "States and transitions").
var statuses = [...]string{
	"open", "contacted", "inProgress", "onHold",
	"closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand",
}

// create answers with the n-th lead ID; IDs ascend.
func (s *sink) create(c *fasthttp.RequestCtx, n uint64) {
	body := c.PostBody()
	owner, _ := strconv.Atoi(strings.TrimPrefix(member(body, "organizationID", ""), organization))
	status := max(0, slices.Index(statuses[:], member(body, "status", statuses[0])))
	id := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%08x%03x%x", s.begun>>28&0xffffffff, s.begun>>12&0xffff, s.begun&0xfff,
		n>>32&0xfff, n&0xffffffff, owner, status)
	fmt.Fprintf(c, `{"leadID":"%s","assignedOrganizationID":"%s%03d","assignedLocationName":""}`, id, organization,
		owner)
	if s.keep {
		s.kept.Store(id, lead{content: object(body, "content")})
	}
}

// lead is what the sink keeps of a lead.
type lead struct {
	content    []byte
	externalID string
}

// update answers with the updated lead: owner and status are in its ID, content and ExternalID as sent or kept.
func (s *sink) update(c *fasthttp.RequestCtx, id string) {
	owner, _ := strconv.ParseUint(id[32:35], 16, 16)
	status, _ := strconv.ParseUint(id[35:], 16, 16)
	body := c.PostBody()
	was, _ := s.kept.Load(id)
	now, known := was.(lead)
	now.externalID = member(body, "ExternalID", now.externalID)
	if content := object(body, "Content"); len(content) > len("{}") || !known {
		now.content = content
	}
	if known {
		s.kept.Store(id, now)
	}
	fmt.Fprintf(c, `{"ID":"%s","ReadOnly":false,"CreatedAt":"2026-03-01T08:00:00.000000Z",`+
		`"UpdatedAt":"2026-03-01T08:00:01.000000Z","OwnerID":"%s%03d","Content":%s,"Impressions":0,"IsTestLead":false,`+
		`"Location":{"Name":"","Address":""},"RequestMeta":{"ContentType":"application/json","Host":"","IP":"",`+
		`"Locale":"","URL":"","UserAgent":""},"Source":"lead-collector","Status":"%s","Stage":"lead",`+
		`"TypeKey":"contact-form","TypeLabel":"Contact form","Views":0,"ExternalID":"%s","DisplayName":""}`,
		id, organization, owner, now.content, member(body, "Status", statuses[status%8]), now.externalID)
}

// member returns a text of a JSON object as it is written. That is enough for the clients here: they write no spaces,
// and no inner object has a member of that name.
func member(text []byte, name, otherwise string) string {
	_, rest, ok := bytes.Cut(text, []byte(`"`+name+`":"`))
	if !ok {
		return otherwise
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

// object returns an object inside a JSON object, as written, or an empty one.
func object(text []byte, name string) []byte {
	value := json.RawMessage("{}")
	if _, rest, ok := bytes.Cut(text, []byte(`"`+name+`":`)); ok {
		_ = json.NewDecoder(bytes.NewReader(rest)).Decode(&value)
	}
	return value
}
