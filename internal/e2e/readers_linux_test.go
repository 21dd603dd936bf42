package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// TestARefusedRunLeavesNoCheckpoint: whatever refuses a run before its first lead request,
// --require-checkpoint is not satisfied by what it leaves. faults 136
func TestARefusedRunLeavesNoCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	w.write("taken", "")
	w.write("twice.csv", "key,lead_id\nA,lead-1\nB,lead-1\n")
	right := w.env
	run := []string{"import", "-m", "leads.yaml", "leads.csv", "--checkpoint", "c.db"}
	for name, refused := range map[string]struct {
		code int
		env  string
		args []string
	}{
		"a wrong secret":      {3, "LEADFERRY_CLIENT_SECRET=wrong-secret-value", append(run, "--out", "run")},
		"no service":          {3, "LEADFERRY_BASE_URL=http://127.0.0.1:1", append(run, "--out", "run", "--max-wait", "100ms")},
		"an output":           {2, "", append(run, "--out", "taken/run")},
		"a list":              {2, "", []string{"checkpoint", "adopt", "twice.csv", "--checkpoint", "c.db"}},
		"an empty resolution": {2, "", []string{"checkpoint", "resolve", "twice.csv", "--checkpoint", "c.db"}},
	} {
		w.env = append(right, refused.env)
		w.must(refused.code, refused.args...)
		if files, _ := filepath.Glob(filepath.Join(w.dir, "*c.db*")); len(files) > 0 {
			t.Errorf("%s left %q", name, files)
		}
		w.env = right
		w.must(4, append(run, "--out", "none", "--require-checkpoint")...)
	}
	w.must(0, append(run, "--out", "none")...)
	w.must(0, append(run, "--out", "none", "--require-checkpoint")...)
}

// TestStatusAndExportBesideARun: the status of a checkpoint can be asked for while a run
// goes on, and who reads an export slowly keeps no run out. faults 81
func TestStatusAndExportBesideARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Latency: 20 * time.Millisecond})
	w.leads(400)
	run := []string{"import", "-m", "leads.yaml", "leads.csv", "--out", "the-run", "-c", "2"}
	first := w.command(run...)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run is shown", func() bool {
		code, out := w.run("checkpoint", "status")
		return code == 0 && strings.Contains(out, fmt.Sprintf("a run goes on (process %d): import ", first.Process.Pid)) &&
			strings.Contains(out, "/the-run\n") && !strings.Contains(out, "\nleads       0,")
	})
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	if out := w.must(0, "checkpoint", "status"); !strings.Contains(out, "\ncreated             400\n") || strings.Contains(out, "goes on") {
		t.Error(out)
	}
	export := w.command("checkpoint", "export", "--format", "jsonl") // more than a pipe holds
	slow, err := export.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := export.Start(); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := io.ReadFull(slow, one); err != nil {
		t.Fatal(err)
	}
	w.must(0, run...)
	rest, err := io.ReadAll(slow)
	if err != nil || strings.Count(string(rest), "\n") != 400 {
		t.Errorf("%d lines, %v", strings.Count(string(rest), "\n"), err)
	}
	if err := export.Wait(); err != nil {
		t.Error(err)
	}
}

// TestReadingFromAReadOnlyMount: status, export and a rehearsal change nothing and need no
// disk that can be written. fault 27
func TestReadingFromAReadOnlyMount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	w.must(0, "import", "-m", "leads.yaml", "leads.csv", "--out", "none")
	state := filepath.Join(w.dir, "state")
	files, err := filepath.Glob(filepath.Join(state, "leadferry", "*.db"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Chmod(files[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(state, state, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(state, syscall.MNT_DETACH) })
	if err := syscall.Mount("", state, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("nothing can be made read-only here: %v", err)
	}
	for _, args := range [][]string{
		{"checkpoint", "status"},
		{"checkpoint", "export"},
		{"checkpoint", "history", "r000"},
		{"checkpoint", "check"},
		{"import", "-m", "leads.yaml", "leads.csv", "--dry-run"},
	} {
		if code, out := w.run(args...); code != 0 && !strings.Contains(out, "does not know this key") {
			t.Errorf("%q: exit %d\n%s", args, code, out)
		}
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
