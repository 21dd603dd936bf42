package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// TestEveryNetwork: whatever stands between, and however the service behaves, every row is one lead or in doubt, and one lead
// once a person has looked. faults 43, 140
func TestEveryNetwork(t *testing.T) {
	t.Parallel()
	const rows, inFlight = 40, 8
	ways := []struct {
		name    string
		network sandbox.Network
	}{
		{"TLS", sandbox.Network{TLS: &sandbox.TLS{}, LeadsAddr: "127.0.0.1:0"}},
		{"everything", sandbox.Network{
			TLS: &sandbox.TLS{Mutual: true}, LeadsAddr: "127.0.0.1:0", ProxyAddr: "127.0.0.1:0", ProxyUser: url.UserPassword("ann", "proxy-password"),
		}},
	}
	moods := []struct {
		name, faults string
		idleClose    time.Duration
		sure         bool // nothing that happens leaves doubt
	}{
		{name: "well", sure: true},
		{name: "a storm of 429", faults: "429:10%,proxy.503#2,retry-after=0,seed=3", sure: true},
		{name: "resting connections are closed", faults: "slow/9:30ms", idleClose: 5 * time.Millisecond},
		{name: "closed behind answers", faults: "close/3"},
		{name: "packed", faults: "gzip/2,deflate/3,bom/5", sure: true},
		{name: "answers are lost", faults: "create.drop-stored#9,create.drop#20,update.drop/10,proxy.drop#3"},
	}
	for i := range len(ways) * len(moods) {
		way, mood := ways[i/len(moods)], moods[i%len(moods)]
		t.Run(way.name+"/"+mood.name, func(t *testing.T) {
			t.Parallel()
			way.network.IdleClose = mood.idleClose
			w := newWorldOn(t, sandbox.Options{Faults: mood.faults}, way.network)
			w.leads(rows)
			w.write("leads.yaml", mappingText+"  external_id: \"{id}\"\n")
			code, out := w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "run", "-c", itoa(inFlight), "--retries", "20")
			s := w.summary("run/summary.json")
			if code != 0 && code != 5 || s.Rows.Created+s.Rows.InDoubt != rows || mood.sure && s.Rows.InDoubt > 0 || s.Rows.InDoubt > inFlight {
				t.Errorf("exit %d, %+v, answers %v\n%s", code, s.Rows, w.service.Counts(), out)
			}
			if n := w.service.Counts()["proxy"][200]; (n > 0) != (way.network.ProxyAddr != "") || strings.Contains(out, "proxy-password") {
				t.Errorf("%d ways through the proxy\n%s", n, out)
			}
			w.settle()
			w.complete(rows)
			if leads, err := w.service.Leads(); err != nil || len(leads) != rows || fmt.Sprint(leads[0].Content["importRef"]) != leads[0].ExternalID {
				t.Errorf("%d leads, %v", len(leads), err)
			}
		})
	}
}
