package leadapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
)

// relay carries bytes both ways until one side ends.
func relay(c net.Conn, in io.Reader, to net.Conn) {
	defer to.Close()
	var wait sync.WaitGroup
	wait.Go(func() { io.Copy(to, in); to.Close(); c.Close() })
	io.Copy(c, to)
	c.Close()
	wait.Wait()
}

// connectProxy starts an HTTP proxy that answers what act returns; for "" it opens the tunnel.
func connectProxy(t testing.TB, act func(c net.Conn, ask *http.Request) string) *peer {
	return listen(t, func(p *peer, c net.Conn) { serveConnect(c, act) })
}

func serveConnect(c net.Conn, act func(c net.Conn, ask *http.Request) string) {
	r := bufio.NewReader(c)
	ask, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	if said := act(c, ask); said != "" {
		io.WriteString(c, said)
		return
	}
	to, err := net.Dial("tcp", ask.Host)
	if err != nil {
		return
	}
	io.WriteString(c, "HTTP/1.1 200 Connection established\r\nContent-Length: 7\r\n\r\n") // ignored length
	relay(c, r, to)
}

// socksProxy starts a SOCKS5 proxy that answers with code, and asks for a user and password unless user is "".
func socksProxy(t testing.TB, user, password string, code byte) *peer {
	return listen(t, func(p *peer, c net.Conn) {
		var b [600]byte
		read := func(n int) []byte { io.ReadFull(c, b[:n]); return b[:n] }
		methods := slices.Clone(read(int(read(2)[1])))
		switch {
		case user == "":
			c.Write([]byte{5, 0})
		case !slices.Contains(methods, 2):
			c.Write([]byte{5, 0xff})
			return
		default:
			c.Write([]byte{5, 2})
			got := string(read(int(read(2)[1])))
			if got += ":" + string(read(int(read(1)[0]))); got != user+":"+password {
				c.Write([]byte{1, 1})
				return
			}
			c.Write([]byte{1, 0})
		}
		host := ""
		switch read(4)[3] {
		case 1:
			host = net.IP(slices.Clone(read(4))).String()
		case 3:
			host = string(read(int(read(1)[0])))
		}
		port := binary.BigEndian.Uint16(read(2))
		if code != 0 {
			c.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0})
			return
		}
		to, err := net.Dial("tcp", fmt.Sprint(host, ":", port))
		if err != nil {
			return
		}
		c.Write(append([]byte{5, 0, 0, 3, 4}, "here\x01\x02"...))
		relay(c, c, to)
	})
}

func through(t testing.TB, c Config, proxy string) Config {
	t.Helper()
	p, err := ParseProxy(proxy)
	must.Do(t, err)
	c.Proxy = func(*url.URL) *Proxy { return p }
	return c
}

const proxyUser, proxyPassword, proxyLogin = "us@er", "p4nted:/#word", "us%40er:p4nted%3A%2F%23word@"

// fault 43: creates work over every kind of proxy, to services with and without TLS. A client that asks an HTTP proxy
// for a tunnel asks for one only.
func TestCreatesGoThroughProxies(t *testing.T) {
	var made atomic.Int64
	secure := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(201)
		fmt.Fprintf(w, `{"leadID":"lead-%d"}`, made.Add(1))
	})
	plain := answers(t, answerText(201, createdBody))
	var asked sync.Map
	note := func(_ net.Conn, ask *http.Request) string {
		request := http.Request{Header: http.Header{"Authorization": ask.Header["Proxy-Authorization"]}}
		if user, password, _ := request.BasicAuth(); ask.Method != http.MethodConnect || user != proxyUser || password != proxyPassword {
			return answerText(407, "")
		}
		n, _ := asked.LoadOrStore(ask.Host, new(int))
		*n.(*int)++
		return ""
	}
	overHTTP := connectProxy(t, note)
	overTLS := listen(t, func(p *peer, c net.Conn) {
		upon := tls.Server(c, &tls.Config{Certificates: secure.TLS.Certificates})
		defer upon.Close()
		serveConnect(upon, note)
	})
	socks := socksProxy(t, proxyUser, proxyPassword, 0)
	for _, proxy := range []string{
		"http://" + proxyLogin + overHTTP.Addr().String(), "https://" + proxyLogin + overTLS.Addr().String(),
		"socks5://" + proxyLogin + socks.Addr().String(), "socks5h://" + proxyLogin + socks.Addr().String(),
	} {
		for _, service := range []string{secure.URL, plain.address()} {
			asked.Clear()
			c := through(t, config(service), proxy)
			c.Authorities = []*x509.Certificate{secure.Certificate()}
			client := signedIn(t, c)
			for range 3 {
				if e := tryCreate(t, client); e != nil {
					t.Fatalf("%s to %s: %v", proxy, service, e)
				}
			}
			tunnels := 0
			asked.Range(func(host, n any) bool {
				tunnels++
				if _, want, _ := strings.Cut(service, "://"); host != want || *n.(*int) != 1 {
					t.Errorf("%s to %s: %d times CONNECT %s", proxy, service, *n.(*int), host)
				}
				return true
			})
			if isHTTP := strings.HasPrefix(proxy, "http"); isHTTP && tunnels != 1 || !isHTTP && socks.met.Swap(0) == 0 {
				t.Errorf("%s to %s: %d tunnels", proxy, service, tunnels)
			}
		}
	}
}

// fault 43: if a proxy refuses, its answer is never taken for an answer of the service.
func TestRefusalsOfAProxyAreNotTheServicesAnswers(t *testing.T) {
	service := listen(t, func(p *peer, c net.Conn) { t.Error("somebody reached the service") })
	says := func(status int) *peer {
		return connectProxy(t, func(net.Conn, *http.Request) string {
			return answerText(status, `{"leadID":"stray"}`, "Retry-After: 1", "X-Echo: "+proxyPassword)
		})
	}
	talks := listen(t, func(p *peer, c net.Conn) { io.WriteString(c, answerText(400, "")); io.Copy(io.Discard, c) })
	more := listen(t, func(p *peer, c net.Conn) { // opens the tunnel, then adds an answer of its own
		io.ReadFull(c, make([]byte, 3))
		c.Write([]byte{5, 0})
		io.ReadFull(c, make([]byte, 10)) // an IPv4 address
		io.WriteString(c, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"+answerText(201, createdBody))
		io.Copy(io.Discard, c)
	})
	for name, test := range map[string]struct{ address, reason, text string }{
		"407": {"http://" + proxyLogin + says(407).Addr().String(), ReasonProxyAuth, "does not accept the user and password"},
		"407, NTLM": {"http://" + proxyLogin + connectProxy(t, func(net.Conn, *http.Request) string {
			return answerText(407, "", "Proxy-Authenticate: Negotiate", "Proxy-Authenticate: NTLM")
		}).Addr().String(), ReasonProxyAuth, "does not accept the user and password"},
		"407, no user":     {"http://" + says(407).Addr().String(), ReasonProxyAuth, "asks for a user and a password"},
		"403":              {"http://" + proxyLogin + says(403).Addr().String(), ReasonProxy, "HTTP 403"},
		"302":              {"http://" + proxyLogin + says(302).Addr().String(), ReasonProxy, "HTTP 302"},
		"101":              {"http://" + proxyLogin + says(101).Addr().String(), ReasonProxy, "HTTP 101"},
		"429":              {"http://" + proxyLogin + says(429).Addr().String(), ReasonConnect, "HTTP 429"},
		"503":              {"http://" + proxyLogin + says(503).Addr().String(), ReasonConnect, "HTTP 503"},
		"200 and more":     {"http://" + proxyLogin + says(200).Addr().String(), ReasonConnect, "something of its own"},
		"not there":        {"http://" + proxyLogin + "127.0.0.1:1", ReasonConnect, "cannot be reached: connection refused"},
		"no such name":     {"http://" + proxyLogin + "proxy.invalid:3128", ReasonConnect, "the proxy http://proxy.invalid:3128 cannot be reached: the name could not be looked up"},
		"no TLS":           {"https://" + proxyLogin + talks.Addr().String(), ReasonConnect, "does not look like a TLS handshake"},
		"no SOCKS":         {"socks5://" + proxyLogin + talks.Addr().String(), ReasonConnect, "unexpected protocol version"},
		"SOCKS and more":   {"socks5://" + more.Addr().String(), ReasonConnect, "something of its own"},
		"SOCKS, no user":   {"socks5://" + socksProxy(t, "u", "p", 0).Addr().String(), ReasonConnect, "no acceptable authentication methods"},
		"SOCKS, bad user":  {"socks5://" + proxyLogin + socksProxy(t, "u", "p", 0).Addr().String(), ReasonConnect, "authentication failed"},
		"SOCKS, forbidden": {"socks5://" + proxyLogin + socksProxy(t, "", "", 2).Addr().String(), ReasonConnect, "not allowed by ruleset"},
		"SOCKS, unknown":   {"socks5://" + proxyLogin + socksProxy(t, "", "", 77).Addr().String(), ReasonConnect, "77"},
	} {
		e := tryCreate(t, signedIn(t, through(t, config(service.address()), test.address)))
		if e == nil || e.Applied != No || e.Status != 0 || e.Reason != test.reason || !strings.Contains(e.Message, test.text) {
			t.Fatalf("%v: %v, %s, want not applied, %s, %q", name, e, e.Reason, test.reason, test.text)
		}
		if text := e.Error() + e.Hint; strings.Contains(text, "p4nted") || strings.Contains(text, "us@er") || test.reason != ReasonConnect && e.Hint == "" {
			t.Errorf("%v: %s, hint %s", name, e, e.Hint)
		}
	}
}

// fault 45: a client gives up on a proxy that never ends its answer, or never begins it.
func TestSlowAndEndlessProxiesAreGivenUp(t *testing.T) {
	endless := connectProxy(t, func(c net.Conn, _ *http.Request) string {
		_, err := io.WriteString(c, "HTTP/1.1 200 x\r\n")
		for err == nil {
			_, err = io.WriteString(c, "X: "+strings.Repeat("x", 4096)+"\r\n")
		}
		return " "
	})
	silent := listen(t, func(p *peer, c net.Conn) { io.Copy(io.Discard, c) })
	for _, proxy := range []string{endless.address(), "http://" + silent.Addr().String(), "socks5://" + silent.Addr().String(), "https://" + silent.Addr().String()} {
		c := through(t, config("https://service.invalid"), proxy)
		c.Timeout = 300 * time.Millisecond
		began := time.Now()
		e := tryCreate(t, signedIn(t, c))
		if e == nil || e.Applied != No || e.Reason != ReasonConnect || !strings.Contains(e.Message, "proxy "+proxy) || time.Since(began) > dialLimit {
			t.Errorf("%s: %v after %v", proxy, e, time.Since(began))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := signedIn(t, through(t, config("https://service.invalid"), "http://"+silent.Addr().String())).Create(ctx, someLead()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestProxyAddressesAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"proxy.example.com:3128": "http://proxy.example.com:3128", "http://Proxy.example.com./": "http://proxy.example.com:80", "HTTPS://p": "https://p:443",
		"socks5://u:p@[::1]": "socks5://[::1]:1080", "socks5h://p:99": "socks5://p:99", "u:p%40@p:1": "http://p:1",
		"": "", "http://": "", "ftp://p": "", "http://p:0": "", "http://p:99999": "", "http://p/x": "", "http://p?x": "", "http://p#": "", "http://u:pl4nted#x@p": "",
		"http://u:pl4nted/x@p": "", "http://u:12/3pl4nted@p": "", "http://p q": "", "http://u:%zz@p": "", "socks5://" + strings.Repeat("u", 256) + "@p": "", "socks4://p": "",
	} {
		p, err := ParseProxy(text)
		switch {
		case want == "" && (err == nil || strings.Contains(err.Error(), "pl4nted")):
			t.Errorf("%q: %v, %v", text, p, err)
		case want != "" && (err != nil || p.String() != want):
			t.Errorf("%q: %v, %v, want %s", text, p, err, want)
		}
	}
}
