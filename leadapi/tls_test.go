package leadapi

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// signing is an authority of a test.
type signing struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newSigning(t testing.TB, name string) *signing {
	s := &signing{t: t}
	s.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-9 * time.Hour), NotAfter: time.Now().Add(9 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	pair := s.sign(s.cert)
	s.cert = pair.Leaf
	return s
}

// sign makes a certificate; the first one is the authority's own.
func (s *signing) sign(c *x509.Certificate) *tls.Certificate {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.key == nil {
		s.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, s.cert, &key.PublicKey, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// pair is a certificate for 127.0.0.1, valid between two hours from now.
func (s *signing) pair(from, to time.Duration, addresses ...net.IP) *tls.Certificate {
	return s.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: addresses, NotBefore: time.Now().Add(from * time.Hour), NotAfter: time.Now().Add(to * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

var here = net.IPv4(127, 0, 0, 1)

// overTLS plays a service that answers every create, on connections that it closes where once is set.
func overTLS(t testing.TB, settings *tls.Config, once bool) *peer {
	return listen(t, func(p *peer, c net.Conn) {
		c = tls.Server(c, settings)
		defer c.Close()
		r := bufio.NewReader(c)
		for {
			if _, err := p.next(r); err != nil {
				return
			}
			if io.WriteString(c, answerText(201, createdBody)); once {
				return
			}
		}
	})
}

// faults 33, 34: a certificate that will not do says why, and what can be done about it.
func TestCertificatesThatAreNotBelieved(t *testing.T) {
	good, stranger := newSigning(t, "good"), newSigning(t, "stranger's")
	for name, test := range map[string]struct {
		pair       *tls.Certificate
		text, hint string
	}{
		"good":      {pair: good.pair(-1, 1, here)},
		"stranger":  {stranger.pair(-1, 1, here), "signed by CN=stranger's) is not good: certificate signed by unknown authority", "--ca-file"},
		"expired":   {good.pair(-2, -1, here), "certificate has expired or is not yet valid: current time 2", "clock"},
		"not yet":   {good.pair(1, 2, here), "certificate has expired or is not yet valid: current time 2", "clock"},
		"elsewhere": {good.pair(-1, 1, net.IPv4(127, 0, 0, 9)), "its certificate (for 127.0.0.1, signed by CN=good) is not good: certificate is valid for 127.0.0.9", "check the address"},
	} {
		t.Run(name, func(t *testing.T) {
			p := overTLS(t, &tls.Config{Certificates: []tls.Certificate{*test.pair}}, false)
			c := config("https://" + p.Addr().String())
			c.Authorities = []*x509.Certificate{good.cert}
			e := fault(t, signedIn(t, c))
			switch {
			case test.text == "":
				if e != nil {
					t.Error(e)
				}
			case e == nil || e.Applied != No || e.Reason != ReasonTLS || !strings.Contains(e.Message, test.text) || !strings.Contains(e.Hint, test.hint):
				t.Errorf("%v (hint: %v), want %q, %q", e, e.Hint, test.text, test.hint)
			}
		})
	}
}

// A service that wants a client certificate says so in TLS 1.3 only when the request may have left: its sentence is told, and the
// request is in doubt.
func TestClientCertificates(t *testing.T) {
	ours, theirs := newSigning(t, "ours"), newSigning(t, "theirs")
	pool := x509.NewCertPool()
	pool.AddCert(ours.cert)
	server := *ours.pair(-1, 1, here)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		p := overTLS(t, &tls.Config{Certificates: []tls.Certificate{server}, MaxVersion: version, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}, false)
		want := No
		if version == tls.VersionTLS13 {
			want = Maybe
		}
		for text, pair := range map[string]*tls.Certificate{
			"":                                 ours.pair(-1, 1),
			"it asks for a client certificate": nil,
			"it does not accept the client certificate of": theirs.pair(-1, 1),
		} {
			c := config("https://" + p.Addr().String())
			c.Authorities, c.Certificate = []*x509.Certificate{ours.cert}, pair
			client := signedIn(t, c)
			for range 3 {
				e := fault(t, client)
				if text == "" && e != nil || text != "" && (e == nil || e.Applied != want || e.Reason != ReasonClientCert || !strings.Contains(e.Message, text) || e.Hint == "") {
					t.Errorf("%s: %v, want %q", tls.VersionName(version), e, text)
				}
			}
		}
		if n := p.seen(); n != 3 {
			t.Errorf("%s: %d requests were taken, want 3", tls.VersionName(version), n)
		}
	}
}
