package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// authority issues certificates for tests.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}}
	a.cert.Raw = a.sign(a.cert, a.cert, key)
	return a
}

func (a *authority) sign(cert, parent *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// config is a server's, with a certificate for 127.0.0.1 that change may spoil.
func (a *authority) config(change func(*x509.Certificate)) *tls.Config {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	change(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{a.sign(leaf, a.cert, key)}, PrivateKey: key}}}
}

func asIs(*x509.Certificate) {}

// TestNothingLeavesForAStranger: where the service is not there or is not the one that
// the address names, no request leaves, at the lead application and at sign-in alike.
// faults 33, 34, 111
func TestNothingLeavesForAStranger(t *testing.T) {
	t.Parallel()
	good, stranger := newAuthority(t), newAuthority(t)
	silent := func(c net.Conn, _ *bufio.Reader) { io.Copy(io.Discard, c) }
	const distrust, gone = "cannot be trusted", "the service " // cannot be reached, or gives no answer
	const noCertificate = "it asks for a client certificate, and none is set"
	table := []struct {
		name, stop string
		config     *tls.Config
		plain      func(net.Conn, *bufio.Reader) // instead of TLS
		address    string                        // instead of a peer
		doubts     int                           // of creates
	}{
		{name: "trusted", config: good.config(asIs)},
		{name: "unknown authority", config: stranger.config(asIs), stop: distrust},
		{name: "expired", config: good.config(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), stop: distrust},
		{name: "not valid yet", config: good.config(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }), stop: distrust},
		{name: "another address", config: good.config(func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 9)} }), stop: distrust},
		{name: "another name", config: good.config(func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"leads.example.com"} }), stop: distrust},
		{name: "TLS 1.1", config: atMost(good.config(asIs), tls.VersionTLS11), stop: gone},
		{name: "HTTP/2 only", config: onlyHTTP2(good.config(asIs)), stop: gone},
		{name: "no TLS", plain: func(c net.Conn, _ *bufio.Reader) { say(c, answered(400, "this port speaks http"), 0) }, stop: "does not look like a TLS handshake"},
		{name: "client certificate, TLS 1.3", config: mutual(good.config(asIs), tls.VersionTLS13), stop: noCertificate, doubts: 1}, // it is told once the create has left
		{name: "client certificate, TLS 1.2", config: mutual(good.config(asIs), tls.VersionTLS12), stop: noCertificate},
		{name: "closed in the handshake", plain: func(net.Conn, *bufio.Reader) {}, stop: gone},
		{name: "silent in the handshake", plain: silent, stop: gone},
		{name: "connection refused", address: "https://127.0.0.1:1", stop: gone},
		{name: "no such name", address: "https://leads.invalid", stop: gone},
	}
	for i := range 2 * len(table) {
		row, at := table[i/2], [...]string{"LEADFERRY_LEADS_URL", "LEADFERRY_BASE_URL"}[i%2]
		t.Run(row.name+"/"+at, func(t *testing.T) {
			t.Parallel()
			w := newRawTrial(t, rawScript{})
			w.rows(3)
			w.write("authority.pem", good.pem())
			serve := map[string]func(net.Conn, *bufio.Reader){"LEADFERRY_LEADS_URL": w.peer.serveLeads, "LEADFERRY_BASE_URL": w.peer.serveAPI}[at]
			address := row.address
			switch {
			case row.plain != nil:
				address = "https://" + openDoor(t, listenRaw(t), row.plain).Addr().String()
			case address == "":
				address = "https://" + openDoor(t, tls.NewListener(listenRaw(t), row.config), serve).Addr().String()
			}
			w.env = append(w.env, "SSL_CERT_FILE="+w.dir+"/authority.pem", "SSL_CERT_DIR="+w.dir, at+"="+address)
			limit, wait := "20s", "20s"
			if row.stop == gone {
				limit, wait = "700ms", "300ms"
			}
			code, out := w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "run", "-c", "1", "--log-level", "debug", "--timeout", limit, "--max-wait", wait)
			s := w.summary("run/summary.json")
			posts, rows := w.peer.posted(), w.results("run/results.csv")
			if row.stop == "" {
				if code != 0 || posts != 3 {
					t.Errorf("exit %d, %d POSTs\n%s", code, posts, out)
				}
				return
			}
			if at == "LEADFERRY_BASE_URL" {
				row.doubts = 0
			}
			if code != 3 || posts != 0 || s.Rows.Pending+row.doubts != s.Rows.Read || s.Rows.InDoubt != row.doubts || !strings.Contains(s.StopReason, row.stop) {
				t.Errorf("exit %d, %d POSTs, %+v\n%s", code, posts, s.Rows, out)
			}
			if at == "LEADFERRY_BASE_URL" && len(rows) > 0 {
				t.Errorf("%d rows were taken without a sign-in", len(rows))
			}
			w.peersLedger(rows)
			w.nothingShows(out, 3)
		})
	}
}

func atMost(c *tls.Config, version uint16) *tls.Config {
	c.MinVersion, c.MaxVersion = tls.VersionTLS10, version
	return c
}

// mutual wants a certificate of the client.
func mutual(c *tls.Config, version uint16) *tls.Config {
	c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, version
	return c
}

// onlyHTTP2 turns away whoever does not offer HTTP/2.
func onlyHTTP2(c *tls.Config) *tls.Config {
	c.NextProtos = []string{"h2"}
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if !slices.Contains(hello.SupportedProtos, "h2") {
			return nil, errors.New("HTTP/2 only")
		}
		return nil, nil
	}
	return c
}

// TestHTTP2IsNeverSpoken: a peer that prefers HTTP/2 and resets every stream of it after
// the whole body, so that net/http would send the lead again and again, is spoken to with
// HTTP/1.1. faults 41, m1, m2, m3
func TestHTTP2IsNeverSpoken(t *testing.T) {
	t.Parallel()
	for _, code := range []http2.ErrCode{http2.ErrCodeProtocol, http2.ErrCodeRefusedStream, http2.ErrCodeInternal, http2.ErrCodeCancel, http2.ErrCodeNo} {
		w := newRawTrial(t, rawScript{})
		w.rows(3)
		a := newAuthority(t)
		w.write("authority.pem", a.pem())
		config := a.config(asIs)
		config.NextProtos = []string{"h2", "http/1.1"}
		var mu sync.Mutex
		streams := 0
		door := openDoor(t, tls.NewListener(listenRaw(t), config), func(c net.Conn, r *bufio.Reader) {
			r.Peek(1) // makes the handshake
			if c.(*tls.Conn).ConnectionState().NegotiatedProtocol != "h2" {
				w.peer.serveLeads(c, r)
				return
			}
			resetStreams(c, r, code, func() {
				mu.Lock()
				streams++
				mu.Unlock()
			})
		})
		w.env = append(w.env, "SSL_CERT_FILE="+w.dir+"/authority.pem", "LEADFERRY_LEADS_URL=https://"+door.Addr().String())
		out := w.must(0, "import", "-m", "leads.yaml", "leads.csv", "--out", "run", "-c", "1", "--timeout", "5s", "--max-wait", "1s")
		mu.Lock()
		if streams > 0 || w.peer.posted() != 3 {
			t.Errorf("%s: %d HTTP/2 streams, %d POSTs over HTTP/1.1\n%s", code, streams, w.peer.posted(), out)
		}
		mu.Unlock()
	}
}

// resetStreams speaks HTTP/2 and ends every stream with the code, or the connection with
// GOAWAY where it is no error.
func resetStreams(c net.Conn, r *bufio.Reader, code http2.ErrCode, stream func()) {
	if _, err := r.Discard(len(http2.ClientPreface)); err != nil {
		return
	}
	f := http2.NewFramer(c, r)
	f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		if frame.Header().Type == http2.FrameHeaders {
			stream()
		}
		if !frame.Header().Flags.Has(http2.FlagDataEndStream) || frame.Header().StreamID == 0 {
			continue
		}
		if code == http2.ErrCodeNo {
			f.WriteGoAway(0, code, nil)
			return
		}
		f.WriteRSTStream(frame.Header().StreamID, code)
	}
}

// TestRedirectOfSignIn: the token request carries the client secret in its address, which
// a redirect would hand on. faults 50, 111, m10, m11
func TestRedirectOfSignIn(t *testing.T) {
	t.Parallel()
	target := openDoor(t, listenRaw(t), func(net.Conn, *bufio.Reader) {})
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for _, location := range []string{target.url() + "/v3/oauth2/token", "http://%zz/", "/other?client_secret=" + rawSecret} {
			w := newRawTrial(t, rawScript{tokenSays: answered(status, rawSecret, "Location: "+location)})
			w.rows(3)
			code, out := w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "run", "-c", "1", "--log-level", "debug", "--max-wait", "100ms")
			if s := w.summary("run/summary.json"); code != 3 || s.Rows.Read != 0 || w.peer.posted() != 0 {
				t.Errorf("%d to %q: exit %d, %d POSTs\n%s", status, location, code, w.peer.posted(), out)
			}
			w.nothingShows(out, 3)
		}
	}
	if n := target.visits(); n > 0 {
		t.Errorf("%d connections to the target of redirects", n)
	}
}
