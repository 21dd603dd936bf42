package e2e

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"leadferry/internal/testsupport"
)

// The password of a proxy, as it stands in an address and as it is meant.
const rawProxyLogin, rawProxyPassword = "importer:pl4nted%2Fproxy%40word@", "pl4nted/proxy@word"

// company is a network from which the service is reached over a proxy alone, and is signed for by an authority of its own.
type company struct {
	*rawTrial
	proxy *rawDoor
	doors map[string]string // what the proxy knows names for

	mu    sync.Mutex
	asked int
	says  func(n int) string // to the n-th CONNECT, from 1; "": it opens the way
}

func newCompany(t *testing.T, leads func(*tls.Config) *tls.Config) *company {
	w := &company{rawTrial: newRawTrial(t, rawScript{store: true})}
	w.rows(3)
	authority := testsupport.Sign(t, x509.Certificate{}, nil)
	trusted, _ := testsupport.PEM(t, authority)
	w.write("authority.pem", trusted)
	own := testsupport.Sign(t, x509.Certificate{DNSNames: []string{"leads.example.com", "api.example.com"}}, authority)
	named := &tls.Config{Certificates: []tls.Certificate{*own}}
	w.doors = map[string]string{
		"leads.example.com:443": openDoor(t, tls.NewListener(listenRaw(t), leads(named)), w.peer.serveLeads).Addr().String(),
		"api.example.com:443":   openDoor(t, tls.NewListener(listenRaw(t), named), w.peer.serveAPI).Addr().String(),
	}
	w.proxy = openDoor(t, listenRaw(t), w.serve)
	w.env = append(w.env, "LEADFERRY_BASE_URL=https://api.example.com", "LEADFERRY_LEADS_URL=https://leads.example.com", "NO_PROXY=", "no_proxy=",
		"https_proxy=", "HTTPS_PROXY=http://"+rawProxyLogin+w.proxy.Addr().String(), "SSL_CERT_FILE=", "SSL_CERT_DIR=", "LEADFERRY_CA_FILE=authority.pem")
	return w
}

// serve is one connection to the proxy.
func (w *company) serve(c net.Conn, r *bufio.Reader) {
	ask, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	w.mu.Lock()
	w.asked++
	n := w.asked
	w.mu.Unlock()
	said := ""
	if w.says != nil {
		said = w.says(n)
	}
	if login := "Basic " + base64.StdEncoding.EncodeToString([]byte("importer:"+rawProxyPassword)); ask.Method != http.MethodConnect || ask.Header.Get("Proxy-Authorization") != login {
		said = cmp.Or(said, answered(400, "no CONNECT of ours"))
	}
	to, err := net.Dial("tcp", w.doors[ask.Host])
	if said != "" || err != nil {
		io.WriteString(c, cmp.Or(said, answered(502, "")))
		return
	}
	defer to.Close()
	io.WriteString(c, answered(200, ""))
	var wait sync.WaitGroup
	wait.Go(func() { io.Copy(to, r); to.Close(); c.Close() })
	io.Copy(c, to)
	c.Close()
	wait.Wait()
}

// proxySays refuses from one CONNECT to another.
func proxySays(status, from, to int) func(n int) string {
	return func(n int) string {
		if n < from || n > to {
			return ""
		}
		return answered(status, `{"leadID":"stray"} `+rawProxyPassword, "Proxy-Authenticate: Basic realm=x")
	}
}

// TestCompanyNetwork: sign-in, creates and all go over the proxy and through the company's authority; what stops a run says
// so in a sentence and leaves nothing in doubt, and what passes is waited out. faults 33, 34, 43
func TestCompanyNetwork(t *testing.T) {
	t.Parallel()
	plain := func(c *tls.Config) *tls.Config { return c }
	table := []struct {
		name   string
		leads  func(*tls.Config) *tls.Config
		says   func(n int) string
		env    []string
		args   []string
		code   int
		text   string
		doubts int
	}{
		{name: "good", text: "is reached over the proxy http://127.0.0.1:"},
		{name: "a proxy that wakes up", says: proxySays(503, 1, 2)},
		{name: "407", says: proxySays(407, 1, 99), code: 3, text: "does not accept the user and password of its address (HTTP 407)"},
		{name: "403", says: proxySays(403, 1, 99), code: 3, text: "it answers CONNECT with HTTP 403"},
		{name: "403 for creates", says: proxySays(403, 2, 99), code: 3, text: "HTTP 403"},
		{name: "502 for ever", says: proxySays(502, 1, 9999), args: []string{"--max-wait", "300ms"}, code: 3, text: "it answers CONNECT with HTTP 502"},
		{name: "no authority", env: []string{"LEADFERRY_CA_FILE="}, code: 3, text: "one's certificate with --ca-file"},
		{name: "certificates are a folder", env: []string{"LEADFERRY_CA_FILE=", "SSL_CERT_FILE=.", "SSL_CERT_DIR=run"}, code: 2, text: "SSL_CERT_FILE"},
		{name: "client certificate", leads: mutual, args: []string{"--client-cert", "client.pem"}},
		{name: "no client certificate", leads: mutual, code: 3, doubts: 1, text: "it asks for a client certificate, and none is set"},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.leads == nil {
				row.leads = plain
			}
			w := newCompany(t, row.leads)
			w.says = row.says
			w.clientCertificate()
			w.env = append(w.env, row.env...)
			args := append([]string{"import", "-m", "leads.yaml", "leads.csv", "--out", "run", "-c", "1", "--log-level", "debug", "--timeout", "5s"}, row.args...)
			code, out := w.run(args...)
			posts := 0
			if row.code == 0 {
				posts = 3
			}
			if code != row.code || w.peer.posted() != posts || !strings.Contains(out, row.text) {
				t.Errorf("exit %d, %d POSTs, want %d, %d, %q\n%s", code, w.peer.posted(), row.code, posts, row.text, out)
			}
			if row.code == 2 {
				return
			}
			s := w.summary("run/summary.json")
			if s.Rows.InDoubt != row.doubts || row.code == 3 && s.Rows.Pending+row.doubts != s.Rows.Read {
				t.Errorf("%+v\n%s", s.Rows, out)
			}
			w.peersLedger(w.results("run/results.csv"))
			w.nothingShows(3, rawProxyPassword)
		})
	}
}

// clientCertificate writes one, with its key in the same file, for its owner alone.
func (w *company) clientCertificate() {
	w.t.Helper()
	certificate, key := testsupport.PEM(w.t, testsupport.Sign(w.t, x509.Certificate{}, nil))
	w.write("client.pem", certificate+key)
}

// mutual wants a certificate of the client.
func mutual(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.ClientAuth = tls.RequireAnyClientCert
	return c
}
