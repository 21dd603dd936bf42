package leadapi

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"leadferry/internal/testsupport"
)

// authority is one of a test.
func authority(t testing.TB, name string) *tls.Certificate {
	return testsupport.Sign(t, x509.Certificate{Subject: pkix.Name{CommonName: name}}, nil)
}

// pair is a certificate of an authority, valid between two hours from now.
func pair(t testing.TB, of *tls.Certificate, from, to time.Duration, addresses ...net.IP) *tls.Certificate {
	return testsupport.Sign(t, x509.Certificate{IPAddresses: addresses, NotBefore: time.Now().Add(from * time.Hour), NotAfter: time.Now().Add(to * time.Hour)}, of)
}

var here = net.IPv4(127, 0, 0, 1)

// overTLS plays a service that answers every create, on connections that it keeps.
func overTLS(t testing.TB, settings *tls.Config) *peer {
	return listen(t, func(p *peer, c net.Conn) {
		c = tls.Server(c, settings)
		defer c.Close()
		r := bufio.NewReader(c)
		for {
			if _, err := p.next(r); err != nil {
				return
			}
			io.WriteString(c, answerText(201, createdBody))
		}
	})
}

// faults 33, 34: a certificate that will not do says why, and what can be done about it.
func TestCertificatesThatAreNotBelieved(t *testing.T) {
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
		e := fault(t, signedIn(t, c))
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

// A service that wants a client certificate says so in TLS 1.3 only when the request may have left: its sentence is
// told, and the request is in doubt.
func TestClientCertificates(t *testing.T) {
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
				e := fault(t, client)
				if text == "" && e != nil || text != "" && (e == nil || e.Applied != want || e.Reason != ReasonClientCert || !strings.Contains(e.Message, text) || e.Hint == "") {
					t.Errorf("%s: %v, want %q", tls.VersionName(version), e, text)
				}
			}
		}
		same(t, 3, p.seen(), tls.VersionName(version), "requests were taken")
	}
}
