package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestOnlyThisMachineIsServed(t *testing.T) {
	s := open(t, Options{})
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1", "127.0.0.1:x", ""} {
		if l, err := Listen(addr, s); err == nil {
			_ = l.Close()
			t.Errorf("%q is served", addr)
		}
	}
	l, err := Listen("localhost:0", s)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(l.URL(), "http://") || strings.HasSuffix(l.URL(), ":0") || strings.HasSuffix(l.URL(), "/") {
		t.Errorf("the URL is %s", l.URL())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(l.URL()); err == nil {
		t.Error("a closed listener answers")
	}
}

func TestClosingAnswersWhatIsLate(t *testing.T) {
	s := open(t, Options{Faults: "slow#1:1h"})
	l, err := Listen("127.0.0.1:0", s)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// reach serves s on a network of its own.
func reach(t *testing.T, s *Server, n Network) *Listener {
	t.Helper()
	n.Addr = "127.0.0.1:0"
	l, err := s.Serve(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// client is one with these settings of TLS and this proxy, "" for none.
func client(t *testing.T, config *tls.Config, proxy string) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config}
	if proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil {
			t.Fatal(err)
		}
		transport.Proxy = http.ProxyURL(u)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// trusting are the settings of a client that trusts the listener's file, and shows its certificate where there is one.
func trusting(t *testing.T, l *Listener) *tls.Config {
	t.Helper()
	ca, cert, key := l.Files()
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(text)
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// status is what a GET is answered, 0 for an error.
func status(t *testing.T, c *http.Client, address string) (int, error) {
	t.Helper()
	res, err := c.Get(address)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

func TestTheCertificateIsForTheNamesOfThisMachine(t *testing.T) {
	l := reach(t, open(t, Options{}), Network{TLS: &TLS{}})
	u, err := url.Parse(l.URL())
	if err != nil || u.Scheme != "https" {
		t.Fatal(u, err)
	}
	config := trusting(t, l)
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "example.com"} {
		conn, err := tls.Dial("tcp", u.Host, &tls.Config{RootCAs: config.RootCAs, ServerName: name})
		if (err == nil) != (name != "example.com") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if left := time.Until(conn.ConnectionState().PeerCertificates[0].NotAfter); left > certificateLife {
			t.Errorf("the certificate is good for %s", left)
		}
		_ = conn.Close()
	}
	if got, err := status(t, client(t, nil, ""), l.URL()); err == nil {
		t.Errorf("who does not trust the file is answered %d", got)
	}
	ca, _, _ := l.Files()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(ca)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary folder is still there: %v", err)
	}
}

func TestClientsShowACertificate(t *testing.T) {
	s := open(t, Options{})
	l := reach(t, s, Network{TLS: &TLS{Mutual: true}})
	if got, err := status(t, client(t, trusting(t, l), ""), l.URL()); got != 404 {
		t.Errorf("with the certificate: %d, %v", got, err)
	}
	bare := trusting(t, l)
	bare.Certificates = nil
	if got, err := status(t, client(t, bare, ""), l.URL()); err == nil {
		t.Errorf("without a certificate: %d", got)
	}
	_, cert, key := l.Files()
	info, err := os.Stat(key)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}

	// A client certificate of one's own, by its own authority: here that of the first listener.
	ca, _, _ := l.Files()
	own := reach(t, s, Network{TLS: &TLS{ClientCA: ca}})
	if _, none, _ := own.Files(); none != "" {
		t.Errorf("a certificate is written: %s", none)
	}
	config := trusting(t, own)
	if config.Certificates = make([]tls.Certificate, 1); err == nil {
		config.Certificates[0], err = tls.LoadX509KeyPair(cert, key)
	}
	if got, failed := status(t, client(t, config, ""), own.URL()); got != 404 || err != nil {
		t.Errorf("with a certificate of one's own: %d, %v", got, failed)
	}
	for _, file := range []string{key, filepath.Join(t.TempDir(), "none")} {
		if l, err := s.Serve(Network{Addr: "127.0.0.1:0", TLS: &TLS{ClientCA: file}}); err == nil || l != nil {
			t.Errorf("clients are known by %s", file)
		}
	}
}

func TestFilesStandWhereTheyAreWanted(t *testing.T) {
	dir, s := filepath.Join(t.TempDir(), "tls"), open(t, Options{})
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := s.Serve(Network{Addr: "127.0.0.1:0", TLS: &TLS{Dir: dir, Mutual: true}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := status(t, client(t, trusting(t, l), ""), l.URL()); got != 404 {
			t.Errorf("%d, %v", got, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		ca, _, key := l.Files()
		if filepath.Dir(ca) != dir {
			t.Errorf("the file is %s", ca)
		}
		if err := errors.Join(os.Remove(key), os.Symlink(target, key)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(target); string(text) != "mine" {
		t.Errorf("a link was followed: %s, %v", text, err)
	}
}

func TestARestingConnectionIsClosed(t *testing.T) {
	l := reach(t, open(t, Options{}), Network{IdleClose: 10 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn) // ends when the sandbox closes
	if err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 404 ")) || bytes.Contains(b, []byte("Connection: close")) {
		t.Errorf("%s %v", b, err)
	}
}

func TestTheApplicationsAreApart(t *testing.T) {
	s := open(t, Options{})
	l := reach(t, s, Network{LeadsAddr: "127.0.0.1:0"})
	c := client(t, nil, "")
	for address, want := range map[string]int{
		l.URL() + "/v3/oauth2/token": 405, l.URL() + "/v1/" + TrunkID: 404,
		l.LeadsURL() + "/v3/oauth2/token": 404, l.LeadsURL() + "/v1/" + TrunkID: 405,
	} {
		if got, err := status(t, c, address); got != want {
			t.Errorf("%s: %d, %v", address, got, err)
		}
	}
	if l.URL() == l.LeadsURL() {
		t.Error("they have one address")
	}
}

func TestTheProxyLeadsToTheSandboxAlone(t *testing.T) {
	s := open(t, Options{Faults: "proxy.503#1,proxy.drop#2"})
	l := reach(t, s, Network{TLS: &TLS{}, LeadsAddr: "127.0.0.1:0", ProxyAddr: "127.0.0.1:0", ProxyUser: url.UserPassword("ann", "p@ss:word")})
	config := trusting(t, l)
	for i, address := range []string{l.URL(), l.URL(), l.URL(), l.LeadsURL(), strings.Replace(l.URL(), "127.0.0.1", "localhost", 1)} {
		got, err := status(t, client(t, config, l.ProxyURL()), address)
		if want := map[bool]int{false: 0, true: 404}[i > 1]; got != want {
			t.Errorf("tunnel %d to %s: %d, %v", i, address, got, err)
		}
	}
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	good := l.ProxyURL()
	for _, tt := range []struct{ proxy, address, want string }{
		{good, "https://" + stranger.Addr().String(), "Forbidden"},
		{good, "https://example.com:" + l.url.Port(), "Forbidden"},
		{strings.Replace(good, "ann", "bob", 1), l.URL(), "Proxy Authentication Required"},
		{"http://" + l.proxy.Host, l.URL(), "Proxy Authentication Required"},
	} {
		if _, err := status(t, client(t, config, tt.proxy), tt.address); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.address, err, tt.want)
		}
	}
	if got, err := status(t, client(t, nil, good), "http://"+l.url.Host); got != 405 {
		t.Errorf("without CONNECT: %d, %v", got, err)
	}
	if counts := s.Counts()["proxy"]; !maps.Equal(counts, map[int]int{0: 1, 503: 1, 200: 3, 403: 2, 407: 2, 405: 1}) {
		t.Errorf("counted %v", counts)
	}
}

// TestClosingEndsTunnels: goleak finds what is left.
func TestClosingEndsTunnels(t *testing.T) {
	l := reach(t, open(t, Options{}), Network{ProxyAddr: "127.0.0.1:0"})
	conn, err := net.Dial("tcp", l.proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", l.url.Host)
	in := bufio.NewReader(conn)
	if res, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect}); err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := in.ReadByte(); err == nil {
		t.Error("the tunnel is open")
	}
}
