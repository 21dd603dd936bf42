package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"leadferry/internal/testsupport"
	"leadferry/leadapi/sandbox"
)

// The service is reached with TLS and client certificates through a proxy, and both misbehave. Every row becomes one
// lead or is in doubt, and one lead once a person has settled it. faults 43, 140
func TestUnreliableServiceBehindTLSAndAProxy(t *testing.T) {
	t.Parallel()
	const rows, inFlight = 40, 8
	moods := []struct {
		name, faults string
		idleClose    time.Duration
		sure         bool        // no row may be in doubt
		proxy        map[int]int // by number of the request: a status, or -1 to drop it
	}{
		{name: "well", sure: true},
		{name: "a storm of 429", faults: "429:10%,retry-after=0,seed=3", sure: true, proxy: map[int]int{2: 503}},
		{name: "idle connections are closed", faults: "slow/9:30ms", idleClose: 5 * time.Millisecond},
		{name: "connections close after answers", faults: "close/3"},
		{name: "packed", faults: "gzip/2", sure: true},
		{name: "lost answers", faults: "create.drop-stored#9,create.drop#20,update.drop/10", proxy: map[int]int{3: -1}},
	}
	for _, mood := range moods {
		t.Run(mood.name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, sandbox.Options{Faults: mood.faults}, testsupport.Network{
				TLS: true, Mutual: true, Apart: true, Proxy: url.UserPassword("ann", "proxy-password"), IdleClose: mood.idleClose,
				ProxyDoes: func(n int) int { return mood.proxy[n] },
			})
			w.leads(rows)
			w.write("leads.yaml", mappingText+"  external_id: \"{id}\"\n")
			code, out := w.run("import -m leads.yaml leads.csv --out run -c", itoa(inFlight), "--retries", "20")
			s := w.summary("run/summary.json")
			if code != 0 && code != 5 || s.Rows.Created+s.Rows.InDoubt != rows || mood.sure && s.Rows.InDoubt > 0 || s.Rows.InDoubt > inFlight {
				t.Errorf("exit %d, %+v, answers %v\n%s", code, s.Rows, w.service.Counts(), out)
			}
			if n := w.way.Tunnels.Load(); n == 0 || strings.Contains(out, "proxy-password") {
				t.Errorf("%d tunnels through the proxy\n%s", n, out)
			}
			for n := 0; code != 0 && n < 9; n++ { // the service goes on failing
				w.settle()
				code, _ = w.run("import -m leads.yaml leads.csv --out none -c 1 --retries 20")
			}
			w.complete(rows)
			if leads, err := w.service.Leads(); err != nil || len(leads) != rows || fmt.Sprint(leads[0].Content["importRef"]) != leads[0].ExternalID {
				t.Errorf("%d leads, %v", len(leads), err)
			}
		})
	}
}

// config check connects as a run does, and says what is missing.
func TestConfigCheckOnANetwork(t *testing.T) {
	t.Parallel()
	n := testsupport.Network{TLS: true, Mutual: true, Apart: true, Proxy: url.UserPassword("ann", "p@ss")}
	w := newWorldOn(t, sandbox.Options{}, n)
	out := w.must(0, "config check")
	for _, want := range []string{
		"  ok      proxy    http://127.0.0.1:", "(environment LEADFERRY_PROXY)", "  ok      sign-in ",
		"certificate of CN=test authority, good for 6 days more; it asks for a client certificate",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("config check does not say %q:\n%s", want, out)
		}
	}
	w.env = append(w.env, "LEADFERRY_CA_FILE=")
	out += w.must(3, "config check")
	if !strings.Contains(out, "  FAILED  tls ") || !strings.Contains(out, "--ca-file") || strings.Contains(out, "p@ss") || strings.Contains(out, "p%40ss") {
		t.Errorf("config check without the authority:\n%s", out)
	}
	w.env = append(w.env, "SSL_CERT_FILE=.", "SSL_CERT_DIR=tmp")
	contains(t, w.must(2, "config check"), "SSL_CERT_FILE")
}

// address is where the sandbox listens.
func (w *world) address() string {
	for _, v := range w.env {
		if url, ok := strings.CutPrefix(v, "LEADFERRY_LEADS_URL=http://"); ok {
			return url
		}
	}
	w.t.Fatal("no sandbox")
	return ""
}
