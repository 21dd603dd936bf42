package leadapi

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/internal/testsupport"
	"leadferry/internal/testsupport/must"
)

// serve starts a service with the handler h. If secure, it uses TLS and offers HTTP/2, too.
func serve(t testing.TB, secure bool, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// trust makes a client accept only the certificate of the test service.
func trust(c *Client, s *httptest.Server) *Client {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for _, h := range []*host{c.general, c.leads} {
		if h.tls != nil {
			h.tls.RootCAs = roots
		}
	}
	return c
}

func TestHTTP2PeerIsSpokenToWithHTTP1(t *testing.T) { // faults 41, m1, m2, m3
	var protocols sync.Map
	s := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		protocols.Store(r.Proto, true)
		w.WriteHeader(201)
		io.WriteString(w, createdBody)
	})
	succeeds(t, trust(signedIn(t, config(s.URL)), s))
	protocols.Range(func(p, _ any) bool {
		must.Same(t, any("HTTP/1.1"), p, "spoke")
		return true
	})
}

// faults m3, m4, m5: the head has exactly these lines. None of them allows a proxy to repeat the request.
func TestRequestHeadsAreExactlyThese(t *testing.T) {
	c := signedIn(t, config("https://Service.example:8443/base"))
	common := " HTTP/1.1\r\nHost: service.example:8443\r\nUser-Agent: leadferry\r\nAccept: application/json\r\nAccept-Encoding: identity\r\nContent-Length: "
	for _, test := range []struct {
		request request
		want    string
	}{
		{request{method: "POST", host: c.leads, target: c.create, content: new(UpdateRequest).AppendJSON, bearer: access}, "POST /base/v1/trunk-1" + common + "2\r\nContent-Type: application/json\r\nAuthorization: Bearer " + access + "\r\n\r\n{}"},
		{request{method: "POST", host: c.general, target: "/x?y=z"}, "POST /x?y=z" + common + "0\r\n\r\n"},
	} {
		to := conn{restLimit: restLimit}
		c.write(&to, &test.request)
		must.Same(t, test.want, to.request.String(), "head")
	}
}

func TestNothingLeavesWithoutAConnection(t *testing.T) { // faults 33, 34
	plain := listen(t, func(p *peer, c net.Conn) { io.WriteString(c, answerText(400, "this port speaks http")) })
	hangUp := listen(t, func(p *peer, c net.Conn) {})
	outdated := overTLS(t, &tls.Config{Certificates: []tls.Certificate{*authority(t, "any")}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	for name, address := range map[string]string{
		"connection refused":    "http://127.0.0.1:1",
		"unknown name":          "https://service.invalid",
		"no TLS":                "https://" + plain.Addr().String(),
		"TLS 1.1":               "https://" + outdated.Addr().String(),
		"closed in a handshake": "https://" + hangUp.Addr().String(),
	} {
		e := tryCreate(t, signedIn(t, config(address)))
		if e == nil || e.Applied != No || e.Reason != ReasonConnect || e.Status != 0 {
			t.Fatalf("%v: %v, want not applied", name, e)
		}
	}
	if outdated.seen() > 0 {
		t.Error("a request left over TLS 1.1")
	}
}

func TestRedirectsAreNeverFollowed(t *testing.T) { // faults 50, 65, m10-m13
	var hits atomic.Int64
	target := serve(t, false, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	for _, location := range []string{target.URL + "/x", "/v1/other", "http://%zz/", ""} {
		for _, status := range []int{300, 301, 302, 303, 307, 308} {
			var posts atomic.Int64
			s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
				posts.Add(1)
				w.Header().Set("Location", location)
				w.WriteHeader(status)
			})
			c := signedIn(t, config(s.URL))
			if e := tryCreate(t, c); e == nil || e.Status != status || e.Reason != ReasonRedirect || e.Applied != Maybe {
				t.Errorf("create, %d to %q: %v", status, location, e)
			}
			if _, err := c.Login(t.Context(), "a@example.com", "pass word"); err == nil || err.(*Error).Reason != ReasonRedirect {
				t.Errorf("login, %d to %q: %v", status, location, err)
			}
			c.keeper.token = nil
			if err := c.SignIn(t.Context()); err == nil || err.(*Error).Reason != ReasonRedirect || leaks(err.Error()) != "" {
				t.Errorf("sign-in, %d to %q: %v", status, location, err)
			}
			must.Same(t, int64(3), posts.Load(), status, location, "requests")
		}
	}
	if hits.Load() > 0 {
		t.Errorf("%d requests reached another address", hits.Load())
	}
}

// Observe also sees calls that never left, and whether a call reused its connection.
func TestObserveSeesEachCall(t *testing.T) {
	var seen []Call
	s := answers(t, answerText(201, createdBody))
	c := config(s.address())
	c.Observe = func(call Call) { seen = append(seen, call) }
	client := signedIn(t, c)
	for range 2 {
		tryCreate(t, client)
	}
	c.LeadsURL = "http://127.0.0.1:1"
	tryCreate(t, signedIn(t, c))
	if len(seen) != 3 {
		t.Fatalf("saw %v", seen)
	}
	for i, call := range seen[:2] {
		if call.Method != "POST" || call.Kind != "create" || call.Status != 201 || call.Sent < 100 || call.Reused != (i == 1) || call.Fault != nil {
			t.Errorf("%d: %+v", i, call)
		}
	}
	if call := seen[2]; call.Status != 0 || call.Sent != 0 || call.Fault == nil || call.Fault.Applied != No || call.Duration <= 0 {
		t.Errorf("%+v", call)
	}
}

func authority(t testing.TB, name string) *tls.Certificate {
	return testsupport.Sign(t, x509.Certificate{Subject: pkix.Name{CommonName: name}}, nil)
}

// pair returns a certificate signed by an authority, valid from and to that many hours from now.
func pair(t testing.TB, of *tls.Certificate, from, to time.Duration, addresses ...net.IP) *tls.Certificate {
	return testsupport.Sign(t, x509.Certificate{IPAddresses: addresses, NotBefore: time.Now().Add(from * time.Hour), NotAfter: time.Now().Add(to * time.Hour)}, of)
}

var here = net.IPv4(127, 0, 0, 1)

// overTLS starts a service with TLS that answers every create and keeps connections open.
func overTLS(t testing.TB, settings *tls.Config) *peer {
	return listen(t, func(p *peer, c net.Conn) {
		c = tls.Server(c, settings)
		defer c.Close()
		r := bufio.NewReader(c)
		for n := 0; ; n++ {
			if _, err := p.next(r); err != nil {
				return
			}
			io.WriteString(c, another(answerText(201, createdBody), n))
		}
	})
}

// faults 33, 34: if the service's certificate is not trusted, the error says why, and its hint what to do.
func TestUntrustedCertificatesSayWhy(t *testing.T) {
	good, stranger := authority(t, "good"), authority(t, "stranger's")
	for name, test := range map[string]struct {
		pair       *tls.Certificate
		text, hint string
	}{
		"good":      {pair: pair(t, good, -1, 1, here)},
		"stranger":  {pair(t, stranger, -1, 1, here), "signed by CN=stranger's) is not good: certificate signed by unknown authority", "--ca-file"},
		"expired":   {pair(t, good, -2, -1, here), "certificate has expired or is not yet valid: current time 2", "clock"},
		"not yet":   {pair(t, good, 1, 2, here), "certificate has expired or is not yet valid: current time 2", "clock"},
		"elsewhere": {pair(t, good, -1, 1, net.IPv4(127, 0, 0, 9)), "its certificate (for 127.0.0.1, signed by CN=good) is not good: certificate is valid for 127.0.0.9", "check the address"},
	} {
		p := overTLS(t, &tls.Config{Certificates: []tls.Certificate{*test.pair}})
		c := config("https://" + p.Addr().String())
		c.Authorities = []*x509.Certificate{good.Leaf}
		e := tryCreate(t, signedIn(t, c))
		switch {
		case test.text == "":
			if e != nil {
				t.Error(name, e)
			}
		case e == nil || e.Applied != No || e.Reason != ReasonTLS || !strings.Contains(e.Message, test.text) || !strings.Contains(e.Hint, test.hint):
			t.Errorf("%v: %v (hint: %v), want %q, %q", name, e, e.Hint, test.text, test.hint)
		}
	}
}

// If a service wants another client certificate, the error says so. In TLS 1.3 the service says it only when the
// request may have left, so the create is in doubt.
func TestRefusedClientCertificatesSayWhy(t *testing.T) {
	ours, theirs := authority(t, "ours"), authority(t, "theirs")
	pool := x509.NewCertPool()
	pool.AddCert(ours.Leaf)
	server := *pair(t, ours, -1, 1, here)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		p := overTLS(t, &tls.Config{Certificates: []tls.Certificate{server}, MaxVersion: version, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
		want := No
		if version == tls.VersionTLS13 {
			want = Maybe
		}
		for text, own := range map[string]*tls.Certificate{
			"":                                 pair(t, ours, -1, 1),
			"it asks for a client certificate": nil,
			"it does not accept the client certificate of": pair(t, theirs, -1, 1),
		} {
			c := config("https://" + p.Addr().String())
			c.Authorities, c.Certificate = []*x509.Certificate{ours.Leaf}, own
			client := signedIn(t, c)
			for range 3 {
				e := tryCreate(t, client)
				if text == "" && e != nil || text != "" && (e == nil || e.Applied != want || e.Reason != ReasonClientCert || !strings.Contains(e.Message, text) || e.Hint == "") {
					t.Errorf("%s: %v, want %q", tls.VersionName(version), e, text)
				}
			}
		}
		must.Same(t, 3, p.seen(), tls.VersionName(version), "requests were taken")
	}
}
