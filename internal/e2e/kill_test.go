package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// TestKill kills imports of 2,000 rows at random moments until it has killed often
// enough, and settles what is in doubt as a person would, by the service's own
// ledger. Invariants 1, 2 and 3; faults 1, 3.
func TestKill(t *testing.T) {
	t.Run("create", func(t *testing.T) { killOften(t, mappingText) })
	t.Run("create and link", func(t *testing.T) { killOften(t, mappingText+linkText) })
}

// linkText makes the mapping ask for an ExternalID too.
const linkText = "  external_id: \"{id}\"\n"

func killOften(t *testing.T, mapping string) {
	const rows, concurrency = 2000, 8
	for killed := 0; killed < *kills; {
		w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
		w.leads(rows)
		w.write("leads.yaml", mapping)
		doubts := 0
		for killed < *kills && !w.killOnce(concurrency) {
			killed++
			now := len(w.exported("in_doubt"))
			if now-doubts > 2*concurrency {
				t.Errorf("kill %d: %d rows fell in doubt, more than 2 × %d", killed, now-doubts, concurrency)
			}
			doubts = now
		}
		if status := w.must(0, "checkpoint", "status"); doubts > 0 && !strings.Contains(status, "unfinished") {
			t.Errorf("killed runs are not listed:\n%s", status)
		}
		t.Logf("%d kills so far, %d rows in doubt in this import", killed, doubts)
		w.settle()
		w.complete(rows)
		if strings.HasSuffix(mapping, linkText) {
			w.linked()
		}
	}
}

// linked checks on the service's side that every lead carries its row's ExternalID.
func (w *world) linked() {
	w.t.Helper()
	leads, err := w.service.Leads()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range leads {
		if l.ExternalID == "" || l.ExternalID != l.Content["importRef"] {
			w.t.Errorf("the lead of row %v is linked to %q", l.Content["importRef"], l.ExternalID)
		}
	}
}

// killOnce starts the import and kills it; true means that it ended by itself.
func (w *world) killOnce(concurrency int) bool {
	w.t.Helper()
	return w.killWithin(100*time.Millisecond, "import", "-m", "leads.yaml", "leads.csv", "-c", itoa(concurrency), "--out", "none", "--max-in-doubt", "0")
}

// killWithin starts a command and kills it at a random moment of the time that follows
// its start; true means that it ended by itself.
func (w *world) killWithin(most time.Duration, args ...string) bool {
	w.t.Helper()
	c := w.command(args...)
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case <-ended:
		return true
	case <-time.After(20*time.Millisecond + rand.N(most)):
		if err := c.Process.Kill(); err != nil {
			w.t.Fatal(err)
		}
		<-ended
		return false
	}
}

// settle looks every row in doubt up in the service's ledger, as a person does in
// the console, and writes down what was found.
func (w *world) settle() {
	w.t.Helper()
	found := w.byRef()
	doubt := w.exported("in_doubt")
	if len(doubt) == 0 {
		return
	}
	var file strings.Builder
	file.WriteString("key,lead_id\n")
	for _, d := range doubt {
		if d["file"] == "" || d["line"] == "" || d["updated_at"] == "" || d["organization_id"] == "" {
			w.t.Errorf("a row in doubt lacks what a person needs to find it: %v", d)
		}
		file.WriteString(d["key"] + "," + found[d["key"]] + "\n")
	}
	w.write("found.csv", file.String())
	w.must(0, "checkpoint", "resolve", "found.csv")
}

// complete runs the import to its end and compares both sides.
func (w *world) complete(rows int) {
	w.t.Helper()
	w.must(0, "import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--summary", "last.json", "--results", "last.csv")
	ledger := w.byRef()
	if len(ledger) != rows {
		w.t.Errorf("the service holds %d leads, want %d", len(ledger), rows)
	}
	known := w.exported("")
	if len(known) != rows {
		w.t.Errorf("the checkpoint knows %d rows, want %d", len(known), rows)
	}
	for _, k := range known {
		if k["state"] != "created" || k["lead_id"] != ledger[k["key"]] {
			w.t.Errorf("row %s: checkpoint says %s %s, the service %s", k["key"], k["state"], k["lead_id"], ledger[k["key"]])
		}
	}
	results := w.results("last.csv")
	if len(results) != rows {
		w.t.Errorf("%d result lines, want %d", len(results), rows)
	}
	for _, r := range results {
		if r["lead_id"] != ledger[r["key"]] {
			w.t.Errorf("row %s: results say %s, the service %s", r["key"], r["lead_id"], ledger[r["key"]])
		}
	}
}
