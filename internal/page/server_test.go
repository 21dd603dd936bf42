package page

import (
	"bufio"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// shown is a site of one page, whose text can be changed.
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, data
}

// browser keeps cookies and follows no redirect.
func browser(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	own := new(http.Transport)
	t.Cleanup(own.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: own, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func get(t *testing.T, c *http.Client, address string, change ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(r)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// admitted is a browser that has opened the address with the token, and the address without.
func admitted(t *testing.T, s *Server) (*http.Client, string) {
	t.Helper()
	c := browser(t)
	answer, _ := get(t, c, s.URL())
	to, err := answer.Location()
	if err != nil || answer.StatusCode != http.StatusSeeOther {
		t.Fatal(answer.Status, err)
	}
	return c, to.String()
}

func TestTokenIsExchangedForACookie(t *testing.T) {
	s, data := begin(t, time.Hour)
	data.text.Store("<b>rows</b>")
	answer, _ := get(t, browser(t), s.URL())
	cookie := answer.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Domain != "" || strings.Contains(s.URL(), cookie.Value) {
		t.Errorf("the cookie is %v", cookie)
	}
	c, address := admitted(t, s)
	if strings.Contains(address, "token") {
		t.Errorf("the token stays in %s", address)
	}
	answer, body := get(t, c, address)
	if answer.StatusCode != http.StatusOK || !strings.Contains(body, "&lt;b&gt;rows") {
		t.Errorf("%s: %s", answer.Status, body)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": servedPolicy(), "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if strings.Count(s.URL(), "token=") != 1 || len(s.token) < 32 {
		t.Errorf("the address is %s", s.URL())
	}
}

// faults of a browser that another site has led here.
func TestNobodyElseIsServed(t *testing.T) {
	s, data := begin(t, time.Hour)
	data.text.Store("SECRET")
	c, address := admitted(t, s)
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	with := func(method string) func(*http.Request) { return func(r *http.Request) { r.Method = method } }
	for name, try := range map[string]struct {
		client  *http.Client
		address string
		change  func(*http.Request)
		want    int
	}{
		"no cookie":            {browser(t), address, host(""), http.StatusForbidden},
		"a wrong token":        {browser(t), address + "?token=x", host(""), http.StatusForbidden},
		"another name":         {c, address, host("evil.example"), http.StatusMisdirectedRequest},
		"another port":         {c, address, host("127.0.0.1:1"), http.StatusMisdirectedRequest},
		"another name, token":  {c, s.URL(), host("evil.example"), http.StatusMisdirectedRequest},
		"a POST":               {c, address, with("POST"), http.StatusMethodNotAllowed},
		"a HEAD":               {c, address, with("HEAD"), http.StatusMethodNotAllowed},
		"OPTIONS":              {c, address, with("OPTIONS"), http.StatusMethodNotAllowed},
		"a body":               {c, address, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")) }, http.StatusRequestEntityTooLarge},
		"an icon":              {c, address + "favicon.ico", host(""), http.StatusNoContent},
		"no such page":         {c, address + "etc/passwd", host(""), http.StatusNotFound},
		"no such page to read": {c, address + "follow/x", host(""), http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			answer, body := get(t, try.client, try.address, try.change)
			if answer.StatusCode != try.want || strings.Contains(body, "SECRET") || answer.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("%s: %s", answer.Status, body)
			}
		})
	}
}

func TestRedirectLeadsNowhereElse(t *testing.T) {
	s, _ := begin(t, time.Hour)
	base := strings.TrimSuffix(s.URL(), "/?token="+s.token)
	for _, path := range []string{"//evil.example/", "/%5cevil.example/", "/\\/evil.example", "/%2f%2fevil.example/"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s?token=%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, s.token, strings.TrimPrefix(base, "http://"))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		conn.Close()
		to := answer.Header.Get("Location")
		if u, err := url.Parse(base); err != nil || answer.StatusCode == http.StatusSeeOther && resolve(t, u, to).Host != u.Host || strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\") {
			t.Errorf("%s leads to %q", path, to)
		}
	}
}

func resolve(t *testing.T, base *url.URL, to string) *url.URL {
	t.Helper()
	u, err := base.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1", "", "8080", "localhost.example:0", "127.0.0.1:99999"} {
		if s, err := Serve(addr, new(shown).site); err == nil {
			s.Close()
			t.Errorf("%q is served", addr)
		}
	}
}

// event is one Server-Sent Event.
func event(t *testing.T, r *bufio.Reader) (name, data string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		switch line = strings.TrimSuffix(line, "\n"); {
		case line == "":
			return name, data
		case strings.HasPrefix(line, "event: "):
			name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data = line[len("data: "):]
		}
	}
}

func TestReaderFollowsUntilTheLastWord(t *testing.T) {
	s, data := begin(t, time.Millisecond)
	data.text.Store("one\nline")
	c, address := admitted(t, s)
	answer, err := c.Get(address + "follow/?q=oak")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	r := bufio.NewReader(answer.Body)
	if name, got := event(t, r); name != "" || !strings.Contains(got, `one\nlineoak`) {
		t.Fatalf("%s: %s", name, got)
	}
	data.text.Store("two")
	for {
		name, got := event(t, r)
		if name == "same" {
			continue
		}
		if name != "" || !strings.Contains(got, "two") {
			t.Fatalf("%s: %s", name, got)
		}
		break
	}
	data.text.Store("last")
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for {
		name, got := event(t, r)
		if name == "end" {
			if !strings.Contains(got, "last") {
				t.Errorf("the last word is %s", got)
			}
			break
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// Many who connect, or read, and never take an answer: the page is served all the same, and the end comes.
func TestStalledReadersAreDropped(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, data := begin(t, time.Hour)
	data.text.Store(strings.Repeat("x", 1<<20)) // more than the system takes for a reader
	c, address := admitted(t, s)
	addr := s.listener.Addr().String()
	cookie := s.cookie + "=" + s.session
	for i := range maxConnections - 4 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 { // follows, and never reads
			fmt.Fprintf(conn, "GET /follow/ HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", addr, cookie)
		} else { // half a head
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHo")
		}
	}
	if answer, _ := get(t, c, address); answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	c.CloseIdleConnections()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
