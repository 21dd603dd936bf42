package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPruneRemovesWhatAsksForNobody(t *testing.T) {
	parent := t.TempDir()
	mine := Target{BaseURL: "b", LeadsURL: "l", TrunkID: "t"}
	// Of 1 to 12 o'clock, the newest last.
	runs := []struct {
		alter func(s *Summary)
		files []string
		stays bool
	}{
		{func(s *Summary) { s.Checkpoint.Path = "only.db" }, nil, true}, // the last one of its checkpoint
		{func(s *Summary) {}, nil, false},
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
		must(t, r.Finish(s))
		must(t, r.close())
		for _, f := range run.files {
			must(t, os.WriteFile(filepath.Join(parent, name, f), nil, 0o600))
		}
		if run.stays {
			want = append(want, name)
		}
	}
	for _, name := range []string{"20250101T000000Z-import-00000000", "mine"} { // killed runs have no summary
		must(t, os.Mkdir(filepath.Join(parent, name), 0o700))
	}
	want = append(append([]string{"20250101T000000Z-import-00000000"}, want...), "mine")
	must(t, Prune(parent, 2, mine))
	if diff := cmp.Diff(want, names(t, parent)); diff != "" {
		t.Error(diff)
	}
	must(t, Prune(filepath.Join(parent, "none"), 1, mine))
}

// fault 137: a folder of another user is not looked into, nor followed a link.
func TestPruneTouchesNothingOfOthers(t *testing.T) {
	parent, outside := t.TempDir(), t.TempDir()
	mine := Target{TrunkID: "t"}
	for i := range 3 {
		r := open(t, Files{Dir: filepath.Join(outside, fmt.Sprintf("20260101T00000%dZ-import-00000000", i))})
		must(t, r.Finish(&Summary{RunID: "1", Command: "import", Outcome: "complete", Target: mine}))
	}
	for _, name := range names(t, outside) {
		must(t, os.Symlink(filepath.Join(outside, name), filepath.Join(parent, name)))
	}
	linked := names(t, parent) // some systems show no links
	if err := Prune(parent, 1, mine); err != nil || !slices.Equal(linked, names(t, parent)) || len(names(t, outside)) != 3 {
		t.Errorf("%v and %v stay, %v", names(t, parent), names(t, outside), err)
	}
	if os.Geteuid() != 0 {
		return
	}
	for _, name := range names(t, outside) {
		must(t, os.Lchown(filepath.Join(outside, name, "summary.json"), 4711, -1))
	}
	if err := Prune(outside, 1, mine); err != nil || len(names(t, outside)) != 3 {
		t.Errorf("of others %v stay, %v", names(t, outside), err)
	}
}
