package sandbox

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answer is what a request is given: a status, 0 for none, and a body of JSON.
type answer struct {
	status int
	header map[string]string
	body   []byte
	leadID string // of the lead that the body names
	reason string // of a refusal
}

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	if len(a.body) > 0 {
		h.Set("Content-Type", "application/json")
	}
	for k, v := range a.header {
		h.Set(k, v)
	}
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that is gone has no use for the error
}

func respond(status int, v any) answer {
	body, _ := json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(false)) // it is made of what was read
	return answer{status: status, header: map[string]string{}, body: body}
}

// refusal is an error that the client is told ("Errors").
type refusal struct {
	status int
	code   string // "": the words of the status
	reason string
	allow  string // the method that the address takes
}

func (r *refusal) Error() string { return r.reason }

// refuse returns a refusal in words that hold no value of the request.
func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, reason: fmt.Sprintf(format, args...)}
}

// refused turns an error into an answer; what is no refusal is a fault of the sandbox itself.
func refused(err error) answer {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		r = &refusal{status: http.StatusInternalServerError, reason: err.Error()}
	}
	a := respond(r.status, struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}{cmp.Or(r.code, http.StatusText(r.status), "Unknown"), r.reason})
	a.reason = r.reason
	switch {
	case r.allow != "":
		a.header["Allow"] = r.allow
	case r.status == http.StatusUnauthorized:
		a.header["WWW-Authenticate"] = "Bearer"
	}
	return a
}

// faulty is an answer about to be spoiled.
type faulty struct {
	answer
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	pause  time.Duration
	before string // the lead answered before this one
}

// faultAnswers are the faults that are no status, by name.
var faultAnswers = map[string]func(faulty){
	"revoke":          func(c faulty) { c.write(c.w) },
	"drop":            func(faulty) { panic(http.ErrAbortHandler) },
	"hang":            faulty.hang,
	"slow":            func(c faulty) { c.s.pause(c.r.Context(), cmp.Or(c.pause, slowness)); c.write(c.w) },
	"cut-body":        faulty.cutBody,
	"not-json":        faulty.notJSON,
	"no-id":           func(c faulty) { c.edit("", "leadID", "ID") },
	"other-id":        func(c faulty) { c.edit(cmp.Or(c.before, TrunkID), "leadID", "ID") },
	"no-organization": func(c faulty) { c.edit("", "assignedOrganizationID", "assignedLocationName") },
	"gzip":            faulty.pack,
	"close":           faulty.closeUnannounced,
}

// spoil answers as the fault wants it. a is the true answer; it is empty when nothing was applied.
func (s *Server) spoil(w http.ResponseWriter, r *http.Request, kind string, f *fault, a answer) {
	leadID := a.leadID
	switch {
	case f.name == "revoke":
		a = refused(s.revoke())
	case f.status >= 300 || f.status > 0 && !f.stored:
		a = s.faults.answer(f)
	case f.status > 0:
		a.status = f.status
	case f.name == "drop" || f.name == "hang":
		a = answer{}
	}
	a.leadID = leadID
	c := faulty{answer: a, s: s, w: w, r: r, pause: f.pause, before: s.note(kind, r, f, a)}
	if answerFaultily := faultAnswers[f.name]; answerFaultily != nil {
		answerFaultily(c)
		return
	}
	a.write(w)
}

// Pauses of faults that name none.
const (
	slowness = 3 * time.Second
	forEver  = 24 * time.Hour
)

func (c faulty) hang() {
	c.s.pause(c.r.Context(), forEver)
	panic(http.ErrAbortHandler)
}

func (c faulty) cutBody() {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(c.body)))
	c.w.WriteHeader(c.status)
	_, _ = c.w.Write(c.body[:len(c.body)/2])
	_ = http.NewResponseController(c.w).Flush()
	panic(http.ErrAbortHandler)
}

func (c faulty) notJSON() {
	c.body = []byte("<!doctype html><title>Welcome</title><p>Everything went well.</p>\n")
	c.header = map[string]string{"Content-Type": "text/html; charset=utf-8"}
	c.write(c.w)
}

// edit puts a text in place of these members, or takes them out for "".
func (c faulty) edit(text string, names ...string) {
	var body map[string]jsontext.Value
	_ = json.Unmarshal(c.body, &body)
	for _, name := range names {
		switch {
		case body[name] == nil:
		case text == "":
			delete(body, name)
		default:
			body[name], _ = jsontext.AppendQuote(nil, text)
		}
	}
	c.body, _ = json.Marshal(body, json.Deterministic(true))
	c.write(c.w)
}

func (c faulty) pack() {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(c.body)
	_ = z.Close()
	c.w.Header().Set("Content-Encoding", "gzip")
	c.body = b.Bytes()
	c.write(c.w)
}

// closeUnannounced answers and closes the connection, which the answer does not say.
func (c faulty) closeUnannounced() {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		c.status, http.StatusText(c.status), len(c.body), c.body)
}
