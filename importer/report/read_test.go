package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadTakesAFolderOrASummary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r, err := OpenRun(Files{Dir: dir})
	must(t, err)
	s := attention()
	s.RunID, s.Notes = "01234567", []string{"a note"}
	must(t, r.Finish(s))
	for _, path := range []string{dir, filepath.Join(dir, "summary.json")} {
		got, err := Read(path)
		must(t, err)
		if diff := cmp.Diff(s.Steps(), got.Steps()); diff != "" {
			t.Errorf("what to do next: %s", diff)
		}
		if diff := cmp.Diff(s.Left(), got.Left()); diff != "" {
			t.Errorf("files: %s", diff)
		}
		if diff := cmp.Diff(s.Headline(), got.Headline()); diff != "" || got.Notes[0] != "a note" {
			t.Errorf("%v, headline %s", got.Notes, diff)
		}
	}
}

func TestWhatIsNoSummaryIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary.json")
	for text, want := range map[string]string{
		"":                    "not the summary of a run that this version understands",
		"\x00\x01":            "not the summary",
		"id,name\n1,Ann\n":    "not the summary",
		"[]":                  "not the summary",
		"{}":                  "lacks run_id, command or outcome",
		`{"rows":{"read":1}}`: "lacks",
		`{"run_id":"1","command":"import","outcome":"running"}`:    "lacks",
		`{"version":"9.0.0","run_id":"1","rows":[1,2]}`:            "which leadferry 9.0.0 wrote",
		`{"run_id":"1","run_id":"2"}`:                              "not the summary",
		`{"run_id":"1","command":"import","outcome":"complete"}{}`: "not the summary",
		`{"run_id":` + strings.Repeat("[", 100_000):                "not the summary",
		`{"run_id":"` + strings.Repeat("x", mostRead):              "too large",
	} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("nothing there: %v", err)
	}
	if _, err := Read(os.DevNull); err == nil {
		t.Error("a device is read")
	}
}
