package sandbox

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/spelling"
)

// FaultHelp is the grammar of Options.Faults.
//
//go:embed faults.txt
var FaultHelp string

// fault is one thing that goes wrong, and how often.
type fault struct {
	kinds  []string
	name   string // without -stored and -retry
	status int    // the name as a status; 0: it is none
	stored bool   // the request is applied, whatever the answer
	retry  bool   // the answer has a Retry-After
	pause  time.Duration

	percent     float64
	every, only int // hits every Nth request, or only the Nth; 0: not used
	seen        int // requests of its kinds so far
}

type faults struct {
	retryAfter string
	mu         sync.Mutex
	random     *rand.Rand
	list       []*fault
}

func parseFaults(spec string) (*faults, error) {
	fs, seed := &faults{retryAfter: "1"}, uint64(0)
	for item := range strings.SplitSeq(spec, ",") {
		item = strings.TrimSpace(item)
		name, value, understood := strings.Cut(item, "=")
		switch name {
		case "":
			understood = true
		case "retry-after":
			fs.retryAfter = value
		case "seed":
			var err error
			seed, err = strconv.ParseUint(value, 10, 64)
			understood = err == nil
		default:
			var f *fault
			f, understood = parseFault(item)
			fs.list = append(fs.list, f)
		}
		if !understood {
			return nil, fmt.Errorf("sandbox: the fault %q is not understood", item)
		}
	}
	fs.random = rand.New(rand.NewPCG(seed, seed))
	return fs, nil
}

// faultForm is the form of a fault: its kind, name and endings, its rate in one of three ways, and its duration.
var faultForm = spelling.Form(`^(?:([a-z]+)\.)?([0-9a-z-]+?)(-stored)?(-retry)?` +
	`(?::([0-9.]+)%|/([0-9]+)|#([0-9]+))(?::(.*))?$`)

func parseFault(item string) (f *fault, understood bool) {
	m := faultForm().FindStringSubmatch(item)
	if m == nil {
		return nil, false
	}
	f = &fault{kinds: []string{"create", "update"}, name: m[2], stored: m[3] != "", retry: m[4] != ""}
	f.percent, _ = strconv.ParseFloat(m[5], 64)
	f.every, _ = strconv.Atoi(m[6])
	f.only, _ = strconv.Atoi(m[7])
	if m[1] != "" {
		f.kinds = []string{m[1]}
	}
	var err error
	if m[8] != "" {
		f.pause, err = time.ParseDuration(m[8])
	}
	status, _ := strconv.Atoi(f.name)
	applied, named := faultNames[f.name]
	switch {
	case err != nil || f.pause < 0, f.percent > 100 || m[5] == "" && f.every+f.only < 1,
		!slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.kind == f.kinds[0] }):
		return nil, false
	case status >= 200 && status <= 599 && len(f.name) == 3:
		f.status, f.retry = status, f.retry || status == http.StatusTooManyRequests
	case !named, f.retry, f.stored && applied, f.stored && f.name == "revoke":
		return nil, false
	}
	f.stored = f.stored || applied
	return f, true
}

// pick counts a request of a kind and returns the fault that hits it, or nil.
func (fs *faults) pick(kind string) (hit *fault) {
	if len(fs.list) == 0 {
		return nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.list {
		if !slices.Contains(f.kinds, kind) {
			continue
		}
		f.seen++
		// Each fault draws for each request: a request that another fault hits does not change its later draws.
		drawn := f.percent > 0 && fs.random.Float64()*100 < f.percent
		if drawn || f.seen == f.only || f.every > 0 && f.seen%f.every == 0 {
			hit = cmp.Or(hit, f)
		}
	}
	return hit
}

// answer returns the answer of a fault that is a status.
func (fs *faults) answer(f *fault) answer {
	a := answer{status: f.status, header: map[string]string{}}
	if f.status >= 300 && f.status != http.StatusNotModified {
		a = (&refusal{status: f.status, reason: "the sandbox was asked for this fault"}).answer()
	}
	if f.retry && fs.retryAfter != "none" {
		a.header["Retry-After"] = fs.retryAfter
	}
	if f.status/100 == 3 {
		a.header["Location"] = "/elsewhere"
	}
	return a
}

// answer is what a request gets: a status, 0 for no answer, and a body of JSON.
type answer struct {
	status int
	header map[string]string
	body   []byte
	leadID string // the lead that the body names
}

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	if len(a.body) > 0 {
		h.Set("Content-Type", "application/json")
	}
	for k, v := range a.header {
		h.Set(k, v)
	}
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified && h.Get("Content-Length") == "" {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that is gone has no use for the error
}

func respond(status int, v any) answer {
	body, _ := json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(false)) // its values come from JSON
	return answer{status: status, header: map[string]string{}, body: body}
}

// refusal says why a request is not carried out ("Errors"). Endpoints panic with it, so that each requirement takes one
// line.
type refusal struct {
	status int
	code   string // "": the words of the status
	reason string // holds no value of the request
	allow  string // the method that the address takes
}

// require refuses the request that is being served unless ok.
func require(ok bool, status int, format string, args ...any) {
	if !ok {
		panic(&refusal{status: status, reason: fmt.Sprintf(format, args...)})
	}
}

// check refuses the request with a 500 if the sandbox itself has failed.
func check(err error) { require(err == nil, http.StatusInternalServerError, "%v", err) }

func (r *refusal) answer() answer {
	word := cmp.Or(r.code, http.StatusText(r.status), "Unknown")
	a := respond(r.status, map[string]string{"error": word, "message": r.reason})
	switch {
	case r.allow != "":
		a.header["Allow"] = r.allow
	case r.status == http.StatusUnauthorized:
		a.header["WWW-Authenticate"] = "Bearer"
	}
	return a
}

// faultNames are the faults that are not a status; true: the request is applied.
var faultNames = map[string]bool{
	"revoke": false, "drop": false, "hang": false, "slow": true, "cut-body": true, "not-json": true, "no-id": true,
	"other-id": true, "gzip": true, "close": true,
}

// spoil answers as the fault says. a is the true answer; it is empty when nothing was applied.
func (s *Server) spoil(w http.ResponseWriter, r *http.Request, kind string, f *fault, a answer) {
	leadID := a.leadID
	switch {
	case f.name == "revoke":
		s.revoke()
		a = (&refusal{status: http.StatusUnauthorized, reason: "the token is not accepted"}).answer()
	case f.status >= 300 || f.status > 0 && !f.stored:
		a = s.faults.answer(f)
	case f.status > 0:
		a.status = f.status
	case f.name == "drop" || f.name == "hang":
		a = answer{}
	}
	other := s.note(kind, a.status, leadID)
	switch f.name {
	case "drop":
		panic(http.ErrAbortHandler)
	case "hang":
		s.pause(r.Context(), 24*time.Hour)
		panic(http.ErrAbortHandler)
	case "slow":
		s.pause(r.Context(), cmp.Or(f.pause, 3*time.Second))
	case "cut-body":
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
		a.body = a.body[:len(a.body)/2]
		a.write(w)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "not-json":
		a.body = []byte("<!doctype html><title>Welcome</title><p>Everything went well.</p>\n")
		a.header["Content-Type"] = "text/html; charset=utf-8"
	case "no-id":
		a.body = bytes.ReplaceAll(a.body, []byte(`"`+leadID+`"`), []byte(`""`))
	case "other-id":
		a.body = bytes.ReplaceAll(a.body, []byte(`"`+leadID+`"`), []byte(`"`+cmp.Or(other, TrunkID)+`"`))
	case "gzip":
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(a.body)
		_ = z.Close()
		a.body, a.header["Content-Encoding"] = b.Bytes(), "gzip"
	case "close":
		a.writeAndClose(w)
		return
	}
	a.write(w)
}

// writeAndClose answers and closes the connection, without saying so in the answer.
func (a answer) writeAndClose(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		a.status, http.StatusText(a.status), len(a.body), a.body)
}
