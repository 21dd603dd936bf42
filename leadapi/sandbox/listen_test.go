package sandbox

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
)

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

func TestClosingAnswersWhatIsLate(t *testing.T) {
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
