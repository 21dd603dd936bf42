// Package sandbox imitates the lead service, for tests and for trying leadferry out without an account. It answers what
// leadapi sends, and knows nothing of rows.
//
// It serves all six endpoints of the specification to one built-in service account and one brand (see [Directory]), and
// refuses fields, parameters, bodies and nulls that the specification forbids or does not name. Where the specification
// leaves the answer open, the sandbox always gives the same: 400 for what cannot be read, 422 for an unknown name (404
// in a path), and {"error": …, "message": …} as the body of a refusal.
//
// A lead is stored before its create is answered. Leads and OAuth clients survive a kill of the process. Nothing is
// synced, so they may not survive a crash of the machine. Tokens end with the process.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options says how a Server behaves. The zero value is a well-behaved service with a temporary file.
type Options struct {
	Path      string        // the file of its leads; "" is a temporary file, removed by Close
	Wait      time.Duration // how long to wait for a file that another process has locked
	Latency   time.Duration // added to every answer
	Faults    string        // see FaultHelp
	Directory *Directory    // the brand; nil is a made-up one

	now func() time.Time // nil is time.Now
}

// Server is the service. It is an [http.Handler] for both applications, the general API and lead creation.
type Server struct {
	options Options // its defaults filled in
	store   *store
	faults  *faults
	quit    chan struct{}
	shut    func() error
	grants  sync.Map // by their tokens

	mu     sync.Mutex // of the fields below
	counts Counts
	leads  [2]string // the last two that were made or changed, newest first
}

// New returns a Server on the leads of o.Path, which it locks. It fails if o.Faults is not a list of faults, or if the
// file is in use, damaged or not a sandbox's.
func New(o Options) (*Server, error) {
	fs, err := parseFaults(o.Faults)
	if err != nil {
		return nil, err
	}
	st, err := openStore(o.Path, o.Wait)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, store: st, faults: fs, quit: make(chan struct{}), counts: Counts{}}
	s.options.Directory = cmp.Or(o.Directory, brand())
	if o.now == nil {
		s.options.now = time.Now
	}
	s.shut = sync.OnceValue(func() error { close(s.quit); return st.close() })
	return s, nil
}

// Close ends hanging and slow answers, and closes the file. Requests that come later get a 500.
func (s *Server) Close() error { return s.shut() }

// endpoint is one entry of "Endpoints".
type endpoint struct {
	kind, method string
	path         string // up to the path parameter if it ends in a slash
	query        bool   // has parameters in its query
	bearer       use    // what the token must be good for
	serve        func(*Server, call) answer
}

type call struct {
	*http.Request
	tail string // the path parameter
	body []byte
}

var endpoints = []endpoint{
	{kind: "create", method: http.MethodPost, path: "/v1/", bearer: accessUse, serve: (*Server).create},
	{kind: "update", method: http.MethodPatch, path: "/v3/lead/", bearer: accessUse, serve: (*Server).update},
	{kind: "token", method: http.MethodPost, path: "/v3/oauth2/token", query: true, serve: (*Server).token},
	{kind: "login", method: http.MethodPost, path: "/v3/oauth2/login", serve: (*Server).login},
	{kind: "client", method: http.MethodPost, path: "/v3/oauth2/client", bearer: loginUse, serve: (*Server).client},
}

// route returns the endpoint of a request. If there is none, it returns one of the kind "other", which refuses.
func route(r *http.Request) (e endpoint, tail string) {
	refuse := &refusal{status: http.StatusNotFound, reason: "there is nothing at this address"}
	path := r.URL.EscapedPath()
	for _, e := range endpoints {
		tail, found := strings.CutPrefix(path, e.path)
		switch {
		case !found || (tail != "") != strings.HasSuffix(e.path, "/"):
		case r.Method == e.method:
			return e, tail
		default:
			const status = http.StatusMethodNotAllowed
			refuse = &refusal{status: status, reason: "this address takes " + e.method, allow: e.method}
		}
	}
	return endpoint{kind: "other", query: true, serve: func(*Server, call) answer { panic(refuse) }}, ""
}

// ServeHTTP answers one request as the specification says, or as a fault says.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, tail := route(r)
	f := s.faults.pick(e.kind)
	a, refused := s.handle(e, call{Request: r, tail: tail}, f == nil || f.stored)
	s.pause(r.Context(), s.options.Latency)
	if f == nil || refused {
		s.note(e.kind, a.status, a.leadID)
		a.write(w)
		return
	}
	s.spoil(w, r, e.kind, f, a)
}

// handle reads a request. With apply it checks what all endpoints require, and lets the endpoint serve it.
func (s *Server) handle(e endpoint, c call, apply bool) (a answer, refused bool) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case *refusal:
			a, refused = why.answer(), true
		default:
			panic(why)
		}
	}()
	body, err := io.ReadAll(io.LimitReader(c.Body, maxBody+1))
	require(err == nil, http.StatusBadRequest, "the body did not arrive whole")
	require(len(body) <= maxBody, http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB")
	c.body = body
	if !apply {
		return a, false
	}
	if e.bearer != 0 {
		only := len(c.Header.Values("Authorization")) == 1
		require(only, http.StatusUnauthorized, "one Authorization header with a bearer token is required")
		_, alive := s.find(e.bearer, bearer(c.Request))
		require(alive, http.StatusUnauthorized, "the token is not accepted, or has expired")
	}
	require(e.query || c.URL.RawQuery == "" && !c.URL.ForceQuery, http.StatusBadRequest, "this address takes no query")
	return e.serve(s, c), false
}

// pause waits for d, or until the client has gone or the sandbox is closed.
func (s *Server) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-s.quit:
	}
}

// Counts are numbers of requests by kind (create, update, token, login, client, other) and HTTP status; 0: no answer.
type Counts map[string]map[int]int

const maxBody = 1 << 20 // bytes of a request

// note counts an answer and notes the lead that it made or changed. It returns the lead before that, or "".
func (s *Server) note(kind string, status int, leadID string) (before string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[kind] == nil {
		s.counts[kind] = map[int]int{}
	}
	s.counts[kind][status]++
	if leadID != "" && leadID != s.leads[0] {
		s.leads = [2]string{leadID, s.leads[0]}
	}
	return s.leads[1]
}

// Counts returns the requests answered so far.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(Counts, len(s.counts))
	for kind, m := range s.counts {
		c[kind] = maps.Clone(m)
	}
	return c
}

// Lines returns a line for people for each kind of request: how many got which HTTP status.
func (c Counts) Lines() (lines []string) {
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		line := kind + ":"
		for _, status := range slices.Sorted(maps.Keys(c[kind])) {
			word := strconv.Itoa(status)
			if status == 0 {
				word = "no answer"
			}
			line += fmt.Sprintf(" %d × %s", c[kind][status], word)
		}
		lines = append(lines, line)
	}
	return lines
}

// Faults returns Options.Faults: what goes wrong, and how often.
func (s *Server) Faults() string { return strings.TrimSpace(s.options.Faults) }

// OrganizationName returns the name of an organization of the brand, or "".
func (s *Server) OrganizationName(id string) string { return s.options.Directory.names[id] }

// Listener serves a Server on a port of this machine. One goroutine accepts; Close waits for it.
type Listener struct {
	server  *http.Server
	url     string
	cancel  context.CancelFunc
	serving sync.WaitGroup
}

// Listen serves s at addr; 127.0.0.1:0 takes any free port. A connection without a request is closed after idleClose,
// or never if that is 0. Listen fails for an address that other machines can reach.
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
	l.serving.Go(func() { _ = l.server.Serve(ln) }) // only Close ends it
	return l, nil
}

// URL returns the address of both applications, without a path.
func (l *Listener) URL() string { return l.url }

// Close stops serving: delayed answers end at once, other requests after 2 seconds at most. The Server stays open.
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
