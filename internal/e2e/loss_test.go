//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// The folder with checkpoint and book is restored from a backup: the run folders tell, and
// what the copy does not know is held until a person has looked. faults 128, 141
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
	contains(t, w.must(0, "checkpoint", "status"), "10") // who only looks is told
	w.holds(30)
	w.must(2, "checkpoint", "check", "--accept-older=0123456789abcdef")
	accept := id(t, said, "--accept-older")
	contains(t, w.must(0, "checkpoint", "check", accept), "incomplete: it lacks leads that were made after this copy")
	w.must(2, "checkpoint", "check", accept) // it answers nothing any more
	contains(t, w.must(0, "checkpoint", "status"), "the checkpoint is incomplete")

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

// checkpoint is the path of the one that lies in the state folder.
func (w *world) checkpoint() string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "state", "leadferry", "*.db"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("checkpoints: %q, %v", found, err)
	}
	return found[0]
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
	contains(t, w.must(4, "import", "-m", "leads.yaml", "leads.csv", "--out", "run"), "another checkpoint is in use for this trunk")
	w.holds(made)
}
