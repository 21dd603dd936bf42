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
)

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
	if err != nil {
		h.t.Fatal(err)
	}
}

// run runs an import of the user's, in his home, and returns exit code and output.
func (h *house) run(args ...string) (int, string) {
	h.t.Helper()
	c := exec.Command(h.program, append([]string{"import", "-m", "leads.yaml", "leads.csv"}, args...)...)
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

// TestANeighbourReceivesNothing, and nothing of his is believed, whatever he has planted
// where all may write. fault 137
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
	code, out := h.run("--sandbox", "--out", run, "--results", filepath.Join(h.shared, "r.csv"))
	if code != 1 || !strings.Contains(out, "of --out belongs to another user") || !strings.Contains(out, "of --results may be written to by every user") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for _, path := range []string{filepath.Join(run, "rejects.csv"), filepath.Join(run, "summary.json"), filepath.Join(h.shared, "r.csv")} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != user {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}
