package sandbox

import (
	"cmp"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// scene is an answer about to be spoiled.
type scene struct {
	answer
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	pause  time.Duration
	before string // the lead answered before this one
}

// tricks are the faults that are no status, by name.
var tricks = map[string]func(scene){
	"revoke":       func(c scene) { c.write(c.w) },
	"drop":         func(scene) { panic(http.ErrAbortHandler) },
	"hang":         scene.hang,
	"slow":         func(c scene) { c.s.pause(c.r.Context(), cmp.Or(c.pause, 3*time.Second)); c.write(c.w) },
	"drip":         scene.drip,
	"cut-body":     scene.cutBody,
	"not-json":     scene.notJSON,
	"no-id":        func(c scene) { c.edit("", "leadID", "ID") },
	"bad-id":       func(c scene) { c.edit("../../v3/oauth2/client", "leadID", "ID") },
	"other-id":     func(c scene) { c.edit(cmp.Or(c.before, TrunkID), "leadID", "ID") },
	"other-org":    func(c scene) { c.edit(TrunkID, "assignedOrganizationID", "OwnerID") },
	"other-status": func(c scene) { c.edit("closedBoughtOtherBrand", "Status") },
	"info":         scene.inform,
	"extra":        scene.extra,
	"huge-header":  func(c scene) { c.w.Header().Set("X-Padding", strings.Repeat("x", 1<<20)); c.write(c.w) },
	"gzip":         scene.bomb,
	"endless":      scene.endless,
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
	c := scene{answer: a, s: s, w: w, r: r, pause: f.pause, before: s.count(kind, a)}
	if trick := tricks[f.name]; trick != nil {
		trick(c)
		return
	}
	a.write(w)
}

// hang gives no answer; the pause of a day stands for ever.
func (c scene) hang() {
	c.s.pause(c.r.Context(), 24*time.Hour)
	panic(http.ErrAbortHandler)
}

func (c scene) drip() {
	c.begin(len(c.body))
	for i := range c.body {
		if !c.send(c.body[i:i+1]) || !c.s.pause(c.r.Context(), cmp.Or(c.pause, time.Second)) {
			return
		}
	}
}

func (c scene) cutBody() {
	c.begin(len(c.body))
	c.send(c.body[:len(c.body)/2])
	panic(http.ErrAbortHandler)
}

func (c scene) notJSON() {
	c.body = []byte("<!doctype html><title>Welcome</title><p>Everything went well.</p>\n")
	c.header = map[string]string{"Content-Type": "text/html; charset=utf-8"}
	c.write(c.w)
}

// edit puts a value in place of each field that the body has, or takes it out when the value is "".
func (c scene) edit(value string, names ...string) {
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

func (c scene) inform() {
	for range 100 {
		c.w.WriteHeader(http.StatusEarlyHints)
	}
	c.write(c.w)
}

// extra sends, in one piece, its answer and another one that nobody asked for.
func (c scene) extra() {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	stray := strings.Replace(string(c.body), c.leadID, newID(0), 1)
	var b strings.Builder
	for _, body := range []string{string(c.body), stray} {
		b.WriteString("HTTP/1.1 " + strconv.Itoa(c.status) + " " + http.StatusText(c.status))
		b.WriteString("\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	}
	_, _ = io.WriteString(conn, b.String())
}

// bomb packs the body behind 64 MiB of blanks.
func (c scene) bomb() {
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

// endless sends blanks until the client or the sandbox goes.
func (c scene) endless() {
	c.w.WriteHeader(c.status)
	blanks := []byte(strings.Repeat(" ", 1<<16))
	for c.send(blanks) && c.s.pause(c.r.Context(), time.Millisecond) {
	}
}

// begin sends a head that promises a body of n bytes.
func (c scene) begin(n int) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(n))
	c.w.WriteHeader(c.status)
}

// send writes and flushes, and reports whether that went well.
func (c scene) send(b []byte) bool {
	_, err := c.w.Write(b)
	return err == nil && http.NewResponseController(c.w).Flush() == nil
}
