package fetch_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"leadferry/internal/fetch"
)

// store is object storage that misbehaves. Its zero value serves data as such storage does.
type store struct {
	data     []byte
	tag      string // ETag; "": none
	modified string // Last-Modified; "": none
	noRange  bool
	chunked  bool        // no length is told
	cuts     map[int]int // request, from 0 -> bytes after which its connection is cut
	answers  func(n int, w http.ResponseWriter, r *http.Request) (done bool)
	requests atomic.Int32
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(s.requests.Add(1)) - 1
	if s.answers != nil && s.answers(n, w, r) {
		return
	}
	if s.tag != "" {
		w.Header().Set("ETag", s.tag)
	}
	if s.modified != "" {
		w.Header().Set("Last-Modified", s.modified)
	}
	if match := r.Header.Get("If-Match"); match != "" && match != s.tag {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	from := 0
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil && !s.noRange {
		if from >= len(s.data) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(s.data)))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.data)-1, len(s.data)))
	} else {
		from = 0
	}
	rest := s.data[from:]
	if !s.chunked {
		w.Header().Set("Content-Length", strconv.Itoa(len(rest)))
	}
	if w.Header().Get("Content-Range") != "" {
		w.WriteHeader(http.StatusPartialContent)
	}
	w.(http.Flusher).Flush()
	if cut, found := s.cuts[n]; found {
		w.Write(rest[:min(cut, len(rest))])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Write(rest)
}

func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/in/leads.csv?X-Amz-Signature=geheim#part"
}

func read(address string, o fetch.Options) ([]byte, error) {
	f, err := fetch.Open(context.Background(), address, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

const (
	longAgo = "Mon, 02 Jan 2006 15:04:05 GMT"
	text    = "id,name\n1,Ann\n2,Bob\n3,Eve\n"
)

// Whatever breaks and however often, what is read is the file, from its first byte to its last.
func TestBrokenConnectionsAreGoneOnWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := bytes.Repeat([]byte(text), rapid.IntRange(1, 4000).Draw(t, "times"))
		s := &store{
			data: data, tag: rapid.SampledFrom([]string{"", `"v1"`, `W/"v1"`}).Draw(t, "tag"), modified: rapid.SampledFrom([]string{"", longAgo}).Draw(t, "modified"),
			noRange: rapid.Bool().Draw(t, "no range"), chunked: rapid.Bool().Draw(t, "chunked"), cuts: map[int]int{},
		}
		for n := range rapid.IntRange(0, 2).Draw(t, "cuts") {
			s.cuts[n] = rapid.OneOf(rapid.IntRange(0, len(data)), rapid.Just(len(data))).Draw(t, "cut")
		}
		server := httptest.NewServer(s)
		defer server.Close()
		got, err := read(server.URL, fetch.Options{})
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes of %d, %v", len(got), len(data), err)
		}
	})
}

func TestOtherVersionsAreRefused(t *testing.T) {
	other := strings.ReplaceAll(text, "Ann", "Ina")
	for _, test := range []struct {
		name          string
		before, after *store
	}{
		{"another ETag", &store{tag: `"1"`}, &store{tag: `"2"`}},
		{"another ETag, not asked", &store{tag: `"1"`, noRange: true}, &store{tag: `"2"`, noRange: true}},
		{"no ETag any more", &store{tag: `W/"1"`}, &store{}},
		{"another time", &store{modified: longAgo}, &store{modified: "Tue, 03 Jan 2006 15:04:05 GMT"}},
		{"nothing but other bytes", &store{}, &store{data: []byte(other)}},
		{"a prefix", &store{chunked: true}, &store{data: []byte(text[:9]), chunked: true}},
		{"shorter", &store{tag: `"1"`}, &store{tag: `"1"`, data: []byte(text[:5])}},
		{"longer", &store{tag: `"1"`}, &store{tag: `"1"`, data: []byte(text + text)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, s := range []*store{test.before, test.after} {
				if s.data == nil {
					s.data = []byte(text)
				}
			}
			test.before.cuts = map[int]int{0: 20}
			var asked atomic.Int32
			address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 1 {
					test.before.ServeHTTP(w, r)
				} else {
					test.after.ServeHTTP(w, r)
				}
			}))
			got, err := read(address, fetch.Options{})
			if err == nil || !strings.Contains(err.Error(), "changed while it was read") || !strings.HasPrefix(text, string(got)) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// What a server answers once, or for good, and what is said of it.
func TestAnswersThatAreNotTheFile(t *testing.T) {
	status := func(code int, header ...string) func(int, http.ResponseWriter, *http.Request) bool {
		return func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			return true
		}
	}
	raw := func(text string) func(int, http.ResponseWriter, *http.Request) bool {
		return func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			c, _, _ := w.(http.Hijacker).Hijack()
			defer c.Close()
			io.WriteString(c, text)
			return true
		}
	}
	for _, test := range []struct {
		name, want string
		answers    func(int, http.ResponseWriter, *http.Request) bool
	}{
		{"expired", "presigned addresses expire", status(403)},
		{"gone", "there is no such file (HTTP 404)", status(404)},
		{"nothing", "HTTP 204, which is not a whole file", status(204)},
		{"a part that nobody asked for", "HTTP 206, which is not a whole file", status(206, "Content-Range", "bytes 0-1/9")},
		{"busy for long", "HTTP 503", status(503, "Retry-After", "3600")},
		{"another encoding", "in an encoding that was not asked for", status(200, "Content-Encoding", "br", "Content-Length", "0")},
		{"elsewhere, nowhere", "names no address", status(302)},
		{"elsewhere, plain", "not https://", status(302, "Location", "http://files.example.com/x")},
		{"elsewhere, a file", "names no address", status(302, "Location", "file:///etc/passwd")},
		{"round and round", "more than 5 times", status(302, "Location", "?X-Amz-Signature=geheim")},
		{"elsewhere, unreadable", "names no address", status(302, "Location", "https://[::1/leads.csv?X-Amz-Signature=geheim")},
		{"no HTTP", "cannot be reached", raw("HTPP?X-Amz-Signature=geheim\r\n\r\n")},
		{"no HTTP any more", "its answer is not HTTP", raw("HTTP/1.1 200 OK\r\nLocation https //files?X-Amz-Signature=geheim\r\n\r\n")},
		{"no length", "cannot be reached", raw("HTTP/1.1 200 OK\r\nContent-Length: geheim\r\n\r\n")},
		{"another way to send", "cannot be reached", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: geheim\r\n\r\n")},
		{"shorter than it said", "it is shorter than it was", func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n > 0 {
				w.Header().Set("ETag", `"1"`)
				w.Header().Set("Content-Range", "bytes */9")
				w.WriteHeader(416)
			}
			return n > 0
		}},
		{"a head without end", "cannot be reached", status(200, "X-Long", strings.Repeat("x", 1<<20))},
		{"no end told", "does not say where the file ends", raw("HTTP/1.0 200 OK\r\n\r\n" + text)},
		{"the rest from elsewhere", "sent something else", func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n > 0 {
				w.Header().Set("ETag", `"1"`)
				w.Header().Set("Content-Range", "bytes 5-26/27")
				w.WriteHeader(206)
			}
			return n > 0
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := serve(t, &store{data: []byte(text), tag: `"1"`, answers: test.answers, cuts: map[int]int{0: 9}})
			_, err := read(address, fetch.Options{Patience: 50 * time.Millisecond})
			var fault *fetch.Error
			if !errors.As(err, &fault) {
				t.Fatalf("no *fetch.Error: %v", err)
			}
			if said := fault.Text + " " + fault.Advice; !strings.Contains(said, test.want) || strings.Contains(said, "geheim") {
				t.Errorf("%q does not say %q, or says too much", said, test.want)
			}
		})
	}
}

func TestServersThatRecover(t *testing.T) {
	for _, code := range []int{408, 429, 500, 503} {
		s := &store{data: []byte(text), tag: `"1"`, cuts: map[int]int{2: 9}}
		s.answers = func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 2 || n > 3 {
				return false
			}
			w.WriteHeader(code)
			return true
		}
		if got, err := read(serve(t, s), fetch.Options{}); err != nil || string(got) != text {
			t.Errorf("%d: %q, %v", code, got, err)
		}
	}
}

func TestSilenceEndsAConnection(t *testing.T) {
	hold := make(chan struct{})
	s := &store{data: []byte(text), tag: `"1"`}
	s.answers = func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n == 0 {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			w.Header().Set("ETag", s.tag)
			io.WriteString(w, text[:9])
			w.(http.Flusher).Flush()
			<-hold
		}
		return n == 0
	}
	address := serve(t, s)
	defer close(hold)
	if got, err := read(address, fetch.Options{Stall: 100 * time.Millisecond}); err != nil || string(got) != text {
		t.Errorf("%q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.requests.Store(0)
	f, err := fetch.Open(ctx, address, fetch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(f, make([]byte, 9)); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// A redirect is a request of its own: it carries no address of before, and neither user nor password.
func TestRedirects(t *testing.T) {
	var heads []http.Header
	last := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heads = append(heads, r.Header.Clone())
		(&store{data: []byte(text), tag: `"1"`}).ServeHTTP(w, r)
	}))
	defer last.Close()
	first := serve(t, http.RedirectHandler(last.URL+"/real.csv?sig=2", http.StatusTemporaryRedirect))
	u, err := url.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("ann", "geheim")
	got, err := read(u.String(), fetch.Options{Authorities: []*x509.Certificate{last.Certificate()}, Agent: "leadferry/test"})
	if err != nil || string(got) != text || len(heads) != 1 {
		t.Fatalf("%q, %v, %d requests", got, err, len(heads))
	}
	for name, want := range map[string]string{"Referer": "", "Authorization": "", "Cookie": "", "Accept-Encoding": "identity", "User-Agent": "leadferry/test"} {
		if got := heads[0].Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if _, err := read(last.URL, fetch.Options{}); err == nil || !strings.HasSuffix(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("an unknown authority is trusted: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://files.example.com/x?sig=geheim": "plain http://", "s3://bucket/geheim.csv": "aws s3 presign", "gs://b/x": "gcloud", "file:///etc/x": "by its path",
		"gopher://x/geheim": "https:// addresses can be read", "https://": "not an address", "https://[::1": "not an address", "https:///x?geheim": "not an address",
	} {
		_, err := read(address, fetch.Options{})
		var fault *fetch.Error
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if said := fault.Text + "; " + fault.Advice; !strings.Contains(said, want) || strings.Contains(said, "geheim") {
			t.Errorf("%s: %s", address, said)
		}
	}
	for name, want := range map[string]bool{"https://x/y": true, "S3://b": true, "leads.csv": false, `C:\leads.csv`: false, "a b://c": false, "://x": false} {
		if got := fetch.IsAddress(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for address, want := range map[string]string{
		"https://ann:geheim@x.de:8443/a%2Fb/c.csv?sig=geheim#geheim": "https://x.de:8443/a%2Fb/c.csv",
		"https://ann:ge%heim@x.de/c.csv?geheim":                      "https://x.de/c.csv",
	} {
		if got := fetch.Shown(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
