//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// Leads of the sandbox are nobody's: after a try nothing is said of them, least of all to adopt
// them. fault 127
func TestATryWithTheSandboxTellsOfNoLeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(2)
	w.must(0, "import", "-m", "leads.yaml", "leads.csv", "--sandbox", "--checkpoint", "try.db")
	if out := w.must(0, "import", "-m", "leads.yaml", "leads.csv"); strings.Contains(out, "another checkpoint") {
		t.Errorf("it tells of leads of the sandbox:\n%s", out)
	}
	w.holds(2)
	if err := os.Remove(filepath.Join(w.dir, "try-service.db")); err != nil { // the one place where people stand
		t.Fatal(err)
	}
}

// Results of a try in the sandbox, or of another target, lie in the same folder: a repair
// passes them over, and adopt does not take their leads for this target's. fault 127
func TestResultsOfAnotherTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(60)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--limit", "40", "--out", "runs/own")...)
	w.copyTree("runs/own", "runs/a-try")
	s := w.summary("runs/own/summary.json")
	w.write("runs/a-try/run.json", strings.NewReplacer(sandbox.TrunkID, "another-trunk", s.Checkpoint.ID, "0123456789abcdef").Replace(w.read("runs/own/run.json")))
	contains(t, w.must(2, "checkpoint", "adopt", "runs/a-try/results.csv"),
		"runs/a-try/results.csv: is of a run to another target", "nothing was taken over")
	w.must(0, "checkpoint", "adopt", "runs/own/results.csv")

	path := filepath.Join(w.dir, "real.db")
	found, err := filepath.Glob(filepath.Join(w.dir, "state", "leadferry", "127*.db"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if err := os.Rename(found[0], path); err != nil {
		t.Fatal(err)
	}
	w.lose(path, "L00030")
	out := w.must(0, "checkpoint", "repair", path, "new.db", "--results", "runs/a-try/results.csv", "runs/own/results.csv")
	contains(t, out, "passed over runs/a-try/results.csv: its run had another target")
	contains(t, out, "incomplete")
	w.must(5, append(all, "--checkpoint", "new.db", "--out", "none")...)
	w.holds(40)
}

// A rehearsal, or a run to another target, does not replace what a run to a real one left: it
// may be all that is known of its leads. fault 129
func TestNothingLessReplacesTheResultsOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(4)
	all := []string{"import", "-m", "leads.yaml", "leads.csv", "--out", "o1"}
	w.must(0, append(all, "--dry-run")...)
	w.must(0, all...)
	before := w.read("o1/results.csv")
	for _, args := range [][]string{
		append(all, "--dry-run"), append(all, "--sandbox"), append(all, "--trunk-id", "another"),
		{"validate", "-m", "leads.yaml", "leads.csv", "--out", "o1"},
	} {
		contains(t, w.must(2, args...), "--out o1 would take the place of what the run ", "hint: name another folder")
	}
	if w.read("o1/results.csv") != before {
		t.Error("the results are not those of the run any more")
	}
	w.must(0, all...)
	w.must(0, "sync", "-m", "leads.yaml", "leads.csv", "--out", "o1")
	w.holds(4)
}

// A row in doubt comes back from the rejects in another form, where its own data are its
// key: a spreadsheet writes dates anew in rows that nobody touched. fault 132
func TestARowInDoubtIsKnownFromItsRejects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Faults: "drop-stored#2,422#4"})
	org := sandbox.Organizations()[0].ID
	w.write("own.yaml", "version: 1\nassign: [{organization: \"{org}\"}]\nlead: {type_key: k, type_label: L, content: {importRef: \"{id}\", on: \"{on}\"}}\n")
	rows := "id,org,on\n"
	lines := ""
	for _, id := range []string{"R1", "R2", "R3", "R4"} {
		rows += id + "," + org + ",2026-01-22\n"
		lines += `{"id":"` + id + `","org":"` + org + `","on":"2026-01-22"}` + "\n"
	}
	w.write("own.csv", rows)
	w.must(5, "import", "-m", "own.yaml", "own.csv", "-c", "1", "--out", "one")
	edited := strings.ReplaceAll(w.read("one/rejects.csv"), "2026-01-22", "22/01/26")
	w.write("edited.csv", edited)
	out := w.must(1, "import", "-m", "own.yaml", "edited.csv", "--out", "two")
	contains(t, out, "1  created", "1  conflict", "leadferry_outcome says this row already has a lead")
	w.write("again.jsonl", strings.ReplaceAll(strings.SplitAfter(lines, "\n")[1], `"2026-01-22"`, `"22.01.2026","leadferry":{"line":3,"outcome":"in_doubt"}`))
	contains(t, w.must(1, "import", "-m", "own.yaml", "again.jsonl", "--out", "none"), "1  conflict")
	w.holds(4)
	w.write("freed.csv", strings.ReplaceAll(edited, ",in_doubt,", ",,"))
	w.must(0, "import", "-m", "own.yaml", "freed.csv", "--out", "none") // a person says so
}
