package leadapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// unsteady is a service that treats each create in a random way, and notes which creates it applied.
type unsteady struct {
	applied sync.Map // by row
	reused  atomic.Int64
}

var rowOf = regexp.MustCompile(`row-\d+`)

func (u *unsteady) serve(c net.Conn) {
	if rand.N(40) == 0 { // answers before any request, and closes
		io.WriteString(c, answerText(503, "{}"))
		return
	}
	r := bufio.NewReader(c)
	for n := 0; ; n++ {
		if _, err := r.Peek(1); err != nil {
			return
		}
		if n == 1 {
			u.reused.Add(1)
		}
		if !u.answer(c, r) {
			return
		}
	}
}

// answer treats a request in one of its ways, and reports whether the connection stays open.
func (u *unsteady) answer(c net.Conn, r *bufio.Reader) bool {
	act := rand.N(16) // 11 to 15 are right answers
	if act == 0 {     // closes in the middle of the request
		io.CopyN(io.Discard, r, rand.N(int64(400)))
		reset(c, rand.N(2) == 0)
		return false
	}
	request, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	if act == 1 { // refuses before it has read the body, and closes
		io.WriteString(c, answerText(413, "{}", "Connection: close"))
		return false
	}
	body, err := io.ReadAll(request.Body)
	row := string(rowOf.Find(body))
	if err != nil || row == "" {
		return false
	}
	own := answerText(201, `{"leadID":"lead-of-`+row+`"}`)
	if act == 2 {
		_, err := io.WriteString(c, answerText([]int{400, 403, 421, 422, 429}[rand.N(5)], "{}"))
		return err == nil
	}
	u.applied.Store(row, true)
	switch act {
	case 3: // applied, without an answer
		reset(c, rand.N(2) == 0)
		return false
	case 4: // silent until the client gives up
		io.Copy(io.Discard, c)
		return false
	case 5: // cuts its answer
		io.WriteString(c, own[:rand.N(len(own))])
		reset(c, rand.N(2) == 0)
		return false
	case 6: // an answer too many
		_, err = io.WriteString(c, own+answerText(201, `{"leadID":"lead-of-nobody"}`))
	case 7: // late, perhaps too late
		time.Sleep(rand.N(80 * time.Millisecond))
		_, err = io.WriteString(c, own)
	case 8: // informational answers first, in pieces
		for _, piece := range []string{"HTTP/1.1 100 x\r\n", "\r\nHTTP/1.1 103 x\r\nLink: y\r\n\r\n", own[:20], own[20:]} {
			if _, err = io.WriteString(c, piece); err != nil {
				return false
			}
		}
	case 9: // another answer while the connection is idle
		if _, err = io.WriteString(c, own); err == nil {
			time.Sleep(rand.N(2 * time.Millisecond))
			io.WriteString(c, answerText(408, "{}"))
		}
		return false
	case 10: // an answer that leaves doubt
		_, err = io.WriteString(c, answerText([]int{200, 302, 408, 500, 502, 503}[rand.N(6)], "{}", "Retry-After: 1"))
	default:
		_, err = io.WriteString(c, own)
	}
	return err == nil
}

func reset(c net.Conn, hard bool) {
	if upon, ok := c.(*tls.Conn); ok {
		c = upon.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok && hard {
		tcp.SetLinger(0)
	}
	c.Close()
}

// Whatever the peer does, over any kind of connection, and whenever the caller gives up: a create reported as not
// applied was not applied, and no row gets the lead of another row. faults 34-47
func TestAnUnsteadyServiceNeverMisleadsACreate(t *testing.T) {
	t.Parallel()
	known := serve(t, true, nil)
	const rounds, callers, calls = 10, 8, 12
	over := func(version uint16) func(net.Conn) net.Conn {
		return func(c net.Conn) net.Conn {
			return tls.Server(c, &tls.Config{Certificates: known.TLS.Certificates, MaxVersion: version})
		}
	}
	plain := func(c net.Conn) net.Conn { return c }
	opens := func(net.Conn, *http.Request) string { // sometimes a wrong or incomplete answer
		own := "HTTP/1.1 200 OK\r\n\r\n"
		return []string{answerText(502, "{}"), own + answerText(201, createdBody), own[:9], "\x16\x03\x03", 19: ""}[rand.N(20)]
	}
	for name, way := range map[string]struct {
		upon   func(net.Conn) net.Conn
		scheme string
		proxy  func() string
	}{
		"plain":            {plain, "http", nil},
		"TLS 1.2":          {over(tls.VersionTLS12), "https", nil},
		"TLS 1.3":          {over(tls.VersionTLS13), "https", nil},
		"CONNECT":          {plain, "http", func() string { return connectProxy(t, opens).address() }},
		"TLS over CONNECT": {over(0), "https", func() string { return connectProxy(t, opens).address() }},
		"SOCKS5":           {plain, "http", func() string { return "socks5://" + socksProxy(t, "", "", 0).Addr().String() }},
		"TLS over SOCKS5":  {over(0), "https", func() string { return "socks5://" + socksProxy(t, "", "", 0).Addr().String() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var u unsteady
			p := listen(t, func(_ *peer, c net.Conn) {
				upon := way.upon(c)
				defer upon.Close()
				u.serve(upon)
			})
			c := config(way.scheme + "://" + p.Addr().String())
			c.Authorities, c.Timeout = []*x509.Certificate{known.Certificate()}, 60*time.Millisecond
			if way.proxy != nil {
				c = through(t, c, way.proxy())
			}
			var rows, made, no, maybe atomic.Int64
			var unapplied sync.Map
			for range rounds { // each with a new client, which has not learnt yet that the peer closes used connections
				client := withToken(connect(t, c))
				var wait sync.WaitGroup
				for range callers {
					wait.Go(func() {
						for range calls {
							row := fmt.Sprintf("row-%d", rows.Add(1))
							ctx, cancel := context.Background(), context.CancelFunc(func() {})
							if rand.N(3) == 0 {
								ctx, cancel = context.WithTimeout(ctx, rand.N(10*time.Millisecond))
							}
							r := someLead()
							r.Content = []ContentField{{Key: "row", Value: row}, {Key: "text", Value: string(bytes.Repeat([]byte("x"), rand.N(20000)))}}
							got, err := client.Create(ctx, r)
							cancel()
							e, _ := errors.AsType[*Error](err)
							switch {
							case err == nil && got.LeadID != "lead-of-"+row:
								t.Errorf("%s gets the lead %s", row, got.LeadID)
							case err == nil:
								made.Add(1)
							case e.Applied == No:
								no.Add(1)
								unapplied.Store(row, e)
							default:
								maybe.Add(1)
							}
						}
					})
				}
				wait.Wait()
			}
			p.end()
			unapplied.Range(func(row, e any) bool {
				if _, wrong := u.applied.Load(row); wrong {
					t.Errorf("%s was applied, but its error says that it was not: %v", row, e)
				}
				return true
			})
			t.Logf("%d creates: %d made, %d not applied, %d in doubt; %d connections carried more than one", rows.Load(), made.Load(), no.Load(), maybe.Load(), u.reused.Load())
			if made.Load() == 0 || no.Load() == 0 || maybe.Load() == 0 {
				t.Error("an outcome did not occur, so this test shows nothing")
			}
		})
	}
}
