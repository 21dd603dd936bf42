package e2e

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/internal/testsupport"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// TestEveryNetwork: whatever stands between, and however the service behaves, every row is one lead or in doubt, and
// one lead once a person has looked. faults 43, 140
func TestEveryNetwork(t *testing.T) {
	t.Parallel()
	const rows, inFlight = 40, 8
	ways := []struct {
		name    string
		network testsupport.Network
	}{
		{"TLS", testsupport.Network{TLS: true, Apart: true}},
		{"everything", testsupport.Network{TLS: true, Mutual: true, Apart: true, Proxy: url.UserPassword("ann", "proxy-password")}},
	}
	moods := []struct {
		name, faults string
		idleClose    time.Duration
		sure         bool        // nothing that happens leaves doubt
		proxy        map[int]int // what the proxy does to a request: a status, or -1 to drop it
	}{
		{name: "well", sure: true},
		{name: "a storm of 429", faults: "429:10%,retry-after=0,seed=3", sure: true, proxy: map[int]int{2: 503}},
		{name: "resting connections are closed", faults: "slow/9:30ms", idleClose: 5 * time.Millisecond},
		{name: "closed behind answers", faults: "close/3"},
		{name: "packed", faults: "gzip/2", sure: true},
		{name: "answers are lost", faults: "create.drop-stored#9,create.drop#20,update.drop/10", proxy: map[int]int{3: -1}},
	}
	for i := range len(ways) * len(moods) {
		way, mood := ways[i/len(moods)], moods[i%len(moods)]
		t.Run(way.name+"/"+mood.name, func(t *testing.T) {
			t.Parallel()
			way.network.IdleClose = mood.idleClose
			way.network.ProxyDoes = func(n int) int { return mood.proxy[n] }
			w := newWorldOn(t, sandbox.Options{Faults: mood.faults}, way.network)
			w.leads(rows)
			w.write("leads.yaml", mappingText+"  external_id: \"{id}\"\n")
			code, out := w.run("import -m leads.yaml leads.csv --out run -c", itoa(inFlight), "--retries", "20")
			s := w.summary("run/summary.json")
			if code != 0 && code != 5 || s.Rows.Created+s.Rows.InDoubt != rows || mood.sure && s.Rows.InDoubt > 0 || s.Rows.InDoubt > inFlight {
				t.Errorf("exit %d, %+v, answers %v\n%s", code, s.Rows, w.service.Counts(), out)
			}
			if n := w.way.Tunnels.Load(); (n > 0) != (way.network.Proxy != nil) || strings.Contains(out, "proxy-password") {
				t.Errorf("%d ways through the proxy\n%s", n, out)
			}
			for n := 0; code != 0 && n < 9; n++ { // the service stays as it is
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

// TestConfigCheckOnANetwork: config check goes the way of a run, and tells what is missing.
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
}

// network stands between the program and the sandbox. While it is cut, connections are
// accepted and nothing passes in either direction; what was cut stays dead afterwards.
type network struct {
	target string
	dead   sync.Map // connections that have lost something
	lost   atomic.Int32
	cut    atomic.Bool
}

// between lets the program reach the sandbox through a network only.
func (w *world) between() *network {
	n := &network{target: w.address()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(w.t, err)
	w.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go n.carry(c)
		}
	}()
	url := "http://" + l.Addr().String()
	w.env = append(w.env, "LEADFERRY_BASE_URL="+url, "LEADFERRY_LEADS_URL="+url)
	return n
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

// carry is one connection, until the program closes it.
func (n *network) carry(program net.Conn) {
	defer program.Close()
	service, err := net.Dial("tcp", n.target)
	if err != nil {
		return
	}
	defer service.Close()
	var answers sync.WaitGroup
	answers.Go(func() { n.pass(program, service, program) })
	n.pass(service, program, program)
	service.Close()
	answers.Wait()
}

// pass carries what comes from one side to the other; id is the connection that both directions belong to.
func (n *network) pass(to io.Writer, from io.Reader, id net.Conn) {
	b := make([]byte, 32<<10)
	for {
		got, err := from.Read(b)
		if got > 0 && n.cut.Load() {
			if _, known := n.dead.LoadOrStore(id, true); !known {
				n.lost.Add(1)
			}
		}
		if _, dead := n.dead.Load(id); !dead && got > 0 {
			_, err = to.Write(b[:got])
		}
		if err != nil {
			return
		}
	}
}

// TestPartition cuts the network in mid-run. What is in flight falls in doubt, and so does each request that finds out
// whether answers come again, one at a time and more and more seldom; when the network is back, the run goes on by
// itself. That it does so within 30 s stands in the importer's tests, which have a clock of their own. A network that
// does not come back within --max-wait ends the run; the same command goes on later. fault 46
func TestPartition(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 400, 4
	for wait, want := range map[string]int{"15m": 5, "1s": 3} {
		t.Run("--max-wait "+wait, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
			n := w.between()
			w.leads(rows)
			c := w.start("import -m leads.yaml leads.csv --out none -c", itoa(concurrency), "--timeout", "1s", "--max-wait", wait, "--summary", "s.json")
			eventually(t, "some leads are made", func() bool { return len(w.byRef()) > 60 })
			n.cut.Store(true)
			if want == 5 {
				eventually(t, "two requests have found out that there is no answer", func() bool { return n.lost.Load() >= concurrency+2 })
				before := len(w.byRef())
				n.cut.Store(false)
				eventually(t, "the run has gone on", func() bool { return len(w.byRef()) > before })
			}
			c.Wait()
			n.cut.Store(false)
			s := w.summary("s.json")
			if c.ProcessState.ExitCode() != want || s.Rows.InDoubt == 0 || s.Rows.InDoubt > 2*concurrency ||
				s.Rows.Created+s.Rows.InDoubt+s.Rows.Pending != s.Rows.Read || (s.Rows.Pending > 0) != (want == 3) || (s.StopReason != "") != (want == 3) {
				t.Errorf("exit %d, want %d; %s: %+v; want at most %d in doubt", c.ProcessState.ExitCode(), want, s.StopReason, s.Rows, 2*concurrency)
			}
			w.settle()
			w.complete(rows)
		})
	}
}

// door is an HTTP server that can be shut: connections are refused, and those that are open end with their next answer.
type door struct {
	http http.Server
	addr string
	shut atomic.Bool
	open atomic.Int32 // connections
	busy atomic.Int64 // when something last became of one, in Unix nanoseconds
}

func (w *world) door() *door {
	d := &door{}
	d.http.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if d.shut.Load() {
			rw.Header().Set("Connection", "close")
		}
		w.service.ServeHTTP(rw, r)
	})
	d.http.ConnState = func(_ net.Conn, s http.ConnState) {
		d.busy.Store(time.Now().UnixNano())
		switch s {
		case http.StateNew:
			d.open.Add(1)
		case http.StateClosed:
			d.open.Add(-1)
		}
	}
	w.t.Cleanup(func() { d.http.Close() })
	return d
}

// quiet reports whether no more answers go through the door that was shut: no connection is left, or those that are
// have rested for longer than the program leaves them for a create.
func (d *door) quiet() bool {
	return d.open.Load() == 0 || time.Since(time.Unix(0, d.busy.Load())) > 2*time.Second
}

// listen opens the door, at the address where it was before.
func (d *door) listen(t *testing.T) (shut func()) {
	t.Helper()
	// No connection of another test leaves from this address, so that none takes the port meanwhile.
	l, err := net.Listen("tcp", cmp.Or(d.addr, "127.0.0.2:0"))
	if err != nil && d.addr == "" { // not every system has it
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	must.Do(t, err)
	d.addr = l.Addr().String()
	d.shut.Store(false)
	go d.http.Serve(l)
	return func() { d.shut.Store(true); l.Close() }
}

// TestConnectionsRefused: of what is refused before a byte has left, nothing is in
// doubt, and it is sent when the service is back. faults 33, 46
func TestConnectionsRefused(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 400, 4
	w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
	d := w.door()
	shut := d.listen(t)
	w.env = append(w.env, "LEADFERRY_BASE_URL=http://"+d.addr, "LEADFERRY_LEADS_URL=http://"+d.addr)
	w.leads(rows)
	c := w.start("import -m leads.yaml leads.csv --out none -c", itoa(concurrency), "--summary", "s.json")
	eventually(t, "some leads are made", func() bool { return len(w.byRef()) > 60 })
	shut()
	eventually(t, "no connection is used", d.quiet)
	time.Sleep(time.Second) // this is the fault
	before := len(w.byRef())
	d.listen(t)
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	s := w.summary("s.json")
	if s.Rows.Created != rows || before == rows {
		t.Errorf("%+v; %d leads were there before", s.Rows, before)
	}
	w.complete(rows)
}
