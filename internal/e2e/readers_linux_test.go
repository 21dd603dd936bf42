package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
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

// TestReadingFromAReadOnlyMount: status, export and a rehearsal change nothing and need no
// disk that can be written. fault 27
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

// Users of the same machine.
const (
	user      = 47011
	neighbour = 47012
)

// house is a folder that all users share, beside a home of the user.
type house struct {
	t            *testing.T
	shared, home string
	program      string
}

func newHouse(t *testing.T) *house {
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users")
	}
	dir := t.TempDir()
	h := &house{t: t, shared: filepath.Join(dir, "shared"), home: filepath.Join(dir, "home"), program: filepath.Join(dir, "leadferry")}
	for path := dir; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		h.ok(os.Chmod(path, 0o755))
	}
	h.ok(os.Link(binary(), h.program)) // nothing can be run that a child of other tests still has open for writing
	h.ok(os.Mkdir(h.shared, 0o777))
	h.ok(os.Chmod(h.shared, 0o777))
	h.ok(os.Mkdir(h.home, 0o700))
	for name, text := range map[string]string{
		"leads.yaml": "version: 1\nkey: \"{id}\"\nassign: [{organization: \"{org}\"}]\nlead: {type_key: t, type_label: T, content: {name: \"{name}\"}}\n",
		"leads.csv":  "id,org,name\n1,o-1,Ann\n2,,Quillon\n",
	} {
		h.ok(os.WriteFile(filepath.Join(h.home, name), []byte(text), 0o600))
	}
	h.ok(filepath.WalkDir(h.home, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, user, user))
	}))
	return h
}

func (h *house) ok(err error) {
	h.t.Helper()
	must.Do(h.t, err)
}

// run runs an import of the user's, in his home, and returns exit code and output.
func (h *house) run(args ...string) (int, string) {
	h.t.Helper()
	c := exec.Command(h.program, append(words("import -m leads.yaml leads.csv"), words(args[0], args[1:]...)...)...)
	c.Dir, c.Env = h.home, []string{"HOME=" + h.home, "XDG_STATE_HOME=" + h.home + "/state", "LEADFERRY_ANY_FILESYSTEM=1", "LEADFERRY_CLIENT_SECRET="}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	late := time.AfterFunc(time.Minute, func() { c.Process.Kill() }) // it waits for a planted pipe
	defer late.Stop()
	out, err := c.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		h.t.Skip("the folder of the tests is closed to other users")
	}
	return c.ProcessState.ExitCode(), string(out)
}

// plants makes something of the neighbour's in the shared folder.
func (h *house) plants(name string, mode os.FileMode, text string) string {
	h.t.Helper()
	path := filepath.Join(h.shared, name)
	switch {
	case mode.IsDir():
		h.ok(os.Mkdir(path, 0o700))
	case mode&os.ModeNamedPipe != 0:
		h.ok(syscall.Mkfifo(path, 0o600))
	default:
		h.ok(os.WriteFile(path, []byte(text), 0o600))
	}
	h.ok(os.Chmod(path, mode.Perm()))
	h.ok(os.Lchown(path, neighbour, neighbour))
	return path
}

// TestANeighbourReceivesNothing, and nothing of his is believed, whatever he has planted where all may write. fault 137
func TestANeighbourReceivesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	pipe, config := os.ModeNamedPipe|0o666, "profiles: {default: {base_url: \"https://neighbour.example\", leads_url: \"https://neighbour.example\", trunk_id: t, client_id: c}}\n"
	run := h.plants("run", os.ModeDir|0o777, "")
	tests := []struct {
		name string
		code int
		says string
		args []string
	}{
		{"a pipe for the rejects", 2, "belongs to another user", []string{"--sandbox", "--rejects", h.plants("bad.csv", pipe, "")}},
		{"a pipe for the summary", 2, "belongs to another user", []string{"--sandbox", "--summary", h.plants("s.json", pipe, "")}},
		{"a pipe in a run's folder", 2, "belongs to another user", []string{"--sandbox", "--out", filepath.Dir(h.plants("run/rejects.csv", pipe, ""))}},
		{"a configuration", 2, "belongs to another user", []string{"--config", h.plants("config.yaml", 0o644, config)}},
		{"a secret", 2, "belongs to another user", []string{"--base-url", "https://a.example", "--leads-url", "https://a.example", "--trunk-id", "t", "--client-id", "c", "--client-secret-file", h.plants("secret", 0o644, "planted")}},
		{"a checkpoint", 4, "hint: run this as that user", []string{"--sandbox", "--checkpoint", h.plants("c.db", 0o666, "")}},
		{"a pipe for a checkpoint", 4, "not a regular file", []string{"--sandbox", "--checkpoint", h.plants("p.db", pipe, "")}},
	}
	for _, test := range tests {
		if code, out := h.run(test.args...); code != test.code || !strings.Contains(out, test.says) {
			t.Errorf("%s: exit code %d\n%s", test.name, code, out)
		}
	}
	for _, left := range []string{"home/state/leadferry/tokens"} {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(h.home), left)); err == nil {
			t.Errorf("%s was made", left)
		}
	}

	// A folder of his is warned of, and what is written there is the user's alone.
	h.ok(os.Remove(filepath.Join(run, "rejects.csv")))
	code, out := h.run("--sandbox --out", run, "--results", filepath.Join(h.shared, "r.csv"))
	if code != 1 || !strings.Contains(out, "of --out belongs to another user") || !strings.Contains(out, "of --results may be written to by every user") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for _, path := range []string{filepath.Join(run, "rejects.csv"), filepath.Join(run, "summary.json"), filepath.Join(h.shared, "r.csv")} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != user {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}
