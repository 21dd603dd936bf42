package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

var histories = flag.Int("histories", 2, "how many random histories TestReconcileByTheLedger looks at")

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
	consoleMapping = "version: 1\nkey: '{lead}'\nlead_id: '{lead}'\nlead: {status: '{status}', content: {name: '{name}'}}\n"
)

// TestReconcileByTheLedger: whatever the CRM and people in the console made of leads, and where
// ever a run was killed, a reconciliation changes nothing of any but times, as the service itself
// holds them. After a sync that keeps the service's values, and once the CRM has taken over the pull
// file, both sides are equal, and the same reconciliation finds every row the same. An ExternalID of
// the console stands until the file's word counts.
func TestReconcileByTheLedger(t *testing.T) {
	t.Parallel()
	for seed := range *histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			tellHistory(t, rand.New(rand.NewPCG(uint64(seed), 17)))
		})
	}
}

var (
	crmStages   = []string{"New", "Working", "Parked", "Won"}
	stageStatus = map[string]string{"New": "open", "Working": "inProgress", "Busy": "inProgress", "Parked": "onHold", "Won": "closedWon"}
)

func tellHistory(t *testing.T, random *rand.Rand) {
	w := newWorld(t, sandbox.Options{})
	w.write("crm.yaml", fmt.Sprintf(reconcileMapping, sandbox.Organizations()[0].ID))
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
	w.must(0, "import", "-m", "crm.yaml", "crm.csv", "--out", "none")
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
		if w.run("reconcile", "-m", "crm.yaml", "crm.csv", "--out", "none", "--fresh", "1ms"); random.IntN(2) == 0 {
			w.killOnceIn("reconcile")
		}
		if after := w.held(); after != before {
			t.Fatalf("a reconciliation changed leads from\n%sto\n%s", before, after)
		}
		w.must(0, "sync", "-m", "crm.yaml", "crm.csv", "--out", "none", "--conflict", "service", "--check-remote=all", "--pull", "pull.csv")
		for _, line := range w.table(w.text("pull.csv")) {
			var i int
			fmt.Sscanf(line["external_id"], "L%d", &i)
			stages[i] = line["status"]
		}
		w.copyNames(names)
		export()
		w.must(0, "reconcile", "-m", "crm.yaml", "crm.csv", "--out", "none", "--summary", "s.json")
		if s := w.summary("s.json"); s.Reconciliation.Verdicts[0].Leads != len(stages) {
			t.Fatalf("verdicts %+v", s.Reconciliation.Verdicts)
		}
		w.agreesWith(stages, names)
		w.must(0, "sync", "-m", "crm.yaml", "crm.csv", "--out", "none")
	}
	w.write("typed.yaml", "version: 1\nkey: '{lead}'\nlead_id: '{lead}'\nlead: {external_id: '{external}'}\n")
	w.write("console.csv", "lead,external\n"+w.exported("")[0]["lead_id"]+",typed\n")
	w.must(0, "sync", "-m", "typed.yaml", "console.csv", "--out", "none", "--checkpoint", "console.db", "--conflict", "file")
	before := w.held()
	w.must(1, "reconcile", "-m", "crm.yaml", "crm.csv", "--out", "none", "--reconciliation", "r.csv")
	for _, line := range w.table(w.text("r.csv")) {
		if moved := line["changed_by"] == "service"; moved != (line["external_id_service"] == "typed") || line["external_id"] != line["key"] || w.held() != before {
			t.Fatalf("%v\n%s", line, w.held())
		}
	}
	w.must(1, "sync", "-m", "crm.yaml", "crm.csv", "--out", "none")
	if w.held() != before {
		t.Fatal(w.held())
	}
	w.must(0, "sync", "-m", "crm.yaml", "crm.csv", "--out", "none", "--conflict", "file")
	w.agreesWith(stages, names)
}

// console changes statuses as people do, by a checkpoint of its own.
func (w *world) console(random *rand.Rand) {
	leads, err := w.service.Leads()
	if err != nil {
		w.t.Fatal(err)
	}
	text := "lead,status,name\n"
	for _, l := range leads {
		if random.IntN(2) == 0 {
			text += l.ID + "," + stageStatus[crmStages[random.IntN(4)]] + "," + []string{"", "Zoe", "Kim"}[random.IntN(3)] + "\n"
		}
	}
	w.write("console.csv", text)
	w.must(0, "sync", "-m", "console.yaml", "console.csv", "--out", "none", "--checkpoint", "console.db", "--conflict", "file", "--check-remote=all")
}

// copyNames takes the names of leads over from the console, as a person does.
func (w *world) copyNames(names []string) {
	leads, err := w.service.Leads()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range leads {
		var i int
		fmt.Sscanf(l.ExternalID, "L%d", &i)
		names[i] = l.Content["name"].(string)
	}
}

// held is what a reconciliation may not change, as the service holds it.
func (w *world) held() string {
	leads, err := w.service.Leads()
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	for _, l := range leads {
		fmt.Fprintln(&b, l.ID, l.Status, l.ExternalID, l.Content, l.OwnerID)
	}
	return b.String()
}

// killOnceIn kills a run in its midst.
func (w *world) killOnceIn(command string) {
	c := w.command(command, "-m", "crm.yaml", "crm.csv", "--out", "none", "--rate", "20")
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	for start := w.service.Counts()["update"][200]; w.service.Counts()["update"][200] < start+2; {
		select {
		case <-ended: // it was too quick to be killed
			return
		case <-time.After(time.Millisecond):
		}
	}
	_ = c.Process.Kill()
	<-ended
}

// agreesWith fails unless each lead has the status and the name of its row, whose key is its ExternalID.
func (w *world) agreesWith(stages, names []string) {
	leads, err := w.service.Leads()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range leads {
		i := -1
		if fmt.Sscanf(l.ExternalID, "L%d", &i); i < 0 || l.Status != stageStatus[stages[i]] || l.Content["name"] != names[i] {
			w.t.Errorf("%s is %s, %v, its row %s, %s", l.ExternalID, l.Status, l.Content["name"], stages, names)
		}
	}
}
