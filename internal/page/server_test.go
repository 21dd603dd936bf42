package page

import (
	"bufio"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"leadferry/internal/testsupport/must"
)

// shown is a site with one page. A test can change its text.
type shown struct{ text atomic.Value }

func (s *shown) site(at *url.URL) (View, bool) {
	if at.Path != "/" {
		return View{}, false
	}
	text, _ := s.text.Load().(string)
	return View{Title: "Title", Main: template.HTML("<p id=a>" + template.HTMLEscapeString(text+at.Query().Get("q")) + "</p>")}, true
}

func begin(t *testing.T, every time.Duration) (*Server, *shown) {
	t.Helper()
	data := new(shown)
	s, err := serve("127.0.0.1:0", data.site, every)
	must.Do(t, err)
	t.Cleanup(func() { s.Close() })
	return s, data
}

func get(t *testing.T, method, address string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, address, nil)
	must.Do(t, err)
	answer, err := http.DefaultClient.Do(r)
	must.Do(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must.Do(t, err)
	return answer, string(body)
}

// Without its token, an address shows nothing. The headers keep the page from loading or telling anything elsewhere.
func TestPageIsServedOnlyUnderItsSecretAddress(t *testing.T) {
	s, data := begin(t, time.Hour)
	data.text.Store("<b>SECRET</b>")
	answer, body := get(t, http.MethodGet, s.URL()+"?q=oak")
	if answer.StatusCode != http.StatusOK || !strings.Contains(body, "&lt;b&gt;SECRET&lt;/b&gt;oak") || strings.Contains(body, path.Base(s.URL())) {
		t.Errorf("%s: %s", answer.Status, body)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": servedPolicy(), "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	base := strings.TrimSuffix(s.URL(), path.Base(s.URL())+"/")
	if len(s.URL())-len(base) < 26 {
		t.Errorf("a token too short: %s", s.URL())
	}
	for _, try := range []struct {
		method, address string
		want            int
	}{
		{"GET", base, http.StatusNotFound},
		{"GET", base + "?token=x", http.StatusNotFound},
		{"GET", base + strings.Repeat("A", 26) + "/", http.StatusNotFound},
		{"GET", base + "favicon.ico", http.StatusNoContent},
		{"GET", s.URL() + "etc/passwd", http.StatusNotFound},
		{"GET", s.URL() + "%2e%2e/%2e%2e/etc/passwd", http.StatusNotFound},
		{"POST", s.URL(), http.StatusMethodNotAllowed},
		{"OPTIONS", s.URL(), http.StatusMethodNotAllowed},
	} {
		if answer, body := get(t, try.method, try.address); answer.StatusCode != try.want || strings.Contains(body, "SECRET") {
			t.Errorf("%s %s: %s: %s", try.method, try.address, answer.Status, body)
		}
	}
}

func TestServeRefusesAddressesBesidesLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1", "", "8080", "localhost.example:0", "127.0.0.1:99999"} {
		if s, err := Serve(addr, new(shown).site); err == nil {
			s.Close()
			t.Errorf("%q is served", addr)
		}
	}
}

// followed returns the stream of events that a browser gets from an address.
func followed(t *testing.T, address string) *bufio.Reader {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	must.Do(t, err)
	r.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	must.Do(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	return bufio.NewReader(answer.Body)
}

func TestFollowerGetsEachChangeAndTheEnd(t *testing.T) {
	s, data := begin(t, time.Millisecond)
	data.text.Store("one\nline")
	r := followed(t, s.URL()+"?q=oak")
	hears := func(name, text string) {
		t.Helper()
		var lines [3]string
		for i := range lines {
			line, err := r.ReadString('\n')
			must.Do(t, err)
			lines[i] = line
		}
		if lines[0] != "event: "+name+"\n" || !strings.Contains(lines[1], text) || lines[2] != "\n" {
			t.Fatalf("%q, want %s with %s", lines, name, text)
		}
	}
	hears("message", `one\nlineoak`)
	data.text.Store("two")
	hears("message", "two")
	data.text.Store("three")
	hears("message", "three")
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	hears("end", "three")
	must.Do(t, <-closed)
}

// Many clients never read their answer, or never finish their request. Others still get the page, and Close returns.
func TestStalledClientsBlockNeitherOthersNorClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, data := begin(t, time.Hour)
	data.text.Store(strings.Repeat("x", 1<<20)) // more than the system buffers for a reader
	at, err := url.Parse(s.URL())
	must.Do(t, err)
	for i := range maxConnections - 4 {
		conn, err := net.Dial("tcp", at.Host)
		must.Do(t, err)
		defer conn.Close()
		if i%2 == 0 { // asks for the stream and never reads it
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", at.Path, at.Host)
		} else { // half a request
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHo")
		}
	}
	if answer, _ := get(t, http.MethodGet, s.URL()); answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	must.Do(t, s.Close())
}
