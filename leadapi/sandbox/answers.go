package sandbox

import (
	"bytes"
	"cmp"
	"compress/gzip"
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

// refusal is why a request is not carried out, as the answer says it to the client ("Errors"). It travels as a panic:
// what serves a request says in a line each what it requires.
type refusal struct {
	status int
	code   string // "": the words of the status
	reason string // in words that hold no value of the request
	allow  string // the method that the address takes
}

// require refuses the request that is being served unless ok.
func require(ok bool, status int, format string, args ...any) {
	if !ok {
		panic(&refusal{status: status, reason: fmt.Sprintf(format, args...)})
	}
}

// check ends the request with a fault of the sandbox itself.
func check(err error) { require(err == nil, http.StatusInternalServerError, "%v", err) }

func (r *refusal) answer() answer {
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

// faultNames are the faults that are no status.
var faultNames = []string{
	"revoke", "drop", "hang", "slow", "cut-body", "not-json", "no-id", "other-id", "no-organization", "gzip", "close",
}

// Pauses of faults that name none.
const (
	slowness = 3 * time.Second
	forEver  = 24 * time.Hour
)

// spoil answers as the fault wants it. a is the true answer; it is empty when nothing was applied.
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
	a.leadID = leadID
	s.note(kind, r, f, a)
	switch f.name {
	case "drop":
		panic(http.ErrAbortHandler)
	case "hang":
		s.pause(r.Context(), forEver)
		panic(http.ErrAbortHandler)
	case "slow":
		s.pause(r.Context(), cmp.Or(f.pause, slowness))
	case "cut-body":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "not-json":
		a.body = []byte("<!doctype html><title>Welcome</title><p>Everything went well.</p>\n")
		a.header = map[string]string{"Content-Type": "text/html; charset=utf-8"}
	case "no-id":
		a.edit("", "leadID", "ID")
	case "other-id":
		others := s.Requests(1, func(r Request) bool { return r.LeadID != "" && r.LeadID != leadID })
		a.edit(append(others, Request{LeadID: TrunkID})[0].LeadID, "leadID", "ID")
	case "no-organization":
		a.edit("", "assignedOrganizationID", "assignedLocationName")
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

// edit puts a text in place of these members of the body, or takes them out for "".
func (a *answer) edit(text string, names ...string) {
	var body map[string]any
	_ = json.Unmarshal(a.body, &body, exactNumbers)
	for _, name := range names {
		if body[name] != nil {
			body[name] = text
		}
		if text == "" {
			delete(body, name)
		}
	}
	a.body, _ = json.Marshal(body, json.Deterministic(true))
}

// writeAndClose answers and closes the connection, which the answer does not say.
func (a answer) writeAndClose(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		a.status, http.StatusText(a.status), len(a.body), a.body)
}
