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
