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

// The folder with checkpoint and book is restored from a backup: the run folders tell, and
// what the copy does not know is held until a person has looked. faults 128, 141
func TestRestoredFolderMakesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(40)
	all := words("import -m leads.yaml leads.csv")
	w.must(0, append(all, "--limit", "10")...)
	state, backup := filepath.Join(w.dir, "state"), filepath.Join(t.TempDir(), "state") // outside: a token is in it
	w.copyTree(state, backup)
	w.must(0, append(all, "--limit", "30", "--out", "out/second")...)
	w.copyTree(backup, state)

	var said string
	for _, args := range [][]string{
		append(all, "--out", "out/third"), append(all, "--dry-run", "--out", "out/third"),
		{"checkpoint", "check"},
		{"checkpoint", "resolve", "--none-created", "--yes"},
		append(all, "--out", "none"), // elsewhere it is refused from now on, too
		append(all, "--require-checkpoint"), append(all, "--yes"),
	} {
		w.env = append(w.env, "LEADFERRY_OUT=out/next")
		said = w.must(4, args...)
		contains(t, said, "does not know the run", "checkpoint check --accept-older=")
	}
	contains(t, w.must(0, "checkpoint status"), "10") // who only looks is told
	w.holds(30)
	w.must(2, "checkpoint check --accept-older=0123456789abcdef")
	accept := id(t, said, "--accept-older")
	contains(t, w.must(0, "checkpoint check", accept), "incomplete: it lacks leads that were made after this copy")
	w.must(2, "checkpoint check", accept) // it answers nothing any more
	contains(t, w.must(0, "checkpoint status"), "the checkpoint is incomplete")

	held := append(all, "--out", "none")
	contains(t, w.must(5, append(held, "--dry-run")...), "held, not sent: 30")
	if n := len(w.exported("in_doubt")); n != 0 {
		t.Errorf("a dry run held %d rows for good", n)
	}
	contains(t, w.must(5, "sync -m leads.yaml leads.csv --limit 35 --missing create --out none"), "held, not sent: 25")
	contains(t, w.must(5, held...), "Nothing was sent", "held, not sent: 30")
	contains(t, w.must(5, held...), "30 in doubt)", "Nothing was sent")
	w.must(5, append(held, "--in-doubt", "resend", "--max-in-doubt", "1")...)
	contains(t, w.must(0, "checkpoint resolve --none-created --yes"), "nothing was settled")
	contains(t, w.must(0, "checkpoint history L00020"), "held, not sent")
	w.must(5, append(held, "--dry-run")...)
	w.holds(30)
	if n := len(w.exported("in_doubt")); n != 30 {
		t.Errorf("%d rows in doubt, want 30", n)
	}

	// The results of the run that is missing know its leads; what is left was never made.
	contains(t, w.must(0, "checkpoint adopt out/second/results.csv"), "20 leads taken over, 10 known already")
	w.write("decided.csv", "key,lead_id\nL00030,none\n")
	w.must(0, "checkpoint resolve decided.csv")
	contains(t, w.must(5, held...), "held, not sent: 9")
	w.holds(31)
	w.must(2, "checkpoint check --accept-loss")
	w.must(0, "checkpoint check --accept-loss --yes")
	w.must(0, held...)
	w.holds(40)

	// It was copied, and the copy is lost.
	w.must(0, "checkpoint copy", w.checkpoint(), "to.db")
	w.removeAll("to.db")
	w.must(0, "checkpoint check", id(t, w.must(4, held...), "--accept-older"))
	w.must(0, held...)
}

// Keys that people forgot, or settled with none, are in results still, and hide no other leads. Invariants 9 and 10
func TestFreedRowsHideNoLeads(t *testing.T) {
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
	contains(t, said, "write known.csv, with the line key,namespace,lead_id") // nothing lies beside the last command's folder
	contains(t, w.must(0, "checkpoint adopt kept/second/results.csv"), "incomplete")
	w.must(5, "import -m leads.yaml first.csv --out kept/third")
	w.holds(40)
}

// checkpoint is the path of the one that lies in the state folder.
func (w *world) checkpoint() string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "state", "leadferry", "*.db"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("checkpoints: %q, %v", found, err)
	}
	return found[0]
}

// A checkpoint that somebody takes away while a run goes on ends the run: it is no success whose memory is gone.
// Nothing is made anew after that. fault 128
func TestCheckpointTakenAwayInMidRun(t *testing.T) {
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

// lose overwrites every page of a file in which a text stands.
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
		case bytes.Contains(page, []byte("header")): // what the file says of itself stands there, too, and stays
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

// A damaged checkpoint, and its runbook: what results know comes back, the rest is held, none made twice. faults 19,
// 128
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
	w.must(2, "checkpoint repair", path, "new.db") // is there
	must.Do(t, os.Remove(filepath.Join(w.dir, "new.db")))

	contains(t, w.must(0, "checkpoint repair", path, "whole.db", "--results", "runs/[fs]*/results.csv"), "incomplete")
	must.Do(t, os.Rename(filepath.Join(w.dir, "whole.db"), path)) // as is printed
	contains(t, w.must(5, append(all, "--out", "runs/last")...), "held, not sent: 20")
	w.must(0, "checkpoint check --accept-loss --yes")
	w.must(0, append(all, "--out", "none")...)
	w.must(0, "sync -m leads.yaml leads.csv --out none")
	w.holds(320)
	w.must(2, "checkpoint repair", path, "again.db") // is in order
}

// Of a file that lost everything, results know what they know; the rest is held.
func TestRepairOfNothing(t *testing.T) {
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

// A checkpoint that is damaged a second time is put in its place by what is printed, too: what was put aside the first
// time must not stand in the way. faults 127, 128
func TestRepairedTwiceByWhatIsPrinted(t *testing.T) {
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

// A list decides what a person has looked up: a word that a program or a translator wrote frees no row, and a list that
// does not say which send it is about decides no second one. fault 147
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

// Leads of the sandbox are nobody's: after a try nothing is said of them, least of all to adopt them. fault 127
func TestATryWithTheSandboxTellsOfNoLeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(2)
	w.must(0, "import -m leads.yaml leads.csv --sandbox --checkpoint try.db")
	if out := w.must(0, "import -m leads.yaml leads.csv"); strings.Contains(out, "another checkpoint") {
		t.Errorf("it tells of leads of the sandbox:\n%s", out)
	}
	w.holds(2)
	must.Do(t, os.Remove(filepath.Join(w.dir, "try-service.db"))) // the one place where people stand
}

// Results of a try in the sandbox, or of another target, lie in the same folder: a repair
// passes them over, and adopt does not take their leads for this target's. fault 127
func TestResultsOfAnotherTarget(t *testing.T) {
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
