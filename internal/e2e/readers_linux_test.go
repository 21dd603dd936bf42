package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// A command that fails before its first lead request leaves no checkpoint, so that
// --require-checkpoint still refuses runs. faults 136
func TestARefusedRunLeavesNoCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	w.write("taken", "")
	w.write("twice.csv", "key,lead_id\nA,lead-1\nB,lead-1\n")
	right := w.env
	run := words("import -m leads.yaml leads.csv --checkpoint c.db")
	for name, refused := range map[string]struct {
		code int
		env  string
		args []string
	}{
		"a wrong secret":      {3, "LEADFERRY_CLIENT_SECRET=wrong-secret-value", append(run, "--out", "run")},
		"no service":          {3, "LEADFERRY_BASE_URL=http://127.0.0.1:1", append(run, "--out", "run", "--max-wait", "100ms")},
		"an output":           {2, "", append(run, "--out", "taken/run")},
		"a list":              {2, "", words("checkpoint adopt twice.csv --checkpoint c.db")},
		"an empty resolution": {2, "", words("checkpoint resolve twice.csv --checkpoint c.db")},
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

// Commands that only read the checkpoint, and a dry run, work on a disk that cannot be written. fault 27
func TestReadingFromAReadOnlyMount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	w.must(0, "import -m leads.yaml leads.csv --out none")
	state := filepath.Join(w.dir, "state")
	files, err := filepath.Glob(filepath.Join(state, "leadferry", "*.db"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	must.Do(t, os.Chmod(files[0], 0o644))
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
		{"checkpoint", "history", "L00000"},
		{"checkpoint", "check"},
		{"import", "-m", "leads.yaml", "leads.csv", "--dry-run"},
	} {
		if code, out := w.run(args...); code != 0 {
			t.Errorf("%q: exit %d\n%s", args, code, out)
		}
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
