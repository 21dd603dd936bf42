package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"leadferry/internal/disk"
	"leadferry/internal/testsupport/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func rejectsPaths(r *Run) (paths []string) {
	for _, s := range r.rejects {
		paths = append(paths, s.path)
	}
	return paths
}

// firstRejects is the first rejects file, or "" while there are no rejects.
func firstRejects(r *Run) string { return append(rejectsPaths(r), "")[0] }

func open(t *testing.T, f Files) *Run {
	t.Helper()
	r, err := OpenRun(f)
	must.Do(t, err)
	t.Cleanup(r.close)
	return r
}

// plantLink makes a symbolic link. It skips the test if none can be made: wine takes the call and makes none, and
// Windows asks for a right.
func plantLink(t *testing.T, to, path string) {
	t.Helper()
	err := os.Symlink(to, path)
	if _, missing := os.Lstat(path); runtime.GOOS == "windows" && missing != nil {
		t.Skip("no links can be made here: ", err)
	}
	must.Do(t, err)
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must.Do(t, err)
	return string(b)
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must.Do(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

var bad = Reject{Line: 2, Outcome: "invalid", Error: "no", Names: []string{"id"}, Cells: []string{"7"}}

func TestFilesArePartialAndPrivateUntilTheRunEnds(t *testing.T) { // faults 29, 119
	dir := filepath.Join(t.TempDir(), "runs", "one")
	r := open(t, Files{Dir: dir})
	must.Do(t, r.Results([]Result{{Key: "7"}}))
	must.Do(t, r.Reject(Input{}, bad))
	want := []string{"rejects.csv.partial", "results.csv.partial", "summary.json.partial"}
	must.Same(t, want, names(t, dir))
	s := sample()
	must.Do(t, r.Finish(s))
	want = []string{"rejects.csv", "results.csv", "summary.json"}
	must.Same(t, want, names(t, dir))
	for path, mode := range map[string]fs.FileMode{
		dir: fs.ModeDir | 0o700, r.files.Results: 0o600, firstRejects(r): 0o600, r.files.Summary: 0o600,
	} {
		if info, err := os.Stat(path); err != nil || disk.Shared(info) || runtime.GOOS != "windows" && info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, mode)
		}
	}
	if !slices.Equal(s.paths("results"), []string{r.files.Results}) || !slices.Equal(s.paths("rejects"), rejectsPaths(r)) || s.SummaryPath != r.files.Summary {
		t.Errorf("the summary does not say where the files lie: %+v", s)
	}
}

func TestNoRejectsLeaveNoFile(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "bad.csv"), []byte("of an earlier run"), 0o600))
	r := open(t, Files{Dir: dir, Rejects: filepath.Join(dir, "bad.csv")})
	must.Do(t, r.Finish(sample()))
	must.Same(t, []string{"results.csv", "summary.json"}, names(t, dir))
	must.Same(t, "", firstRejects(r), "rejects at")
}

func TestOnlyWantedFilesAreMade(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name  string
		files Files
		want  []string
	}{
		{"a file without a folder", Files{Results: dir + "/a/r.csv"}, []string{"r.csv"}},
		{"summary on standard output", Files{Dir: dir + "/a", Summary: "-"}, []string{"rejects.csv", "results.csv"}},
		{"none of them", Files{Dir: dir + "/a", Summary: None, Results: None, Rejects: None}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			must.Do(t, os.Mkdir(dir+"/a", 0o700))
			defer os.RemoveAll(dir + "/a")
			r := open(t, tt.files)
			defer r.close()
			must.Do(t, r.Results([]Result{{}}))
			must.Do(t, r.Reject(Input{}, bad))
			must.Do(t, r.Finish(sample()))
			must.Same(t, tt.want, names(t, dir+"/a"))
		})
	}
}

func TestSymbolicLinksAreNotFollowed(t *testing.T) { // faults 30
	for _, name := range []string{"results.csv", "results.csv.partial", "rejects.csv", "rejects.csv.partial", "summary.json", "summary.json.partial"} {
		dir, canary := t.TempDir(), filepath.Join(t.TempDir(), "canary")
		must.Do(t, os.WriteFile(canary, []byte("sings"), 0o600))
		plantLink(t, canary, filepath.Join(dir, name))
		r := open(t, Files{Dir: dir})
		must.Do(t, r.Reject(Input{}, bad))
		must.Do(t, r.Finish(sample()))
		must.Same(t, "sings", read(t, canary), "the file behind the link holds", name)
		for _, path := range []string{r.files.Results, firstRejects(r), r.files.Summary} {
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%v: %s: %v, %v", name, path, info.Mode(), err)
			}
		}
	}
}

func TestALinkPlantedInTheLastMomentIsRefused(t *testing.T) { // faults 30
	dir := t.TempDir()
	plantLink(t, dir+"/canary", dir+"/link")
	folder, err := os.OpenRoot(dir)
	must.Do(t, err)
	defer folder.Close()
	if _, err := createNew(folder, "link"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("plant: %v", err)
	}
	if _, err := os.Lstat(dir + "/canary"); err == nil {
		t.Error("the link was followed")
	}
}

func TestPlacesThatCannotBeWrittenAreRefusedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	plantLink(t, "/dev/null", dir+"/device")
	run := filepath.Join(dir, "run")
	tests := []struct {
		name  string
		files Files
	}{
		{"a folder", Files{Dir: run, Results: dir}},
		{"a folder by its name", Files{Dir: run, Results: dir + "/"}},
		{"a folder to be", Files{Dir: run, Results: dir + "/to/"}},
		{"a link to a device", Files{Dir: run, Summary: dir + "/device"}},
		{"a missing folder", Files{Dir: run, Rejects: dir + "/none/here.csv"}},
		{"standard output", Files{Dir: run, Results: "-"}},
		{"a file as folder", Files{Dir: "/dev/null/x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := OpenRun(tt.files); err == nil {
				t.Fatal("no error")
			}
			if list, _ := os.ReadDir(run); len(list) > 0 {
				t.Errorf("left behind: %v", list)
			}
		})
	}
}

func TestLeftoversOfAKilledRunAreReplaced(t *testing.T) { // faults 16
	dir := t.TempDir()
	path := filepath.Join(dir, "r.csv")
	folder, err := os.OpenRoot(dir)
	must.Do(t, err)
	defer folder.Close()
	killed, err := create(folder, path)
	must.Do(t, err)
	_, err = killed.Write([]byte("half a line"))
	must.Do(t, err)
	must.Do(t, killed.buffer.Flush())

	r := open(t, Files{Results: path})
	must.Do(t, r.Results([]Result{{Key: "7"}}))
	must.Do(t, r.Finish(sample()))
	if got := read(t, path); strings.Contains(got, "half") || strings.Count(got, "\n") != 2 {
		t.Errorf("results: %q", got)
	}
	if err := killed.commit(); err == nil {
		t.Error("a run takes the place of files that it does not own")
	}
}

func TestARunDoesNotFinishTheFileOfAnotherRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.csv")
	first := open(t, Files{Results: path})
	second := open(t, Files{Results: path})
	must.Do(t, second.Results([]Result{{Key: "second"}}))
	s := sample()
	if err := first.Finish(s); err == nil || s.Outcome != "stopped" {
		t.Errorf("the first run ends %s: %v", s.Outcome, err)
	}
	must.Do(t, second.Finish(sample()))
	if got := read(t, path); !strings.Contains(got, "second") {
		t.Errorf("results: %q", got)
	}
}

func TestAFullDiskIsReported(t *testing.T) { // faults 15
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	tests := []struct {
		name    string
		files   Files
		summary string // what summary.json says, "" for none
	}{
		{"results", Files{Results: "/dev/full"}, `"outcome": "stopped"`},
		{"rejects", Files{Rejects: "/dev/full"}, `"exit_code": 3`},
		{"summary", Files{Summary: "/dev/full"}, ""},
	}
	for _, tt := range tests {
		tt.files.Dir = t.TempDir()
		r := open(t, tt.files)
		must.Do(t, r.Results([]Result{{Key: "7"}}))
		must.Do(t, r.Reject(Input{}, bad))
		s := sample()
		err := r.Finish(s)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v: Finish: %v", tt.name, err)
		}
		if tt.summary == "" {
			continue
		}
		if got := read(t, r.files.Summary); !strings.Contains(got, tt.summary) {
			t.Errorf("%v: no %s in %s", tt.name, tt.summary, got)
		}
		if _, err := os.Stat(filepath.Join(tt.files.Dir, "results.csv")); err == nil {
			t.Error(tt.name, "incomplete results bear the name of complete ones")
		}
	}
}

func TestAFullDiskStopsResultsEarly(t *testing.T) { // faults 15
	r := open(t, Files{Results: "/dev/full"})
	var err error
	for i := 0; err == nil && i < outputBuffer; i++ {
		err = r.Results([]Result{{Line: fmt.Sprint(i)}})
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("after %d results: %v", outputBuffer, err)
	}
	if err := r.Reject(Input{}, bad); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Reject: %v", err)
	}
}

// Like the summary, the page gets its name once it is whole. A run without a folder has none.
func TestPageIsWrittenIntoTheRunsFolder(t *testing.T) {
	page := func(w io.Writer, s *Summary) error {
		_, err := io.WriteString(w, "page of "+s.paths("summary")[0])
		return err
	}
	dir := filepath.Join(t.TempDir(), "run")
	r, err := OpenRun(Files{Dir: dir, Page: page})
	must.Do(t, err)
	if got := names(t, dir); !slices.Contains(got, "report.html.partial") || slices.Contains(got, "report.html") {
		t.Errorf("while the run goes on there are %v", got)
	}
	s := sample()
	must.Do(t, r.Finish(s))
	path := filepath.Join(dir, "report.html")
	text, err := os.ReadFile(path)
	must.Do(t, err)
	if want := "page of " + filepath.Join(dir, "summary.json"); string(text) != want || !slices.Equal(s.paths("page"), []string{path}) {
		t.Errorf("%s holds %q, want %q", s.Files, text, want)
	}
	broken := errors.New("no space")
	r, err = OpenRun(Files{Dir: dir, Page: func(io.Writer, *Summary) error { return broken }})
	must.Do(t, err)
	if err := r.Finish(s); !errors.Is(err, broken) || s.ExitCode != 3 || s.paths("page") != nil {
		t.Errorf("a page that cannot be written: %v, exit code %d, page %q", err, s.ExitCode, s.Files)
	}
	r, err = OpenRun(Files{Summary: filepath.Join(t.TempDir(), "s.json"), Page: page})
	must.Do(t, err)
	s = sample()
	must.Do(t, r.Finish(s))
	if s.paths("page") != nil {
		t.Errorf("a run without a folder has a page: %v", s.Files)
	}
}

// holds checks that a text has all these parts, or none of them.
func holds(t must.TB, yes bool, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		must.Same(t, yes, strings.Contains(text, part), part, text)
	}
}
