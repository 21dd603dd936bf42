package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/internal/testsupport/must"
)

// In each format and with each delimiter, the next run recognizes the same row with the same reason, and no other.
func TestTheNextRunRecognizesRejects(t *testing.T) {
	const began = "2026-11-22T03:10:00Z"
	row := Reject{
		Line: 2, Key: "K, 1;\"x\"", Outcome: "conflict", Since: began, Error: "=a reason, \"quoted\"; with\ta tab",
		Names: []string{"id", "name"}, Cells: []string{"1", "a\r\nb"}, Raw: `{"id":1}`,
	}
	keyless := Reject{Line: 7, Outcome: "invalid", Since: began, Error: "not closed", Names: row.Names, Text: "x"}
	for name, in := range map[string]Input{
		"csv": {Format: "csv"}, "semicolons": {Format: "csv", Delimiter: ';'}, "tsv": {Format: "tsv", Delimiter: '\t'},
		"two bytes": {Format: "csv", Delimiter: '¦'}, "jsonl": {Format: "jsonl"},
	} {
		dir := filepath.Join(t.TempDir(), "20261122T031000Z-sync-0a1b2c3d")
		summary := map[bool]string{true: filepath.Join(t.TempDir(), "s.json")}[name == "jsonl"] // named by a flag
		next := Files{Dir: filepath.Join(filepath.Dir(dir), "next"), Summary: summary}
		r := open(t, Files{Dir: dir, Namespaced: true, Summary: summary})
		for _, rej := range []Reject{row, keyless} {
			rej.Namespace = "dealers"
			must.Do(t, r.Reject(in, rej))
		}
		s := sample()
		s.RunID, s.Outcome = "0a1b2c3d", "attention"
		must.Do(t, r.Finish(s))
		like := *s
		b := ReadBefore(next, &like)
		for what, change := range map[string]func(*Reject){
			"": func(*Reject) {}, "line": func(rej *Reject) { rej.Line = 3 }, "key": func(rej *Reject) { rej.Key = "K" },
			"namespace": func(rej *Reject) { rej.Namespace = "" }, "outcome": func(rej *Reject) { rej.Outcome = "invalid" },
			"reason": func(rej *Reject) { rej.Error += "!" },
		} {
			rej := row
			rej.Namespace = "dealers"
			change(&rej)
			want := map[bool]string{true: began}[what == "" || what == "line"]
			must.Same(t, want, b.Since(&rej), name, "with another", what)
		}
		keyless.Namespace = "dealers"
		must.Same(t, began, b.Since(&keyless), name, "without a key")
		like.Command = "another"
		if ReadBefore(next, &like) != nil {
			t.Error(name, "the run of another command counts")
		}
		if !Holds(firstRejects(r), func(namespace, key string) bool { return namespace == "dealers" && key == row.Key }) ||
			Holds(firstRejects(r), func(_, key string) bool { return key == "K" }) {
			t.Error(name, "the file does not hold its key, or holds another one")
		}
		must.Do(t, os.Remove(firstRejects(r)))
		like.Command = s.Command
		if ReadBefore(next, &like) != nil {
			t.Error(name, "rejects that are gone count")
		}
	}
}

func TestReadTakesAFolderOrASummary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r, err := OpenRun(Files{Dir: dir})
	must.Do(t, err)
	s := attention()
	s.RunID, s.Notes = "01234567", []string{"a note"}
	must.Do(t, r.Finish(s))
	for _, path := range []string{dir, filepath.Join(dir, "summary.json")} {
		got, err := Read(path)
		must.Do(t, err)
		must.Same(t, s.Steps(), got.Steps(), "what to do next")
		must.Same(t, s.Files, got.Files, "files")
		if diff := cmp.Diff(s.Headline(), got.Headline()); diff != "" || got.Notes[0] != "a note" {
			t.Errorf("%v, headline %s", got.Notes, diff)
		}
	}
}

func TestWhatIsNoSummaryIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary.json")
	for text, want := range map[string]string{
		"":                 "not the summary of a run that this version understands",
		"id,name\n1,Ann\n": "not the summary",
		"{}":               "not the summary",
		`{"run_id":"1","command":"import","outcome":"running"}`:    "not the summary",
		`{"version":"9.0.0","run_id":"1","rows":[1,2]}`:            "not the summary",
		`{"run_id":"1","command":"import","outcome":"complete"}{}`: "not the summary",
		`{"run_id":` + strings.Repeat("[", 100_000):                "not the summary",
		`{"run_id":"` + strings.Repeat("x", mostRead):              "too large",
	} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
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

func TestPruneRemovesOldRunsThatNeedNoAttention(t *testing.T) {
	parent := t.TempDir()
	mine := Target{BaseURL: "b", LeadsURL: "l", TrunkID: "t"}
	// Runs of 0 to 12 o'clock, the newest last.
	runs := []struct {
		alter func(s *Summary)
		files []string
		stays bool
	}{
		{func(s *Summary) { s.Checkpoint.Path = "only.db" }, nil, true}, // another checkpoint
		{func(s *Summary) {}, nil, false},
		{func(s *Summary) { s.RunID = "now" }, nil, true}, // the clock was put back
		{func(s *Summary) {}, []string{"rejects.csv"}, true},
		{func(s *Summary) {}, []string{"notes.txt"}, true},
		{func(s *Summary) { s.Outcome = "attention" }, nil, true},
		{func(s *Summary) { s.Outcome = "stopped" }, nil, true},
		{func(s *Summary) { s.Rows.InDoubt = 1 }, nil, true},
		{func(s *Summary) { s.Target.TrunkID = "other" }, nil, true},
		{func(s *Summary) { s.DryRun = true }, nil, true},
		{func(s *Summary) {}, []string{"report.html"}, false},
		{func(s *Summary) { s.Outcome = "attention" }, nil, true}, // of the newest two
		{func(s *Summary) {}, nil, true},
	}
	var want []string
	for i, run := range runs {
		name := time.Date(2026, 1, 2, i, 0, 0, 0, time.UTC).Format("20060102T150405Z") + fmt.Sprintf("-import-%08x", i)
		s := &Summary{RunID: "1", Command: "import", Outcome: "complete", FinishedAt: time.Date(2026, 1, 2, i, 0, 0, 0, time.UTC), Target: mine, Checkpoint: Checkpoint{Path: "c.db"}}
		run.alter(s)
		r := open(t, Files{Dir: filepath.Join(parent, name)})
		must.Do(t, r.Finish(s))
		for _, f := range run.files {
			must.Do(t, os.WriteFile(filepath.Join(parent, name, f), nil, 0o600))
		}
		if run.stays {
			want = append(want, name)
		}
	}
	for _, name := range []string{"20250101T000000Z-import-00000000", "mine"} { // killed runs have no summary
		must.Do(t, os.Mkdir(filepath.Join(parent, name), 0o700))
	}
	want = append(append([]string{"20250101T000000Z-import-00000000"}, want...), "mine")
	now := &Summary{RunID: "now", Target: mine, Checkpoint: Checkpoint{Path: "c.db"}}
	must.Do(t, now.Prune(parent, 2))
	must.Same(t, want, names(t, parent))
	must.Do(t, now.Prune(filepath.Join(parent, "none"), 1))
}

// fault 137: Prune neither looks into a folder of another user nor follows a link.
func TestPruneTouchesNothingOfOthers(t *testing.T) {
	parent, outside := t.TempDir(), t.TempDir()
	mine := Target{TrunkID: "t"}
	for i := range 3 {
		r := open(t, Files{Dir: filepath.Join(outside, fmt.Sprintf("20260101T00000%dZ-import-00000000", i))})
		must.Do(t, r.Finish(&Summary{RunID: "1", Command: "import", Outcome: "complete", Target: mine}))
	}
	for _, name := range names(t, outside) {
		must.Do(t, os.Symlink(filepath.Join(outside, name), filepath.Join(parent, name)))
	}
	linked := names(t, parent) // some systems show no links
	if err := (&Summary{Target: mine}).Prune(parent, 1); err != nil || !slices.Equal(linked, names(t, parent)) || len(names(t, outside)) != 3 {
		t.Errorf("%v and %v stay, %v", names(t, parent), names(t, outside), err)
	}
	if os.Geteuid() != 0 {
		return
	}
	for _, name := range names(t, outside) {
		must.Do(t, os.Lchown(filepath.Join(outside, name, "summary.json"), 4711, -1))
	}
	if err := (&Summary{Target: mine}).Prune(outside, 1); err != nil || len(names(t, outside)) != 3 {
		t.Errorf("of others %v stay, %v", names(t, outside), err)
	}
}
