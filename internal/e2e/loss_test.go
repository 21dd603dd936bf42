//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// copyTree copies a folder as a backup does: with times and modes.
func (w *world) copyTree(from, to string) {
	w.t.Helper()
	must.Do(w.t, os.RemoveAll(to))
	c := exec.Command("cp", "-a", from, to)
	c.Dir = w.dir
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("cp: %v\n%s", err, out)
	}
}

// The state directory is restored from a backup. Run folders show that it is older, and
// unknown rows are held until a person has decided. faults 128, 141
func TestRestoredStateMakesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(40)
	all := words("import -m leads.yaml leads.csv")
	w.must(0, append(all, "--limit", "10")...)
	const sent = "2026-03-04T05:06:07Z"
	w.write("doubt.csv", "key,state,lead_id,updated_at\nL00015,in_doubt,,"+sent+"\nL00016,in_doubt,,"+sent+"\n")
	w.must(0, "checkpoint adopt doubt.csv")
	w.write("some.csv", "key,lead_id,updated_at\nL00016,exists,"+sent+"\n")
	w.must(0, "checkpoint resolve some.csv")
	state, backup := filepath.Join(w.dir, "state"), filepath.Join(t.TempDir(), "state") // outside, because it holds a token
	w.copyTree(state, backup)
	w.write("none.csv", "key,lead_id,updated_at\nL00015,none,"+sent+"\n")
	w.write("bare.csv", "key,lead_id\nL00015,none\n")
	w.write("wrong.csv", "key,lead_id,updated_at\nL00016,none,"+sent+"\n")
	w.must(0, "checkpoint resolve none.csv")
	w.must(0, "checkpoint resolve wrong.csv")
	w.must(0, append(all, "--limit", "30", "--out", "out/second")...)
	w.copyTree(backup, state)

	var said string
	for _, args := range [][]string{
		append(all, "--out", "out/third"), append(all, "--dry-run", "--out", "out/third"),
		{"checkpoint", "check"},
		{"checkpoint", "resolve", "--none-created", "--yes"},
		append(all, "--out", "none"), // refused with another output folder, too
		append(all, "--require-checkpoint"), append(all, "--yes"),
	} {
		w.env = append(w.env, "LEADFERRY_OUT=out/next")
		said = w.must(4, args...)
		contains(t, said, "does not know the run", "checkpoint check --accept-older=")
	}
	contains(t, w.must(0, "checkpoint status"), "10") // status only warns
	w.holds(30)
	w.must(2, "checkpoint check --accept-older=0123456789abcdef")
	accept := id(t, said, "--accept-older")
	contains(t, w.must(0, "checkpoint check", accept), "incomplete: it lacks leads that were made after this copy")
	w.must(2, "checkpoint check", accept) // the question was answered already
	// lists from before decide nothing: these rows were sent again meanwhile
	contains(t, w.must(2, "checkpoint resolve none.csv"), "sent or held again after this list was written")
	contains(t, w.must(2, "checkpoint resolve bare.csv"), "does not say which send")
	contains(t, w.must(2, "checkpoint resolve wrong.csv"), "may have been, sent again since")
	contains(t, w.must(0, "checkpoint status"), "the checkpoint is incomplete")

	held := append(all, "--out", "none")
	contains(t, w.must(5, append(held, "--dry-run")...), "held, not sent: 29")
	if n := len(w.exported("in_doubt")); n != 1 {
		t.Errorf("%d rows in doubt: a dry run holds none for good", n)
	}
	contains(t, w.must(5, "sync -m leads.yaml leads.csv --limit 35 --missing create --out none"), "held, not sent: 24")
	contains(t, w.must(5, held...), "Nothing was sent", "held, not sent: 29")
	contains(t, w.must(5, held...), "29 in doubt)", "Nothing was sent")
	w.must(5, append(held, "--in-doubt", "resend", "--max-in-doubt", "1")...)
	contains(t, w.must(0, "checkpoint resolve --none-created --yes"), "nothing was settled")
	contains(t, w.must(0, "checkpoint history L00020"), "held, not sent")
	w.must(5, append(held, "--dry-run")...)
	w.holds(30)
	if n := len(w.exported("in_doubt")); n != 29 {
		t.Errorf("%d rows in doubt, want 29", n)
	}

	// The results of the missing run know its leads. The other rows were never made.
	contains(t, w.must(0, "checkpoint adopt out/second/results.csv"), "20 leads taken over, 10 known already")
	w.write("decided.csv", "key,lead_id\nL00030,none\n")
	w.must(0, "checkpoint resolve decided.csv")
	contains(t, w.must(5, held...), "held, not sent: 9")
	w.holds(31)
	w.must(2, "checkpoint check --accept-loss")
	w.must(0, "checkpoint check --accept-loss --yes")
	w.must(0, held...)
	w.holds(40)

	// The checkpoint was copied to another file, which is lost.
	w.must(0, "checkpoint copy", w.checkpoint(), "to.db")
	w.removeAll("to.db")
	w.must(0, "checkpoint check", id(t, w.must(4, held...), "--accept-older"))
	w.must(0, held...)
}

// Results still name keys that people forgot or settled with none. They do not make up for leads that are missing.
// Invariants 9 and 10
func TestFreedRowsDoNotMakeUpForMissingLeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Faults: "drop-stored#7"})
	w.leads(40)
	lines := strings.SplitAfter(w.text("leads.csv"), "\n")
	w.write("first.csv", strings.Join(lines[:4], ""))
	w.write("second.csv", lines[0]+strings.Join(lines[4:], ""))
	w.must(0, "import -m leads.yaml first.csv --out gone/first")
	w.must(5, "import -m leads.yaml second.csv --out kept/second -c 1")
	w.must(0, "checkpoint forget L00020 L00021")
	w.write("list.csv", "key,lead_id\n"+w.exported("in_doubt")[0]["key"]+",none\n")
	w.must(0, "checkpoint resolve list.csv")
	must.Do(t, errors.Join(os.Remove(w.checkpoint()), os.RemoveAll(filepath.Join(w.dir, "gone"))))
	said := w.must(4, "import -m leads.yaml first.csv --out kept/third")
	contains(t, said, "write known.csv, with the line key,namespace,lead_id") // no other folder lies beside that of the command
	contains(t, w.must(0, "checkpoint adopt kept/second/results.csv"), "incomplete")
	w.must(5, "import -m leads.yaml first.csv --out kept/third")
	w.holds(40)
}

// checkpoint is the path of the only checkpoint in the state directory.
func (w *world) checkpoint() string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "state", "leadferry", "*.db"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("checkpoints: %q, %v", found, err)
	}
	return found[0]
}

// If somebody deletes the checkpoint in mid-run, the run ends with an error. The next run makes no lead. fault 128
func TestRunEndsWhenItsCheckpointIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(50)
	h := w.hold(1)
	c := w.waits("import -m leads.yaml leads.csv --out run -c 1")
	h.full(t)
	path := w.checkpoint()
	must.Do(t, os.RemoveAll(filepath.Dir(path)))
	close(h.let)
	if code := c.signal(); code != 3 || !strings.Contains(c.said.String(), "checkpoint is lost") {
		t.Errorf("exit %d\n%s", code, &c.said)
	}
	made := len(w.byRef())
	if made > 10 {
		t.Errorf("%d leads were made", made)
	}
	contains(t, w.must(4, "import -m leads.yaml leads.csv --out run"), "another checkpoint is in use for this trunk")
	w.holds(made)
}

// lose overwrites every page of a file that holds a text.
func (w *world) lose(path, text string) {
	w.t.Helper()
	b, err := os.ReadFile(path)
	must.Do(w.t, err)
	hit := false
	for at := 0; at < len(b); at += os.Getpagesize() {
		page := b[at:min(len(b), at+os.Getpagesize())]
		switch {
		case !bytes.Contains(page, []byte(text)):
			continue
		case bytes.Contains(page, []byte("header")): // this page also holds the file's header, which stays
			copy(page, bytes.ReplaceAll(page, []byte(text), bytes.Repeat([]byte("?"), len(text))))
		default:
			clear(page)
		}
		hit = true
	}
	if !hit {
		w.t.Fatalf("%s does not hold %s", path, text)
	}
	must.Do(w.t, os.WriteFile(path, b, 0o600))
}

// A damaged checkpoint is repaired with results: their leads come back, other rows are held, and no lead is made twice.
// faults 19, 128
func TestRepairMakesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(320)
	all := words("import -m leads.yaml leads.csv")
	w.must(0, append(all, "--limit", "200", "--out", "runs/first")...)
	w.must(0, append(all, "--limit", "300", "--out", "runs/second")...)
	path := w.checkpoint()
	w.lose(path, "L00050")
	w.lose(path, "L00250")

	contains(t, w.must(4, append(all, "--out", "runs/third")...), "is damaged", "leadferry checkpoint repair")
	w.must(4, "checkpoint check")
	contains(t, w.must(4, "checkpoint export"), "Whatever adopts it is incomplete")
	contains(t, w.must(0, "checkpoint repair", path, "new.db"), "incomplete")
	w.must(2, "checkpoint repair", path, "new.db") // new.db exists
	must.Do(t, os.Remove(filepath.Join(w.dir, "new.db")))

	contains(t, w.must(0, "checkpoint repair", path, "whole.db", "--results", "runs/[fs]*/results.csv"), "incomplete")
	must.Do(t, os.Rename(filepath.Join(w.dir, "whole.db"), path)) // as repair prints
	contains(t, w.must(5, append(all, "--out", "runs/last")...), "held, not sent: 20")
	w.must(0, "checkpoint check --accept-loss --yes")
	w.must(0, append(all, "--out", "none")...)
	w.must(0, "sync -m leads.yaml leads.csv --out none")
	w.holds(320)
	w.must(2, "checkpoint repair", path, "again.db") // nothing is damaged
}

// An empty file is repaired from results alone. Other rows are held.
func TestRepairOfAnEmptyFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(12)
	all := words("import -m leads.yaml leads.csv")
	w.must(0, append(all, "--limit", "10", "--out", "runs/own")...)
	path := w.checkpoint()
	w.write("notes.txt", "nothing of a checkpoint")
	contains(t, w.must(4, "checkpoint repair notes.txt new.db"), "holds nothing of a checkpoint")
	must.Do(t, os.Truncate(path, 0))
	w.must(4, "checkpoint repair", path, "empty.db")
	w.must(0, "checkpoint repair", path, "new.db", "--results", "runs/own/results.csv")
	contains(t, w.must(5, append(all, "--checkpoint", "new.db", "--out", "none")...), "held, not sent: 2")
	w.holds(10)
}

// The commands that repair prints also work the second and third time: the file that was put aside before is not in the
// way. faults 127, 128
func TestRepairCanBeRepeatedAsPrinted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(300)
	all := words("import -m leads.yaml leads.csv")
	w.must(0, append(all, "--out", "runs/own")...)
	path := w.checkpoint()
	for _, made := range []string{"first.db", "second.db", "third.db"} {
		w.lose(path, "L00005")
		out := w.must(0, "checkpoint repair", path, made, "--results", "runs/own/results.csv")
		_, moves, _ := strings.Cut(out, "To put it in the old one's place:\n")
		if code, said := w.paste(moves); code != 0 {
			t.Fatalf("%s\n%s", moves, said)
		}
		w.paste(moves) // twice
		w.must(0, append(all, "--out", "none")...)
	}
	w.holds(300)
}

// resolve takes only none, exists or an ID: other words in a list free no row. A list that was used cannot decide about
// a later send of its row. fault 147
func TestResolveListsThatDecideNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Faults: "create.drop-stored#1,create.drop-stored#2"})
	w.leads(3)
	all := words("import -m leads.yaml leads.csv -c 1")
	w.must(5, append(all, "--limit", "1")...)
	doubt := w.exported("in_doubt")
	if len(doubt) != 1 {
		t.Fatalf("in doubt: %v", doubt)
	}
	key := doubt[0]["key"]
	list := func(word string) string { return "key,lead_id\n" + key + "," + word + "\n" }
	for _, word := range []string{"None", "NULL", "n/a", "keine", "2nd", "yes", "0", "created"} {
		w.write("list.csv", list(word))
		w.must(2, "checkpoint resolve list.csv")
	}
	if n := len(w.exported("in_doubt")); n != 1 {
		t.Fatalf("%d rows in doubt, want 1", n)
	}
	w.write("list.csv", list("none"))
	w.must(0, "checkpoint resolve list.csv")
	w.must(5, append(all, "--limit", "1")...) // sent again, and in doubt again
	if out := w.must(2, "checkpoint resolve list.csv"); !strings.Contains(out, "export the list anew") {
		t.Errorf("the same list a second time:\n%s", out)
	}
	if n := len(w.exported("in_doubt")); n != 1 {
		t.Errorf("%d rows in doubt, want 1", n)
	}
	w.write("anew.csv", strings.Replace(w.must(0, "checkpoint export --state in_doubt"), ",in_doubt,,", ",in_doubt,exists,", 1))
	w.must(0, "checkpoint resolve anew.csv")
}

// After a try with --sandbox, an import does not mention the sandbox's leads. fault 127
func TestImportIgnoresLeadsOfTheSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(2)
	w.must(0, "import -m leads.yaml leads.csv --sandbox --checkpoint try.db")
	if out := w.must(0, "import -m leads.yaml leads.csv"); strings.Contains(out, "another checkpoint") {
		t.Errorf("the import mentions leads of the sandbox:\n%s", out)
	}
	w.holds(2)
	must.Do(t, os.Remove(filepath.Join(w.dir, "try-service.db"))) // it holds names, and the test's end looks for those
}

// adopt and repair skip the results of another target. fault 127
func TestResultsOfAnotherTargetAreSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(60)
	all := words("import -m leads.yaml leads.csv")
	w.must(0, append(all, "--limit", "40", "--out", "runs/own")...)
	w.copyTree("runs/own", "runs/a-try")
	s := w.summary("runs/own/summary.json")
	w.write("runs/a-try/run.json", strings.NewReplacer(sandbox.TrunkID, "another-trunk", s.Checkpoint.ID, "0123456789abcdef").Replace(w.read("runs/own/run.json")))
	contains(t, w.must(2, "checkpoint adopt runs/a-try/results.csv"),
		"skipped runs/a-try/results.csv: its run had another target", "nothing was taken over")
	w.must(0, "checkpoint adopt runs/own/results.csv")

	path := filepath.Join(w.dir, "real.db")
	found, err := filepath.Glob(filepath.Join(w.dir, "state", "leadferry", "127*.db"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	must.Do(t, os.Rename(found[0], path))
	w.lose(path, "L00030")
	out := w.must(0, "checkpoint repair", path, "new.db", "--results", "runs/a-try/results.csv", "runs/own/results.csv")
	contains(t, out, "skipped runs/a-try/results.csv: its run had another target")
	contains(t, out, "incomplete")
	w.must(5, append(all, "--checkpoint", "new.db", "--out", "none")...)
	w.holds(40)
}
