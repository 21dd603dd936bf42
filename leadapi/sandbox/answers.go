package sandbox

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
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
	"revoke":       func(c faulty) { c.write(c.w) },
	"drop":         func(faulty) { panic(http.ErrAbortHandler) },
	"hang":         faulty.hang,
	"slow":         func(c faulty) { c.s.pause(c.r.Context(), cmp.Or(c.pause, slowness)); c.write(c.w) },
	"drip":         faulty.drip,
	"cut-body":     faulty.cutBody,
	"not-json":     faulty.notJSON,
	"no-id":        func(c faulty) { c.edit("", "leadID", "ID") },
	"bad-id":       func(c faulty) { c.edit("../../v3/oauth2/client", "leadID", "ID") },
	"other-id":     func(c faulty) { c.edit(cmp.Or(c.before, TrunkID), "leadID", "ID") },
	"other-org":    func(c faulty) { c.edit(TrunkID, "assignedOrganizationID", "OwnerID") },
	"other-status": func(c faulty) { c.edit("closedBoughtOtherBrand", "Status") },
	"info":         faulty.inform,
	"extra":        faulty.extra,
	"huge-header":  func(c faulty) { c.w.Header().Set("X-Padding", strings.Repeat("x", 1<<20)); c.write(c.w) },
	"gzip":         func(c faulty) { c.pack("gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }) },
	"deflate":      func(c faulty) { c.pack("deflate", func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }) },
	"gzip-bomb":    faulty.bomb,
	"bom":          func(c faulty) { c.body = append([]byte("\ufeff"), c.body...); c.write(c.w) },
	"close":        func(c faulty) { c.raw(c.wire(string(c.body))) },
	"endless":      faulty.endless,
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

func (c faulty) drip() {
	c.begin(len(c.body))
	for i := range c.body {
		if !c.send(c.body[i:i+1]) || !c.s.pause(c.r.Context(), cmp.Or(c.pause, time.Second)) {
			return
		}
	}
}

func (c faulty) cutBody() {
	c.begin(len(c.body))
	c.send(c.body[:len(c.body)/2])
	panic(http.ErrAbortHandler)
}

func (c faulty) notJSON() {
	c.body = []byte("<!doctype html><title>Welcome</title><p>Everything went well.</p>\n")
	c.header = map[string]string{"Content-Type": "text/html; charset=utf-8"}
	c.write(c.w)
}

// edit puts a value in place of each field that the body has, or takes it out when the value is "".
func (c faulty) edit(value string, names ...string) {
	var body map[string]jsontext.Value
	_ = json.Unmarshal(c.body, &body)
	for _, name := range names {
		if body[name] == nil {
			continue
		}
		if value == "" {
			delete(body, name)
			continue
		}
		body[name], _ = jsontext.AppendQuote(nil, value)
	}
	c.body, _ = json.Marshal(body, json.Deterministic(true))
	c.write(c.w)
}

func (c faulty) inform() {
	for range 100 {
		c.w.WriteHeader(http.StatusEarlyHints)
	}
	c.write(c.w)
}

// extra sends, in one piece, its answer and another one that nobody asked for.
func (c faulty) extra() {
	c.raw(c.wire(string(c.body)) + c.wire(strings.Replace(string(c.body), c.leadID, newID(0), 1)))
}

// wire is the answer as it stands on the connection, without a word of what becomes of that.
func (c faulty) wire(body string) string {
	head := "HTTP/1.1 " + strconv.Itoa(c.status) + " " + http.StatusText(c.status)
	if alive := c.w.Header().Get("Keep-Alive"); alive != "" {
		head += "\r\nKeep-Alive: " + alive
	}
	return head + "\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// raw sends a text as it is and closes the connection.
func (c faulty) raw(text string) {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, text)
}

func (c faulty) pack(encoding string, packer func(io.Writer) io.WriteCloser) {
	var b bytes.Buffer
	z := packer(&b)
	_, _ = z.Write(c.body)
	_ = z.Close()
	c.w.Header().Set("Content-Encoding", encoding)
	c.body = b.Bytes()
	c.write(c.w)
}

func (c faulty) bomb() {
	c.w.Header().Set("Content-Encoding", "gzip")
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(c.status)
	z := gzip.NewWriter(c.w)
	blanks := []byte(strings.Repeat(" ", 1<<20))
	for range 64 {
		if _, err := z.Write(blanks); err != nil {
			return
		}
	}
	_, _ = z.Write(c.body)
	_ = z.Close()
}

func (c faulty) endless() {
	c.w.WriteHeader(c.status)
	blanks := []byte(strings.Repeat(" ", 1<<16))
	for c.send(blanks) && c.s.pause(c.r.Context(), time.Millisecond) {
	}
}

// begin sends a head that promises a body of n bytes.
func (c faulty) begin(n int) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(n))
	c.w.WriteHeader(c.status)
}

// send writes and flushes, and reports whether that went well.
func (c faulty) send(b []byte) bool {
	_, err := c.w.Write(b)
	return err == nil && http.NewResponseController(c.w).Flush() == nil
}
