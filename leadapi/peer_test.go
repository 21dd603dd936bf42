package leadapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"leadferry/internal/testsupport/must"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http logs answers that nobody asked for
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		os.Unsetenv(name) // tests must not depend on this machine's certificates
	}
	goleak.VerifyTestMain(m)
}

const (
	secret  = "s3cr+t/of&the=client%0123456789"
	access  = "access.token-0123456789abcdef"
	refresh = "refresh+token/0123456789abcdef"
)

func config(address string) Config {
	return Config{
		BaseURL: address, LeadsURL: address, TrunkID: "trunk-1", ClientID: "client-1",
		ClientSecret: secret, Concurrency: 4, Timeout: 5 * time.Second,
	}
}

func connect(t testing.TB, c Config) *Client {
	t.Helper()
	client, err := New(c)
	must.Do(t, err)
	t.Cleanup(client.Close)
	return client
}

func signedIn(t testing.TB, c Config) *Client {
	t.Helper()
	return withToken(connect(t, c))
}

func withToken(client *Client) *Client {
	soon := time.Now().Add(time.Hour)
	client.keeper.token = &oauth2.Token{AccessToken: access, Expiry: soon}
	client.keeper.renewAt = soon
	return client
}

// peer is a service at the level of bytes. Each connection gets its own call of serve.
type peer struct {
	net.Listener
	wait  sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]bool
	posts int          // requests that began to arrive
	met   atomic.Int64 // connections that began
}

func listen(t testing.TB, serve func(p *peer, c net.Conn)) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	return play(t, l, serve)
}

func play(t testing.TB, l net.Listener, serve func(p *peer, c net.Conn)) *peer {
	p := &peer{Listener: l, conns: map[net.Conn]bool{}}
	p.wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.met.Add(1)
			p.mu.Lock()
			p.conns[c] = true
			p.mu.Unlock()
			p.wait.Go(func() { defer c.Close(); serve(p, c) })
		}
	})
	t.Cleanup(p.end)
	return p
}

// end closes all connections and waits for their goroutines.
func (p *peer) end() {
	p.Close()
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wait.Wait()
}

func (p *peer) address() string { return "http://" + p.Addr().String() }

func (p *peer) seen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.posts
}

func (p *peer) next(r *bufio.Reader) (string, error) {
	if _, err := r.Peek(1); err != nil {
		return "", err
	}
	req, err := http.ReadRequest(r)
	p.mu.Lock()
	p.posts++
	p.mu.Unlock()
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(req.Body)
	return string(body), err
}

// answers returns a peer that keeps connections open and gives each request the same answer, with another lead ID.
func answers(t testing.TB, answer string) *peer {
	return listen(t, func(p *peer, c net.Conn) {
		r := bufio.NewReader(c)
		for n := 0; ; {
			body, err := p.next(r)
			if err != nil {
				return
			}
			if _, err := io.WriteString(c, another(answer, n)); err != nil {
				return
			}
			if body != "" {
				n++
			}
		}
	})
}

// another puts a lead ID for the n-th create of a connection, from 0, into an answer. It repeats after nine creates.
func another(answer string, n int) string {
	return strings.Replace(answer, `"leadID":"lead-1"`, `"leadID":"lead-`+string("123456789"[n%9])+`"`, 1)
}

func answerText(status int, body string, headers ...string) string {
	text := fmt.Sprintf("HTTP/1.1 %03d x\r\nContent-Length: %d\r\n", status, len(body))
	for _, h := range headers {
		text += h + "\r\n"
	}
	return text + "\r\n" + body
}

const createdBody = `{"leadID":"lead-1","assignedOrganizationID":"org-1","assignedLocationName":"Main St"}`

func someLead() *CreateRequest {
	return &CreateRequest{OrganizationID: "org-1", Content: []ContentField{{Key: "name", Value: "Ann"}}, TypeKey: "form", TypeLabel: "Form"}
}

// tryCreate makes one create and returns its error, or nil.
func tryCreate(t testing.TB, c *Client) *Error {
	t.Helper()
	_, err := c.Create(context.Background(), someLead())
	if err == nil {
		return nil
	}
	e, ok := err.(*Error)
	if !ok {
		t.Fatalf("the error is a %T, not an *Error: %v", err, err)
	}
	return e
}

// succeeds makes one create, which must not fail.
func succeeds(t testing.TB, c *Client) {
	t.Helper()
	if e := tryCreate(t, c); e != nil {
		t.Error(e)
	}
}
