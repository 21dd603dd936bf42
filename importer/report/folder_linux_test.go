package report

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"leadferry/internal/testsupport/must"
)

// Files of an earlier run stay until this run ends, and are then removed. Files that no run wrote stay.
func TestAReusedFolderHoldsOneRun(t *testing.T) {
	dir := t.TempDir()
	first := open(t, Files{Dir: dir})
	must.Do(t, first.Reject(Input{}, bad))
	must.Do(t, first.Reject(Input{}, Reject{Names: []string{"other"}, Cells: []string{"7"}}))
	must.Do(t, first.Reject(Input{Format: "jsonl"}, Reject{Raw: "{}"}))
	must.Do(t, first.Finish(sample()))
	for _, name := range []string{"notes.txt", "rejects.txt", "my-rejects.csv", "Results.csv", "report.html", "rejects-7.csv.partial"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	before := []string{"my-rejects.csv", "notes.txt", "rejects-2.csv", "rejects-3.jsonl", "rejects-7.csv.partial", "rejects.csv", "rejects.txt", "report.html", "results.csv"}

	second := open(t, Files{Dir: dir, Summary: None})
	must.Do(t, second.Reject(Input{}, bad))
	have := names(t, dir)
	for _, name := range append(before, "summary.json") {
		if !strings.Contains(strings.Join(have, " "), name) {
			t.Errorf("%s is gone before the run ended", name)
		}
	}
	must.Do(t, second.Finish(sample()))
	must.Same(t, []string{"Results.csv", "my-rejects.csv", "notes.txt", "rejects.csv", "rejects.txt", "results.csv"}, names(t, dir))
}

func TestRejectsThatNoRunLeftStay(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "rejects.csv"), []byte("being corrected"), 0o600))
	must.Do(t, open(t, Files{Dir: dir}).Finish(sample()))
	must.Same(t, "being corrected", read(t, filepath.Join(dir, "rejects.csv")), "the rejects are")
}

func TestARunThatCannotWriteLeavesTheEarlierOnesFiles(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "rejects.csv"), []byte("x"), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "summary.json"), nil, 0o600))
	r := open(t, Files{Dir: dir, Results: "/dev/full"})
	must.Do(t, r.Results([]Result{{}}))
	if err := r.Finish(sample()); err == nil {
		t.Fatal("nothing fails")
	}
	must.Same(t, "x", read(t, filepath.Join(dir, "rejects.csv")), "the rejects are")
}

// fault 137: the run's folder is held open. A folder that somebody puts in its place receives nothing.
func TestAFolderThatIsSwappedReceivesNothing(t *testing.T) {
	parent := t.TempDir()
	dir, moved := filepath.Join(parent, "run"), filepath.Join(parent, "moved")
	r := open(t, Files{Dir: dir})
	must.Do(t, os.Rename(dir, moved))
	must.Do(t, os.Mkdir(dir, 0o700))
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "rejects.csv"), 0o600))
	must.Do(t, r.Results([]Result{{Key: "7"}}))
	must.Do(t, r.Reject(Input{}, bad))
	must.Do(t, r.Finish(sample()))
	must.Same(t, []string{"rejects.csv", "results.csv", "summary.json"}, names(t, moved))
	must.Same(t, []string{"rejects.csv"}, names(t, dir))
}

// fault 137: what another user planted is neither written to nor waited for.
func TestAPlantedPipeReceivesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const somebody = 4711
	path := filepath.Join(t.TempDir(), "rejects.csv")
	must.Do(t, syscall.Mkfifo(path, 0o622))
	must.Do(t, os.Lchown(path, somebody, -1))
	if _, err := OpenRun(Files{Rejects: path}); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("named by a flag: %v", err)
	}
	if _, err := OpenRun(Files{Dir: filepath.Dir(path)}); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("in the folder: %v", err)
	}
	must.Do(t, os.Remove(path))
	r := open(t, Files{Dir: filepath.Dir(path)})
	must.Do(t, syscall.Mkfifo(path, 0o622))
	must.Do(t, os.Lchown(path, somebody, -1))
	if err := r.Reject(Input{}, bad); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("in the folder, later: %v", err)
	}
}

// A file that a container mounts on its own cannot be replaced. This is reported before the run.
func TestAMountedFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "r.csv"), filepath.Join(dir, "other")
	must.Do(t, os.WriteFile(path, nil, 0o600))
	must.Do(t, os.WriteFile(other, nil, 0o600))
	if err := syscall.Mount(other, path, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("nothing can be mounted here: ", err)
	}
	t.Cleanup(func() { must.Do(t, syscall.Unmount(path, 0)) })
	if _, err := OpenRun(Files{Results: path}); err == nil || !strings.Contains(err.Error(), "mount its folder") {
		t.Errorf("%v", err)
	}
}
