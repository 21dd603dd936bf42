package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// crmText is the mapping of a CRM's export.
const crmText = mappingText + `    stageOf: "{stage}"
  external_id: "{id}"
  status: "{stage}"
`

// stages are the statuses that rows pass through.
var stages = []string{"open", "contacted", "inProgress", "onHold", "closedWon"}

// export writes a version of the CRM's export. About half of its rows differ from the version before.
func (w *world) export(rows, version int) {
	w.t.Helper()
	var b strings.Builder
	b.WriteString("id,org,name,stage\n")
	for i := range rows {
		n := (version + i%2) / 2
		fmt.Fprintf(&b, "L%05d,%s,Person %d of %d,%s\n", i, organizations[i%3], i, n, stages[(i+n)%len(stages)])
	}
	w.write("crm.csv", b.String())
}

// equal compares the service's leads with a version of the export, and the checkpoint with the service.
func (w *world) equal(rows, version int) {
	w.t.Helper()
	leads := w.made()
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

// TestKillSync kills syncs at random moments, as TestKill does imports. The next sync continues, no row gets in doubt,
// and in the end the service holds what the file says. Invariants 2 and 4; faults 1, 3, 79
func TestKillSync(t *testing.T) {
	t.Parallel()
	for _, m := range matrix {
		t.Run("-c "+itoa(m.concurrency), func(t *testing.T) {
			t.Parallel()
			f, rows := figures{concurrency: m.concurrency}, rowsFor(m.each)
			w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
			w.write("crm.yaml", crmText)
			w.export(rows, 0)
			w.must(0, "import -m crm.yaml crm.csv --out none -c 64")
			for f.kills < *kills {
				f.chains++
				w.export(rows, f.chains)
				w.chainOfSyncs(&f)
				w.equal(rows, f.chains)
			}
			if f.worst > f.bound {
				t.Errorf("%d rows in doubt, but an update may always be repeated", f.worst)
			}
			w.inStep(rows)
			t.Log(f)
		})
	}
}

// chainOfSyncs kills one sync again and again, and completes it.
func (w *world) chainOfSyncs(f *figures) {
	w.t.Helper()
	args := words("sync -m crm.yaml crm.csv --out none -c")
	for n := 1; n <= chained && f.kills < *kills; n++ {
		if w.killWithin(100*time.Millisecond, append(args, itoa(f.concurrency))...) {
			break
		}
		f.killed(n, len(w.exported("in_doubt")))
	}
	w.must(0, append(args, "64")...)
}

// inStep fails the test if another sync sends something.
func (w *world) inStep(rows int) {
	w.t.Helper()
	before := w.service.Counts()["update"][200]
	w.must(0, "sync -m crm.yaml crm.csv --out none --summary last.json")
	if s := w.summary("last.json"); s.Rows.Unchanged != rows || s.Requests.Create+s.Requests.Update != 0 || w.service.Counts()["update"][200] != before {
		w.t.Errorf("a sync of what is in step: %+v, %+v", s.Rows, s.Requests)
	}
}

// TestKillsKeepTheOrderOfRows kills a sync of 300 rows of 60 leads, each under two keys. Invariant 4; fault 80
func TestKillsKeepTheOrderOfRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
	w.write("crm.yaml", strings.Replace(crmText, `external_id: "{id}"`, `external_id: {from: "{id}", apply: ["replace:/a-//"]}`, 1))
	w.export(60, 0)
	w.must(0, "import -m crm.yaml crm.csv --out none")
	text, last := "id,org,name,stage\n", map[string]string{}
	for i := range 300 {
		lead, name := fmt.Sprintf("L%05d", rand.N(60)), fmt.Sprint("Person ", i)
		text, last[lead] = text+[]string{"", "a-"}[rand.N(2)]+lead+","+organizations[0]+","+name+",open\n", name
	}
	w.write("crm.csv", text)
	w.chainOfSyncs(&figures{concurrency: 16})
	for _, l := range w.made() {
		if want := last[l.ExternalID]; want != "" && l.Content["name"] != want {
			t.Errorf("%s holds %v, want %s", l.ExternalID, l.Content, want)
		}
	}
}

// TestCrashStepsOfSync crashes at each step of one row's update. The next sync updates the
// lead if necessary, and the one after sends nothing. fault 2
func TestCrashStepsOfSync(t *testing.T) {
	t.Parallel()
	program, err := crashing()
	must.Do(t, err)
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
		{"commit settle:1", "1", true},
		{"durable settle:1", "1", false},
		{"before results line:1", "1", false},
	} {
		t.Run(step.point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{})
			w.write("crm.yaml", crmText)
			w.export(1, 0)
			w.must(0, "import -m crm.yaml crm.csv --out none")
			before := w.service.Counts()["update"][200]
			w.export(1, 2)
			c := w.command("sync -m crm.yaml crm.csv --out died")
			c.Path = program
			c.Env = append(slices.Clone(c.Env), "LEADFERRY_FAILPOINT="+step.point)
			if out, err := c.CombinedOutput(); err == nil || c.ProcessState.ExitCode() != -1 {
				t.Fatalf("the program never reached this point: %v\n%s", err, out)
			}
			if n := w.service.Counts()["update"][200] - before; itoa(n) != step.updates {
				t.Errorf("%d updates were applied, want %s", n, step.updates)
			}
			w.must(0, "sync -m crm.yaml crm.csv --out none --summary next.json")
			if s := w.summary("next.json"); (s.Requests.Update == 1) != step.again || s.Rows.InDoubt != 0 {
				t.Errorf("the next sync: %+v, %+v", s.Rows, s.Requests)
			}
			w.equal(1, 2)
			w.must(0, "sync -m crm.yaml crm.csv --out none --summary last.json")
			if s := w.summary("last.json"); s.Rows.Unchanged != 1 || s.Requests.Update != 0 {
				t.Errorf("the one after: %+v, %+v", s.Rows, s.Requests)
			}
		})
	}
}

var histories = flag.Int("histories", 1, "how many random histories TestReconcileChangesNoLead tries")

const (
	reconcileMapping = `version: 1
key: "{id}"
assign: [{organization: "%s"}]
lead:
  type_key: t
  type_label: T
  external_id: "{id}"
  status:
    from: "{stage}"
    map: {New: open, Working: inProgress, Busy: inProgress, Parked: onHold, Won: closedWon}
    pull: {inProgress: Busy}
  content: {name: "{name}"}
`
	consoleMapping = "version: 1\nkey: '{lead}'\nlead_id: '{lead}'\nlead: {status: '{status}', content: {name: '{name}'}}"
)

// The CRM and people in the console change leads at random, and runs are killed. A reconciliation changes no lead of
// the service. After a sync --conflict service, and once the CRM has taken over its pull file, both sides are equal,
// and the reconciliation reports that. An ExternalID that was set in the console stays until a sync --conflict file.
func TestReconcileChangesNoLead(t *testing.T) {
	t.Parallel()
	for seed := range *histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runHistory(t, rand.New(rand.NewPCG(uint64(seed), 17)))
		})
	}
}

var (
	crmStages   = []string{"New", "Working", "Parked", "Won"}
	stageStatus = map[string]string{"New": "open", "Working": "inProgress", "Busy": "inProgress", "Parked": "onHold", "Won": "closedWon"}
)

// runHistory lets both sides change leads twice, and compares them after each sync.
func runHistory(t *testing.T, random *rand.Rand) {
	w := newWorld(t, sandbox.Options{})
	w.write("crm.yaml", fmt.Sprintf(reconcileMapping, organizations[0]))
	w.write("console.yaml", consoleMapping)
	stages, names := make([]string, 6), make([]string, 6)
	export := func() {
		var b strings.Builder
		b.WriteString("id,stage,name\n")
		for i := range stages {
			fmt.Fprintf(&b, "L%d,%s,%s\n", i, stages[i], names[i])
		}
		w.write("crm.csv", b.String())
	}
	for i := range stages {
		stages[i], names[i] = crmStages[random.IntN(4)], "Ann"
	}
	export()
	w.must(0, "import -m crm.yaml crm.csv --out none")
	for range 2 {
		w.console(random)
		for i := range stages {
			if random.IntN(2) == 0 {
				stages[i] = crmStages[random.IntN(4)]
			}
			if random.IntN(4) == 0 {
				names[i] += "a"
			}
		}
		export()
		before := w.held()
		if w.run("reconcile -m crm.yaml crm.csv --out none --fresh 1ms"); random.IntN(2) == 0 {
			w.killWithin(300*time.Millisecond, "reconcile -m crm.yaml crm.csv --out none --rate 20")
		}
		if after := w.held(); after != before {
			t.Fatalf("a reconciliation changed leads from\n%sto\n%s", before, after)
		}
		w.must(0, "sync -m crm.yaml crm.csv --out none --conflict service --check-remote=all --pull pull.csv")
		for _, line := range w.table(w.text("pull.csv")) {
			var i int
			fmt.Sscanf(line["external_id"], "L%d", &i)
			stages[i] = line["status"]
		}
		w.copyNames(names)
		export()
		w.must(0, "reconcile -m crm.yaml crm.csv --out none --summary s.json")
		if s := w.summary("s.json"); s.Reconciliation.Verdicts[0].Leads != len(stages) {
			t.Fatalf("verdicts %+v", s.Reconciliation.Verdicts)
		}
		w.agreesWith(stages, names)
		w.must(0, "sync -m crm.yaml crm.csv --out none")
	}
	w.write("typed.yaml", "version: 1\nkey: '{lead}'\nlead_id: '{lead}'\nlead: {external_id: '{external}'}\n")
	w.write("console.csv", "lead,external\n"+w.exported("")[0]["lead_id"]+",typed\n")
	w.must(0, "sync -m typed.yaml console.csv --out none --checkpoint console.db --conflict file")
	before := w.held()
	w.must(1, "reconcile -m crm.yaml crm.csv --out none --reconciliation r.csv --results results.csv")
	for i, line := range w.table(w.text("r.csv")) {
		if confirmed := w.table(w.text("results.csv"))[i]["external_id"]; confirmed != line["key"] {
			t.Fatalf("the results name %q, which nobody has confirmed, as the ExternalID of %v", confirmed, line)
		}
		if moved := line["changed_by"] == "service"; moved != (line["external_id_service"] == "typed") || line["external_id"] != line["key"] || w.held() != before {
			t.Fatalf("%v\n%s", line, w.held())
		}
	}
	w.must(1, "sync -m crm.yaml crm.csv --out none")
	if w.held() != before {
		t.Fatal(w.held())
	}
	w.must(0, "sync -m crm.yaml crm.csv --out none --conflict file")
	w.agreesWith(stages, names)
}

// console changes statuses and names as people do, by a sync with another checkpoint.
func (w *world) console(random *rand.Rand) {
	leads := w.made()
	text := "lead,status,name\n"
	for _, l := range leads {
		if random.IntN(2) == 0 {
			text += l.ID + "," + stageStatus[crmStages[random.IntN(4)]] + "," + []string{"", "Zoe", "Kim"}[random.IntN(3)] + "\n"
		}
	}
	w.write("console.csv", text)
	w.must(0, "sync -m console.yaml console.csv --out none --checkpoint console.db --conflict file --check-remote=all")
}

// copyNames copies the names of leads from the service, as a person does.
func (w *world) copyNames(names []string) {
	leads := w.made()
	for _, l := range leads {
		var i int
		fmt.Sscanf(l.ExternalID, "L%d", &i)
		names[i] = l.Content["name"].(string)
	}
}

// held returns all that a reconciliation may not change in the service.
func (w *world) held() string {
	leads := w.made()
	var b strings.Builder
	for _, l := range leads {
		fmt.Fprintln(&b, l.ID, l.Status, l.ExternalID, l.Content, l.OwnerID)
	}
	return b.String()
}

// agreesWith fails the test unless each lead has the status and name of its row. Its ExternalID is the row's key.
func (w *world) agreesWith(stages, names []string) {
	leads := w.made()
	for _, l := range leads {
		i := -1
		if fmt.Sscanf(l.ExternalID, "L%d", &i); i < 0 || l.Status != stageStatus[stages[i]] || l.Content["name"] != names[i] {
			w.t.Errorf("%s is %s, %v, its row %s, %s", l.ExternalID, l.Status, l.Content["name"], stages, names)
		}
	}
}
