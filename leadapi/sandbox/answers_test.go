package sandbox

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/internal/testsupport/must"
)

// serve opens a sandbox with faults on a port, and returns a client for it.
func serve(t *testing.T, faults string) (*Server, *Listener, *http.Client) {
	t.Helper()
	s := open(t, Options{Faults: faults})
	l, err := Listen("127.0.0.1:0", s, 0)
	must.Do(t, err)
	transport := &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: 4 << 20}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		must.Do(t, l.Close())
	})
	return s, l, &http.Client{Transport: transport}
}

func post(ctx context.Context, s *Server, l *Listener, c *http.Client) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", l.URL()+"/v1/"+TrunkID, strings.NewReader(direct(`{"name":"Ann"}`)))
	if err != nil {
		return nil, err
	}
	r.GetBody = nil
	r.Header.Set("Authorization", signIn(s))
	r.Header.Set("Content-Type", "application/json")
	return c.Do(r)
}

// read sends a create and returns the answer and its body, as far as it came.
func read(t *testing.T, s *Server, l *Listener, c *http.Client) (*http.Response, string, error) {
	t.Helper()
	res, err := post(t.Context(), s, l, c)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

func TestAnswersAreSpoiledAfterStoring(t *testing.T) { // faults 38, 66–70
	for fault, is := range map[string]func(res *http.Response, body string, err error) bool{
		"cut-body": func(res *http.Response, body string, err error) bool {
			return errors.Is(err, io.ErrUnexpectedEOF) && len(body) > 0 && int64(len(body)) == res.ContentLength/2
		},
		"not-json": func(res *http.Response, body string, err error) bool {
			return err == nil && strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") && body[0] == '<'
		},
		"no-id": func(_ *http.Response, body string, err error) bool {
			return err == nil && strings.HasPrefix(body, `{"leadID":"","assigned`)
		},
		"gzip": func(res *http.Response, body string, err error) bool {
			z, broken := gzip.NewReader(strings.NewReader(body))
			return err == nil && broken == nil && res.Header.Get("Content-Encoding") == "gzip" && holdsID(z)
		},
	} {
		s, l, c := serve(t, fault+"#1")
		res, body, err := read(t, s, l, c)
		if res == nil || res.StatusCode != 201 || !is(res, body, err) {
			t.Fatalf("%v: %v %.200q %v", fault, res, body, err)
		}
		must.Same(t, 1, len(ledger(t, s)), "leads are stored", fault)
	}
}

func holdsID(r io.Reader) bool {
	b, err := io.ReadAll(r)
	return err == nil && strings.Contains(string(b), `{"leadID":"`)
}

// With the fault "close" the answer does not announce that the connection closes behind it.
func TestConnectionIsClosedUnannounced(t *testing.T) {
	s, l, _ := serve(t, "close#1")
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), "http://"))
	must.Do(t, err)
	defer conn.Close()
	body := direct(`{}`)
	fmt.Fprintf(conn, "POST /v1/%s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		TrunkID, signIn(s), len(body), body)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 201 || res.Close || !holdsID(res.Body) {
		t.Fatal(res, err)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("then comes %v, not the end", err)
	}
}

func TestAnAnswerNamesAnotherLead(t *testing.T) { // faults 66, 69
	s := open(t, Options{Faults: "create.other-id#2,update.other-id#1"})
	first := createLead(t, s, `{}`)
	must.Same(t, first, createLead(t, s, `{}`), "lead")
	second := ledger(t, s)[1].ID
	w := ask(s, "PATCH", "/v3/lead/"+second, `{"ExternalID":"x"}`, "Authorization", signIn(s))
	if got := decode(t, w)["ID"]; got != first || ledger(t, s)[1].ExternalID != "x" {
		t.Errorf("ID is %v, want %s", got, first)
	}
}

func TestAHangingRequestEndsWithItsClient(t *testing.T) { // faults 39, 46
	for fault, leads := range map[string]int{"hang": 0, "hang-stored": 1, "slow": 1} {
		s, l, c := serve(t, fault+"#1:1h")
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			awaitCount(ctx, s)
			cancel()
		})
		if _, err := post(ctx, s, l, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", fault, err)
		}
		cancel()
		group.Wait()
		must.Same(t, leads, len(ledger(t, s)), fault, "leads are stored")
	}
}

// awaitCount returns once the sandbox has counted a create, which it does just before it answers.
func awaitCount(ctx context.Context, s *Server) {
	for s.Counts()["create"] == nil && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

func TestAnswersComeLate(t *testing.T) { // faults 39, 44
	for _, tt := range []struct {
		options Options
		want    time.Duration
	}{
		{Options{Faults: "slow#1"}, 3 * time.Second},
		{Options{Faults: "slow#1:90s"}, 90 * time.Second},
		{Options{Latency: 20 * time.Millisecond}, 20 * time.Millisecond},
		{Options{Latency: time.Second, Faults: "slow#1"}, 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, tt.options)
			start := time.Now()
			w := answered(s)
			must.Same(t, []any{tt.want, 201}, []any{time.Since(start), w.Code}, tt.options, "after")
		})
	}
}

func TestOnlyThisMachineIsServed(t *testing.T) {
	s := open(t, Options{})
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1", "127.0.0.1:x", ""} {
		if l, err := Listen(addr, s, 0); err == nil {
			_ = l.Close()
			t.Errorf("%q is served", addr)
		}
	}
	l, err := Listen("localhost:0", s, 0)
	must.Do(t, err)
	if !strings.HasPrefix(l.URL(), "http://") || strings.HasSuffix(l.URL(), ":0") || strings.HasSuffix(l.URL(), "/") {
		t.Errorf("the URL is %s", l.URL())
	}
	must.Do(t, l.Close())
	if _, err := http.Get(l.URL()); err == nil {
		t.Error("a closed listener answers")
	}
}

func TestClosingAnswersSlowRequests(t *testing.T) {
	s := open(t, Options{Faults: "slow#1:1h"})
	l, err := Listen("127.0.0.1:0", s, 0)
	must.Do(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ended := make(chan error)
	go func() {
		res, err := post(context.Background(), s, l, &http.Client{Transport: transport})
		if err == nil {
			err = res.Body.Close()
		}
		ended <- err
	}()
	awaitCount(t.Context(), s)
	must.Do(t, l.Close())
	must.Do(t, <-ended)
}

func TestARestingConnectionIsClosed(t *testing.T) {
	l, err := Listen("127.0.0.1:0", open(t, Options{}), 10*time.Millisecond)
	must.Do(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), "http://"))
	must.Do(t, err)
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn) // ends when the sandbox closes
	if err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 404 ")) || bytes.Contains(b, []byte("Connection: close")) {
		t.Errorf("%s %v", b, err)
	}
}
