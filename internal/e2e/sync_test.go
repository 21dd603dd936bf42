package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// crmText is the mapping of what a CRM says of leads: {@key} finds them again.
const crmText = mappingText + `    stageOf: "{stage}"
  external_id: "{id}"
  status: "{stage}"
`

// stages are statuses that rows go through.
var stages = []string{"open", "contacted", "inProgress", "onHold", "closedWon"}

// export writes what the CRM says in its nth version: about half of its rows differ
// from the version before.
func (w *world) export(rows, version int) {
	w.t.Helper()
	var b strings.Builder
	b.WriteString("id,org,name,stage\n")
	for i := range rows {
		n := (version + i%2) / 2
		fmt.Fprintf(&b, "L%05d,%s,Person %d of %d,%s\n", i, sandbox.Organizations()[i%3].ID, i, n, stages[(i+n)%len(stages)])
	}
	w.write("crm.csv", b.String())
}

// equal compares the service with a version of the export, and the checkpoint with
// the service.
func (w *world) equal(rows, version int) {
	w.t.Helper()
	leads, err := w.service.Leads()
	if err != nil {
		w.t.Fatal(err)
	}
	if len(leads) != rows {
		w.t.Errorf("the service holds %d leads, want %d", len(leads), rows)
	}
	known := map[string]map[string]string{}
	for _, k := range w.exported("") {
		known[k["lead_id"]] = k
	}
	for _, l := range leads {
		var i int
		if _, err := fmt.Sscanf(fmt.Sprint(l.Content["importRef"]), "L%d", &i); err != nil {
			w.t.Fatal(err)
		}
		n := (version + i%2) / 2
		name, stage := fmt.Sprintf("Person %d of %d", i, n), stages[(i+n)%len(stages)]
		if l.Content["name"] != name || l.Status != stage || l.Content["stageOf"] != stage || l.ExternalID != fmt.Sprintf("L%05d", i) {
			w.t.Errorf("row %d: the service holds %v, %s, %s", i, l.Content, l.Status, l.ExternalID)
		}
		if k := known[l.ID]; k["status"] != l.Status || k["external_id"] != l.ExternalID || k["state"] != "created" {
			w.t.Errorf("row %d: the checkpoint says %v, the service %s, %s", i, k, l.Status, l.ExternalID)
		}
	}
}

// TestKillSync kills syncs at random moments, as TestKill does imports. The next one
// goes on where it was, none falls in doubt, and in the end the service holds what the
// file says. Invariants 2 and 4; faults 1, 3, 79
func TestKillSync(t *testing.T) {
	t.Parallel()
	for _, m := range matrix {
		t.Run("-c "+itoa(m.concurrency), func(t *testing.T) {
			t.Parallel()
			f := figures{concurrency: m.concurrency}
			w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
			w.write("crm.yaml", crmText)
			w.export(m.rows, 0)
			w.must(0, "import", "-m", "crm.yaml", "crm.csv", "--out", "none", "-c", "64")
			for f.kills < *kills {
				f.chains++
				w.export(m.rows, f.chains)
				w.chainOfSyncs(&f)
				w.equal(m.rows, f.chains)
			}
			if f.worst > f.bound {
				t.Errorf("%d rows in doubt, but an update may always be repeated", f.worst)
			}
			w.inStep(m.rows)
			t.Log(f)
		})
	}
}

// chainOfSyncs kills one sync again and again, and completes it.
func (w *world) chainOfSyncs(f *figures) {
	w.t.Helper()
	args := []string{"sync", "-m", "crm.yaml", "crm.csv", "--out", "none", "-c"}
	for n := 1; n <= chained && f.kills < *kills; n++ {
		if w.killWithin(100*time.Millisecond, append(args, itoa(f.concurrency))...) {
			break
		}
		f.killed(n, len(w.exported("in_doubt")))
	}
	w.must(0, append(args, "64")...)
}

// inStep checks that another sync sends nothing.
func (w *world) inStep(rows int) {
	w.t.Helper()
	before := w.service.Counts()["update"][200]
	w.must(0, "sync", "-m", "crm.yaml", "crm.csv", "--out", "none", "--summary", "last.json")
	if s := w.summary("last.json"); s.Rows.Unchanged != rows || s.Requests.Create+s.Requests.Update != 0 || w.service.Counts()["update"][200] != before {
		w.t.Errorf("a sync of what is in step: %+v, %+v", s.Rows, s.Requests)
	}
}

// TestCrashStepsOfSync dies at each step of one row's update. The next sync brings the
// lead in step, whatever the one before left, and the one after sends nothing. fault 2
func TestCrashStepsOfSync(t *testing.T) {
	t.Parallel()
	program, err := crashing()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		point   string
		updates string // that the service has applied by then
		again   bool   // the next sync sends the row
	}{
		{"before mark:1", "0", true},
		{"commit mark:1", "0", true},
		{"durable mark:1", "0", true},
		{"before update:1", "0", true},
		{"update answered:1", "1", true},
		{"commit outcome:1", "1", true},
		{"durable outcome:1", "1", false},
		{"before results line:1", "1", false},
	} {
		t.Run(step.point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{})
			w.write("crm.yaml", crmText)
			w.export(1, 0)
			w.must(0, "import", "-m", "crm.yaml", "crm.csv", "--out", "none")
			before := w.service.Counts()["update"][200]
			w.export(1, 2)
			c := w.command("sync", "-m", "crm.yaml", "crm.csv", "--out", "died")
			c.Path = program
			c.Env = append(slices.Clone(c.Env), "LEADFERRY_FAILPOINT="+step.point)
			if out, err := c.CombinedOutput(); err == nil || c.ProcessState.ExitCode() != -1 {
				t.Fatalf("the program never came there: %v\n%s", err, out)
			}
			if n := w.service.Counts()["update"][200] - before; itoa(n) != step.updates {
				t.Errorf("%d updates were applied, want %s", n, step.updates)
			}
			w.must(0, "sync", "-m", "crm.yaml", "crm.csv", "--out", "none", "--summary", "next.json")
			if s := w.summary("next.json"); (s.Requests.Update == 1) != step.again || s.Rows.InDoubt != 0 {
				t.Errorf("the next sync: %+v, %+v", s.Rows, s.Requests)
			}
			w.equal(1, 2)
			w.must(0, "sync", "-m", "crm.yaml", "crm.csv", "--out", "none", "--summary", "last.json")
			if s := w.summary("last.json"); s.Rows.Unchanged != 1 || s.Requests.Update != 0 {
				t.Errorf("the one after: %+v, %+v", s.Rows, s.Requests)
			}
		})
	}
}
