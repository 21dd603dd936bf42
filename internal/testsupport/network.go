// Package testsupport imitates the network between a client and the service, with the sandbox as the service: TLS,
// client certificates, a proxy, two addresses, connections that are closed.
package testsupport

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
)

// Network says how a service is reached. The zero value is plain HTTP at one address.
type Network struct {
	TLS       bool
	Mutual    bool // clients must show a certificate
	Apart     bool // lead creation has its own address
	IdleClose time.Duration
	Proxy     *url.Userinfo   // the user that a proxy lets in; nil: no proxy
	ProxyDoes func(n int) int // what happens to its nth request: a status, -1 to drop it, 0 for a tunnel; nil: tunnels
}

// Way is what a client needs to know to reach the service. Files that it does not need are "".
type Way struct {
	URL, LeadsURL, ProxyURL string
	CA, Cert, Key           string // files: whom to trust; the client's own certificate and key
	Tunnels                 atomic.Int64
}

// Serve serves a service until the test ends.
func (n Network) Serve(t testing.TB, service http.Handler) *Way {
	t.Helper()
	w := &Way{}
	var secure *tls.Config
	if n.TLS {
		secure = w.certificates(t, n.Mutual)
	}
	w.URL = n.listen(t, service, secure)
	w.LeadsURL = w.URL
	if n.Apart {
		w.URL, w.LeadsURL = n.listen(t, only("/v3/", service), secure), n.listen(t, only("/v1/", service), secure)
	}
	if n.Proxy != nil {
		at := n.listen(t, &proxy{network: n, way: w}, nil)
		w.ProxyURL = strings.Replace(at, "://", "://"+n.Proxy.String()+"@", 1)
	}
	return w
}

func (n Network) listen(t testing.TB, h http.Handler, secure *tls.Config) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.IdleTimeout = n.IdleClose
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = secure
	if secure != nil {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// only serves one of the two applications: the paths with this prefix.
func only(prefix string, h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(prefix, h)
	return mux
}

// Sign makes a certificate for servers and clients from a template. It is valid for some days, unless the template says
// otherwise. by signs it; nil: it is an authority and signs itself.
func Sign(t testing.TB, c x509.Certificate, by *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	c.SerialNumber = big.NewInt(1)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(7*24*time.Hour)
	}
	parent, signer := &c, crypto.PrivateKey(key)
	if by == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	} else {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, parent, &key.PublicKey, signer)
	must.Do(t, err)
	leaf, err := x509.ParseCertificate(der)
	must.Do(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// PEM returns a certificate and its key in the form of files.
func PEM(t testing.TB, c *tls.Certificate) (certificate, key string) {
	t.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	must.Do(t, err)
	block := func(kind string, of []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: of}))
	}
	return block("CERTIFICATE", c.Certificate[0]), block("PRIVATE KEY", secret)
}

// certificates makes an authority's certificate and writes it to a file. Server and client both show and trust it.
func (w *Way) certificates(t testing.TB, mutual bool) *tls.Config {
	t.Helper()
	own := Sign(t, x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}, nil)
	certificate, key := PEM(t, own)
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	w.CA = write("ca.pem", certificate)
	secure := &tls.Config{Certificates: []tls.Certificate{*own}, NextProtos: []string{"http/1.1"}}
	if mutual {
		w.Cert, w.Key = w.CA, write("key.pem", key)
		secure.ClientAuth, secure.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		secure.ClientCAs.AddCert(own.Leaf)
	}
	return secure
}

// proxy accepts CONNECT to the service's own addresses.
type proxy struct {
	network Network
	way     *Way
	asked   atomic.Int64
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, does := int(p.asked.Add(1)), 0
	if p.network.ProxyDoes != nil {
		does = p.network.ProxyDoes(n)
	}
	password, _ := p.network.Proxy.Password()
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.network.Proxy.Username()+":"+password))
	switch {
	case does < 0:
		panic(http.ErrAbortHandler)
	case does > 0:
		w.WriteHeader(does)
	case r.Method != http.MethodConnect:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Header.Get("Proxy-Authorization") != want:
		w.Header().Set("Proxy-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
	case !strings.HasSuffix(p.way.URL, r.Host) && !strings.HasSuffix(p.way.LeadsURL, r.Host):
		w.WriteHeader(http.StatusForbidden)
	default:
		p.tunnel(w, r)
	}
}

// tunnel copies bytes both ways until one side ends.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	far, err := new(net.Dialer).DialContext(context.WithoutCancel(r.Context()), "tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		far.Close()
		return
	}
	p.way.Tunnels.Add(1)
	_, _ = io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n")
	end := sync.OnceFunc(func() { _, _ = near.Close(), far.Close() })
	go func() {
		_, _ = io.Copy(near, far)
		end()
	}()
	_, _ = io.Copy(far, near)
	end()
}
