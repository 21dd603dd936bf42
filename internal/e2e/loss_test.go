//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// copyTree copies a folder as a backup does: with times and modes.
func (w *world) copyTree(from, to string) {
	w.t.Helper()
	if err := os.RemoveAll(to); err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command("cp", "-a", from, to)
	c.Dir = w.dir
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("cp: %v\n%s", err, out)
	}
}

// holds fails the test unless the service holds the leads of so many rows, each once.
func (w *world) holds(want int) {
	w.t.Helper()
	if got := len(w.byRef()); got != want {
		w.t.Fatalf("the service holds the leads of %d rows, want %d", got, want)
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

// The folder with checkpoint and mark is restored from a backup: the run folders tell, and
// what the copy does not know is held until a person has looked. fault 128
func TestRestoredFolderMakesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(40)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--limit", "10")...)
	state, backup := filepath.Join(w.dir, "state"), filepath.Join(t.TempDir(), "state") // outside: a token is in it
	w.copyTree(state, backup)
	w.must(0, append(all, "--limit", "30", "--out", "out/second")...)
	w.copyTree(backup, state)

	for _, args := range [][]string{
		append(all, "--out", "out/third"), append(all, "--dry-run", "--out", "out/third"),
		{"checkpoint", "check"},
		{"checkpoint", "status"},
		{"checkpoint", "resolve", "--none-created", "--yes"},
	} {
		w.env = append(w.env, "LEADFERRY_OUT=out/next")
		out := w.must(4, args...)
		contains(t, out, "restored from an older copy", "out/second/summary.json", "checkpoint check --accept-older")
	}
	w.holds(30)
	contains(t, w.must(0, "checkpoint", "check", "--accept-older"), "incomplete: 20 leads that it knew are missing")
	contains(t, w.must(0, "checkpoint", "status"), "the checkpoint is incomplete: 20 leads that it knew are missing")

	held := append(all, "--out", "none")
	contains(t, w.must(5, append(held, "--dry-run")...), "30 rows were held, not sent")
	if n := len(w.exported("in_doubt")); n != 0 {
		t.Errorf("a dry run held %d rows for good", n)
	}
	contains(t, w.must(5, "sync", "-m", "leads.yaml", "leads.csv", "--limit", "35", "--missing", "create", "--out", "none"), "25 rows were held, not sent")
	contains(t, w.must(5, held...), "Nothing was sent", "30 rows were held, not sent")
	contains(t, w.must(5, held...), "30 in doubt)", "Nothing was sent")
	w.must(5, append(held, "--in-doubt", "resend", "--max-in-doubt", "1")...)
	contains(t, w.must(0, "checkpoint", "resolve", "--none-created", "--yes"), "nothing was settled")
	contains(t, w.must(0, "checkpoint", "history", "L00020"), "held, not sent")
	w.must(5, append(held, "--dry-run")...)
	w.holds(30)
	if n := len(w.exported("in_doubt")); n != 30 {
		t.Errorf("%d rows in doubt, want 30", n)
	}

	// The results of the run that is missing know its leads; what is left was never made.
	contains(t, w.must(0, "checkpoint", "adopt", "out/second/results.csv"), "20 leads taken over, 10 known already")
	w.write("decided.csv", "key,lead_id\nL00030,none\n")
	w.must(0, "checkpoint", "resolve", "decided.csv")
	contains(t, w.must(5, held...), "9 rows were held, not sent")
	w.holds(31)
	w.must(2, "checkpoint", "check", "--accept-loss")
	w.must(0, "checkpoint", "check", "--accept-loss", "--yes")
	w.must(0, held...)
	w.holds(40)
}

// A checkpoint that is gone is not begun anew without a word. fault 128
func TestMissingCheckpointIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(6)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--limit", "3")...)
	state, away := filepath.Join(w.dir, "state"), filepath.Join(t.TempDir(), "state")
	if err := os.Rename(state, away); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--yes"}, {"--require-checkpoint"}, {"--out", "leadferry-runs/mine"}} {
		contains(t, w.must(4, append(all, more...)...), "does not exist, though a run of", "knew or made 3 leads", "--new-checkpoint")
	}
	contains(t, w.must(0, append(all, "--dry-run")...), "does not exist, though a run of")
	w.holds(3)
	// Another path is another memory by a person's wish; the same is not.
	w.must(0, append(all, "--checkpoint", "mine.db", "--limit", "1", "--out", "none", "--dry-run")...)
	if err := errors.Join(os.RemoveAll(state), os.Rename(away, state)); err != nil {
		t.Fatal(err)
	}
	w.must(0, append(all, "--out", "none")...)
	w.holds(6)

	// The mark alone tells, too.
	path := w.checkpoint()
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.dir, "leadferry-runs")); err != nil {
		t.Fatal(err)
	}
	w.write("found.csv", "key,lead_id\nX1,lead-1\n")
	contains(t, w.must(4, append(all, "--out", "elsewhere/run")...), "does not exist, though", ".seq beside it counts 6 leads")
	contains(t, w.must(4, "checkpoint", "adopt", "found.csv"), ".seq beside it counts 6 leads")
	w.write("one.csv", "id,org,name\nN1,"+sandbox.Organizations()[0].ID+",New\n")
	contains(t, w.must(0, "import", "-m", "leads.yaml", "one.csv", "--new-checkpoint"), "a new checkpoint is begun; the one before does not exist")
	w.must(0, "import", "-m", "leads.yaml", "one.csv")
	w.holds(7)
	// The one before comes back beside the new one's mark: each knows what the other lacks.
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	contains(t, w.must(4, append(all, "--out", "elsewhere/run")...), "is another one than", "put here from elsewhere")
	w.must(0, "checkpoint", "check", "--accept-older")
	contains(t, w.must(5, "import", "-m", "leads.yaml", "one.csv", "leads.csv"), "Nothing was sent")
	w.holds(7)

	// Who has begun anew knowingly is not asked again, though run folders tell of those before.
	if err := errors.Join(os.Remove(path), os.Remove(path+".seq")); err != nil {
		t.Fatal(err)
	}
	w.write("one.csv", "id,org,name\nN2,"+sandbox.Organizations()[0].ID+",New\n")
	w.must(4, "import", "-m", "leads.yaml", "one.csv")
	w.must(0, "import", "-m", "leads.yaml", "one.csv", "--new-checkpoint")
	w.must(0, "import", "-m", "leads.yaml", "one.csv")
	w.holds(8)
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

// A copy of a checkpoint has its ID: what a run did with one of the two is missing from the
// other, whichever is further. fault 128
func TestCopyOfACheckpointIsSeenByItsID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(12)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--limit", "3")...)
	w.copyTree(w.checkpoint(), filepath.Join(w.dir, "copy.db"))
	w.must(0, append(all, "--limit", "6", "--checkpoint", "copy.db")...)
	mark := w.checkpoint() + ".seq"
	w.copyTree(mark, mark+".before")
	contains(t, w.must(4, all...), "with the copy ", "copy.db)")
	w.holds(6)
	w.copyTree(mark+".before", mark) // else it stays refused
	// Two that go on apart: the one is further, and still does not know the other's leads.
	runs, away := filepath.Join(w.dir, "leadferry-runs"), filepath.Join(t.TempDir(), "runs")
	if err := os.Rename(runs, away); err != nil {
		t.Fatal(err)
	}
	for range 8 { // nothing new is sent, and nothing tells
		w.must(0, append(all, "--limit", "3", "--out", "none")...)
	}
	if err := errors.Join(os.RemoveAll(runs), os.Rename(away, runs)); err != nil {
		t.Fatal(err)
	}
	contains(t, w.must(4, all...), "does not know the run")
	w.holds(6)
}

// What does not speak of a checkpoint, or is not the user's, says nothing; and many folders
// cost nothing.
func TestRunFoldersThatTellNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(2)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--out", "runs/good")...)
	summary, err := os.ReadFile(filepath.Join(w.dir, "runs", "good", "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(string(summary), `"sequence": `, `"sequence": 9`, 1)
	if later == string(summary) {
		t.Fatalf("no sequence in %s", summary)
	}
	if err := os.MkdirAll(filepath.Join(w.dir, "away", "linked"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("away/linked/summary.json", later)
	for name, text := range map[string]string{
		"cut": later[:len(later)/3], "empty": "", "list": "[1]", "text": "hello", "nothing": "{}", "zero": strings.Repeat("\x00", 5000),
		"huge":  `{"run_id": "` + strings.Repeat("x", 5<<20) + `"` + strings.TrimPrefix(later, "{"),
		"other": strings.NewReplacer(w.summary("runs/good/summary.json").Checkpoint.ID, "0123456789abcdef", w.dir, "/nowhere").Replace(later),
	} {
		if err := os.Mkdir(filepath.Join(w.dir, "runs", name), 0o700); err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Join("runs", name, "summary.json"), text)
	}
	for i := range 300 {
		if err := os.MkdirAll(filepath.Join(w.dir, "runs", fmt.Sprint("old", i)), 0o700); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("runs", fmt.Sprint("old", i), "summary.json")
		w.write(name, later)
		old := time.Now().Add(-24 * time.Hour)
		if err := os.Chtimes(filepath.Join(w.dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 { // newer ones: of those before, none is looked at
		if err := os.MkdirAll(filepath.Join(w.dir, "runs", fmt.Sprint("new", i)), 0o700); err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Join("runs", fmt.Sprint("new", i), "summary.json"), "{}")
	}
	if err := os.Mkdir(filepath.Join(w.dir, "runs", "theirs"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("runs/theirs/summary.json", "{}")
	if os.Geteuid() == 0 { // else it cannot be given away
		w.write("runs/theirs/summary.json", later)
		if err := os.Chown(filepath.Join(w.dir, "runs", "theirs", "summary.json"), 4711, 4711); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(w.dir, "away", "linked"), filepath.Join(w.dir, "runs", "zlinked")); err != nil {
		t.Fatal(err)
	}
	w.must(0, append(all, "--out", "runs/next")...)
	w.holds(2)
	if err := os.Mkdir(filepath.Join(w.dir, "runs", "tells"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("runs/tells/summary.json", later) // what all of those would have said
	w.must(4, append(all, "--out", "runs/next")...)
}

// The trunk's UUID in other letters is the same trunk, and so are addresses that are
// spelled otherwise.
func TestTargetsAreComparedInOneForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	all := []string{"import", "-m", "leads.yaml", "leads.csv", "--out", "none"}
	w.must(0, all...)
	for _, same := range [][]string{
		{"--trunk-id", strings.ToUpper(sandbox.TrunkID)},
		{"--leads-url", "HTTP://" + w.address() + "//"},
	} {
		contains(t, w.must(0, append(all, same...)...), "knows 3 leads", "Nothing was sent")
	}
	w.holds(3)
}

// A checkpoint that somebody takes away while a run goes on ends the run: it is no success whose memory is gone. Nothing is
// made anew after that. fault 128
func TestCheckpointTakenAwayInMidRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(50)
	h := w.hold(1)
	c := w.waits("import", "-m", "leads.yaml", "leads.csv", "--out", "run", "-c", "1")
	h.full(t)
	path := w.checkpoint()
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	close(h.let)
	if code := c.signal(); code != 3 || !strings.Contains(c.said.String(), "checkpoint is lost") {
		t.Errorf("exit %d\n%s", code, &c.said)
	}
	made := len(w.byRef())
	if made > 10 {
		t.Errorf("%d leads were made", made)
	}
	contains(t, w.must(4, "import", "-m", "leads.yaml", "leads.csv", "--out", "run"), "does not exist, though a run of")
	w.holds(made)
}
