//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// removeAll removes files or folders of the world.
func (w *world) removeAll(names ...string) {
	w.t.Helper()
	for _, name := range names {
		must.Do(w.t, os.RemoveAll(filepath.Join(w.dir, name)))
	}
}

// backup copies a file or folder to a place outside of the world, where tokens may be, and returns a function that
// restores it.
func (w *world) backup(name string) (restore func()) {
	w.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(w.dir, name)
	}
	kept := filepath.Join(w.t.TempDir(), "kept")
	w.copyTree(name, kept)
	return func() { w.copyTree(kept, name) }
}

var importFour = words("import -m leads.yaml leads.csv -c 4")

// killsFour kills an import with four requests in flight.
func (w *world) killsFour(more ...string) {
	w.t.Helper()
	h := w.hold(4)
	c := w.waits(append(importFour, more...)...)
	h.full(w.t)
	c.signal(syscall.SIGKILL)
	close(h.let)
}

// After the state directory is lost, the results in run folders are adopted, and rows that they do not know are held.
// faults 141, 142
func TestLostStateIsAdoptedFromRunFolders(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"ended": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{})
			w.leads(30)
			if !kill {
				w.must(0, append(importFour, "--sandbox")...) // a try, which makes no leads in the service
				w.must(0, append(importFour, "--limit", "10")...)
			}
			if kill {
				w.killsFour()
			} else {
				w.must(0, append(importFour, "--limit", "20")...)
			}
			before := len(w.byRef())
			w.removeAll("state")
			runs := "leadferry-runs"
			if !kill {
				w.must(4, importFour...)
			} else { // the folders were moved, and nothing else knows their leads
				runs = "kept"
				must.Do(t, os.Rename(filepath.Join(w.dir, "leadferry-runs"), filepath.Join(w.dir, runs)))
			}
			contains(t, w.must(0, "checkpoint adopt "+runs+"/*/results.csv*"), "taken over")
			w.must(0, "checkpoint adopt "+runs+"/*/results.csv*") // typed again
			if !kill {                                            // every lead is known again
				w.must(0, importFour...)
				w.holds(30)
				return
			}
			contains(t, w.must(5, importFour...), "held, not sent")
			contains(t, w.must(5, importFour...), "held, not sent")
			w.holds(before)
		})
	}
}

// After an adopt was killed half-way, runs are refused until the whole list is adopted. fault 142
func TestKilledAdoptMustBeFinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(12)
	w.must(0, append(importFour, "--out", "first")...)
	w.removeAll("state")
	list := w.read("first/results.csv")
	w.write("list.csv", list)
	path, err := crashing()
	must.Do(t, err)
	c := w.command("checkpoint adopt list.csv")
	c.Path, c.Env = path, append(slices.Clone(c.Env), "LEADFERRY_FAILPOINT=commit other:3") // the first two commits announce the list
	_ = c.Run()
	said := w.must(4, importFour...)
	contains(t, said, "adopt was stopped before the end of the list", "checkpoint adopt", "list.csv")
	w.write("less.csv", strings.Join(strings.SplitAfter(list, "\n")[:4], ""))
	w.must(4, "checkpoint adopt less.csv")
	w.must(4, importFour...)
	w.must(0, "checkpoint adopt list.csv")
	w.must(0, importFour...)
	w.holds(12)
}

// A checkpoint that adopts the export of an incomplete one is incomplete, too. fault 142
func TestExportCarriesIncompleteness(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(40)
	w.must(0, append(importFour, "--limit", "10")...)
	restore := w.backup("state")
	w.must(0, append(importFour, "--limit", "30")...)
	restore()
	before := w.must(0, "checkpoint export")
	w.must(4, "checkpoint adopt leadferry-runs/*/results.csv") // an older checkpoint is not changed, not even in part
	if after := w.must(0, "checkpoint export"); after != before {
		t.Errorf("a refused command changed the checkpoint:\n%s", after)
	}
	w.must(0, "checkpoint check", id(t, w.must(4, importFour...), "--accept-older"))
	contains(t, w.must(4, "checkpoint export -o all.csv"), "whatever adopts it is incomplete", "check --accept-loss --checkpoint ")
	w.removeAll("state", "leadferry-runs")
	contains(t, w.must(0, "checkpoint adopt all.csv"), "10 leads taken over")
	contains(t, w.must(5, importFour...), "held, not sent: 30")
	w.holds(30)
}

// A file whose kind always went to another trunk is refused until a person agrees. fault 155
func TestFileOfAnotherTrunkIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(10)
	w.must(0, importFour...)
	wrong := append(importFour, "--trunk-id", "other-trunk")
	for range 2 {
		contains(t, w.must(4, wrong...), "went to trunk "+sandbox.TrunkID, "and never to trunk other-trunk")
	}
	contains(t, w.must(4, append(wrong, "--yes")...), "--new-checkpoint=")
	w.holds(10)
	answer := id(t, w.must(4, wrong...), "--new-checkpoint")
	w.must(2, append(importFour, answer)...) // here no such question was asked
	w.must(0, append(wrong, answer, "--limit", "1", "--dry-run")...)
}

// A second machine refuses a checkpoint file until a person says that it was moved there. fault 145
func TestCheckpointOfAnotherMachineIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(20)
	w.env = append(w.env, "LEADFERRY_MACHINE=one")
	w.must(0, append(importFour, "--limit", "10")...)
	w.env = append(w.env, "LEADFERRY_MACHINE=two")
	for range 2 {
		contains(t, w.must(4, importFour...), "was last used on another machine", "--moved-here")
		contains(t, w.must(4, "checkpoint copy", w.checkpoint(), "copied.db"), "was last used on another machine")
	}
	w.env = append(w.env, "LEADFERRY_MACHINE=one") // a list that was adopted belongs to this machine, too
	w.write("known.csv", "key,lead_id\nother,lead-1\n")
	w.must(0, "checkpoint adopt known.csv --checkpoint adopted.db --trunk-id other-trunk")
	w.env = append(w.env, "LEADFERRY_MACHINE=two")
	w.must(4, append(importFour, "--checkpoint", "adopted.db", "--trunk-id", "other-trunk", "--yes")...)
	w.must(0, "sync -m leads.yaml leads.csv --limit 10") // a sync makes no lead
	w.must(0, "checkpoint check")
	w.must(0, "checkpoint check --moved-here")
	w.must(0, importFour...)
	w.env = append(w.env, "LEADFERRY_MACHINE=one")
	w.must(4, importFour...)
	w.holds(20)
}

// A backup that is put in place on another machine, where no witness is, may lack leads: taken for that by the printed
// command, it holds the rows that it does not know. Invariant 9
func TestABackupOnAnotherMachineIsIncomplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(20)
	w.env = append(w.env, "LEADFERRY_MACHINE=one")
	w.must(0, append(importFour, "--limit", "10")...)
	restore := w.backup("state")
	w.must(0, importFour...)
	restore()
	w.removeAll("leadferry-runs", "state/leadferry/ledgers")
	w.env = append(w.env, "LEADFERRY_MACHINE=two")
	w.must(0, "checkpoint check", id(t, w.must(4, importFour...), "--accept-older"))
	contains(t, w.must(5, importFour...), "held, not sent: 10")
	w.holds(20)
}

// A relative path in the environment is refused: in another folder it would be another checkpoint.
func TestRelativeCheckpointInTheEnvironmentIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(2)
	w.env = append(w.env, "LEADFERRY_CHECKPOINT=leads.db")
	contains(t, w.must(2, importFour...), "relative path")
	w.must(0, append(importFour, "--checkpoint", "leads.db")...)
	w.holds(2)
}

// Files of one kind go to US and EU. A person has to agree to the second target once, and never again.
func TestSecondTargetNeedsConsentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(20)
	w.write("eu.yaml", "trunk: trunk-of-eu\norganizations: ["+organizations[0]+", "+organizations[1]+", "+organizations[2]+"]\n")
	brand, err := sandbox.LoadDirectory(filepath.Join(w.dir, "eu.yaml"))
	must.Do(t, err)
	eu := newWorld(t, sandbox.Options{Directory: brand})
	other := append(importFour, "--base-url", "http://"+eu.address(), "--leads-url", "http://"+eu.address(), "--trunk-id", "trunk-of-eu")
	w.must(0, append(importFour, "--limit", "10")...)
	answer := id(t, w.must(4, append(slices.Clip(other), "--limit", "10")...), "--new-checkpoint")
	w.must(0, append(slices.Clip(other), "--limit", "10", answer)...)
	for range 2 {
		w.must(0, importFour...)
		w.must(0, other...)
	}
	w.holds(20)
	eu.holds(20)
}

// Runs work if only the checkpoint on a volume and the run's folder can be written, and if a state directory follows a
// pod to machines where each pod has other folders.
func TestRunsWithACheckpointOrStateOnAVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(30)
	home := w.env
	w.env = append(slices.Clone(home), "XDG_STATE_HOME=/proc/1/none", "XDG_CONFIG_HOME=/proc/1/none", "XDG_CACHE_HOME=/proc/1/none")
	for n := range 3 {
		w.must(0, append(importFour, "--limit", itoa(5*n+5), "--checkpoint", "volume.db", "--out", "run")...)
	}
	w.holds(15)
	w.removeAll("run", "volume.db")
	w.env = home
	w.write("more.csv", strings.ReplaceAll(w.read("leads.csv"), "L0", "M0"))
	for n := range 3 {
		pod := filepath.Join(w.dir, "pod-"+itoa(n))
		must.Do(t, os.Mkdir(pod, 0o700))
		c := w.command("import -m ../leads.yaml ../more.csv --limit", itoa(5*n+5))
		c.Dir = pod
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
	}
	w.holds(30)
}

// Witnesses stop none of these: later runs into the same checkpoint, runs without a folder or with a fixed one, a
// second checkpoint after a person has agreed, and runs that cannot write the book.
func TestWitnessesLetHarmlessRunsPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(30)
	for n, more := range [][]string{{"--limit", "5"}, {"--limit", "9"}, {"--out", "none", "--limit", "12"}, {"--out", "fixed", "--limit", "14"}, {"--out", "fixed", "--limit", "16"}} {
		w.must(0, append(importFour, more...)...)
		if n == 1 {
			w.must(0, "sync -m leads.yaml leads.csv --limit 5")
		}
	}
	w.holds(16)
	said := w.must(4, append(importFour, "--checkpoint", "second.db")...)
	w.write("new.csv", strings.ReplaceAll(w.read("leads.csv"), "L0", "M0"))
	second := words("import -m leads.yaml new.csv -c 4 --checkpoint second.db")
	w.must(0, append(second, id(t, said, "--new-checkpoint"), "--limit", "3")...)
	w.must(2, append(second, id(t, said, "--new-checkpoint"), "--limit", "5")...) // the answer is for one run, so it stays in no script
	w.must(0, append(second, "--limit", "5")...)
	w.holds(21)
	if os.Geteuid() != 0 { // root may write everywhere
		must.Do(t, os.Chmod(filepath.Join(w.dir, "state", "leadferry", "ledgers"), 0o500))
		w.must(0, append(second, "--limit", "7")...)
	}
}
