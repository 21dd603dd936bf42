package report

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"leadferry/internal/testsupport/must"
)

// clock is the beginning of a run; runs of these tests take ten seconds.
var clock = time.Date(2026, 5, 12, 2, 30, 0, 0, time.UTC)

func ended(outcome string, code int) *Summary {
	return &Summary{
		Command: "sync", Outcome: outcome, ExitCode: code, StartedAt: clock, FinishedAt: clock.Add(10 * time.Second), DurationS: 10,
		Target:  Target{BaseURL: "https://api.example.com", LeadsURL: "https://user:pass@leads.example.com:8443/eu", TrunkID: "t-1"},
		Mapping: File{Path: "/etc/leadferry/crm.yaml"}, Rows: RowCounts{Read: 200, Updated: 28, Unchanged: 170, Unmatched: 1, Conflict: 1},
		Requests: Requests{Update: 29, Token: 1},
	}
}

// begun is a run at its beginning that ends as s.
func begun(s *Summary) *Summary {
	return &Summary{Command: s.Command, Outcome: Running, StartedAt: s.StartedAt, Target: s.Target, Mapping: s.Mapping}
}

// writeRun writes the metrics of one run, at its beginning and at its end.
func writeRun(t *testing.T, path string, s *Summary) {
	t.Helper()
	must.Do(t, WriteMetrics(path, begun(s)))
	must.Do(t, WriteMetrics(path, s))
}

// value returns the number of the one series with a name, whatever its labels, or "none".
func value(t *testing.T, path, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^leadferry_`+name+`\{[^}]*\} (\S+)$`).FindAllStringSubmatch(read(t, path), -1)
	if len(found) > 1 {
		t.Fatalf("%d series %s", len(found), name)
	}
	if len(found) == 0 {
		return "none"
	}
	return found[0][1]
}

func TestMetricsOfARunThatEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leadferry.prom")
	writeRun(t, path, ended("attention", 1))
	got := read(t, path)
	golden := filepath.Join("testdata", "metrics.prom")
	must.Same(t, read(t, golden), got)
	holds(t, false, got, "pass", "/etc")
}

// A run that was killed leaves what its beginning wrote.
func TestMetricsOfARunThatWasKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leadferry.prom")
	writeRun(t, path, ended("complete", 0))
	again := ended(Running, 0)
	again.StartedAt = clock.Add(24 * time.Hour)
	must.Do(t, WriteMetrics(path, again))
	for name, want := range map[string]string{
		"run_in_progress": "1", "run_start_timestamp_seconds": "1.7786394e+09",
		"run_exit_code": "none", "run_requests": "none", lastComplete: "1.77855301e+09",
	} {
		must.Same(t, want, value(t, path, name), name)
	}
}

// How the second run ends decides whether its time replaces that of the first run.
func TestWhichRunsMoveTheTimeOfTheLastCompleteRun(t *testing.T) {
	const first, second = "1.77855301e+09", "1.77863941e+09"
	later := func(s *Summary) *Summary {
		s.StartedAt, s.FinishedAt = s.StartedAt.Add(24*time.Hour), s.FinishedAt.Add(24*time.Hour)
		return s
	}
	dry := ended("complete", 0)
	dry.DryRun = true
	tests := []struct {
		name, command string
		s             *Summary
		complete      string
	}{
		{"no row needs attention", "sync", ended("complete", 0), second},
		{"a row is in doubt", "sync", ended("attention", 5), second},
		{"standard output was closed", "sync", ended("complete", 3), second},
		{"stopped early", "sync", ended("stopped", 3), first},
		{"the time was up, no row was left", "sync", ended("stopped", 0), first},
		{"refused before the first row", "sync", ended(Refused, 2), first},
		{"a dry run", "sync", dry, second},
		{"another command", "import", ended("stopped", 3), "none"},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "leadferry.prom")
		writeRun(t, path, ended("complete", 0))
		later(tt.s).Command = tt.command
		writeRun(t, path, tt.s)
		must.Same(t, []string{tt.complete, "0"}, []string{value(t, path, lastComplete), value(t, path, "run_in_progress")}, tt.name)
	}
}

// The next run can read the new file. An empty file is no error.
func TestAnUnreadableMetricsFileIsReportedAndReplaced(t *testing.T) {
	for name, text := range map[string]string{
		"other text": "this is no metric\n", "half a file": "# HELP leadferry_x y\nleadferry_last_complete_timestamp_seconds{comm", "binary": "\x00\xff\x00", "empty": "",
	} {
		path := filepath.Join(t.TempDir(), "leadferry.prom")
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		err := WriteMetrics(path, ended(Running, 0))
		if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), "read the metrics of the last run") {
			t.Errorf("%v: error %v", name, err)
		}
		if value(t, path, "run_in_progress") != "1" || value(t, path, lastComplete) != "none" {
			t.Error(name, read(t, path))
		}
		must.Do(t, WriteMetrics(path, ended("complete", 0)))
		writeRun(t, path, ended("stopped", 3))
		must.Same(t, "1.77855301e+09", value(t, path, lastComplete), "last complete", name)
	}
}

// The file is whole, has its own name, and is never written through a link.
func TestMetricsFileIsForOthersToRead(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "leadferry.prom"), filepath.Join(dir, "target")
	must.Do(t, os.WriteFile(target, []byte("# a file of somebody else\n"), 0o600))
	must.Do(t, os.Symlink(target, path))
	writeRun(t, path, ended("complete", 0))
	info, err := os.Lstat(path)
	must.Do(t, err)
	if info.Mode() != fs.FileMode(0o644) {
		t.Errorf("mode %v", info.Mode())
	}
	must.Same(t, "# a file of somebody else\n", read(t, target), "the link's target was written")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

func TestMetricsThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no such folder", "leadferry.prom")
	if WriteMetrics(path, ended(Running, 0)) == nil || WriteMetrics(path, ended("complete", 0)) == nil {
		t.Error("no error")
	}
	for _, path := range []string{"-", os.DevNull, t.TempDir()} {
		if CheckMetrics(path) == nil {
			t.Errorf("%s was taken", path)
		}
	}
}

func TestTheNextRunReadsMetricsWhateverTheirLabelsHold(t *testing.T) {
	dir := t.TempDir()
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		s, path := ended("complete", 0), filepath.Join(dir, "leadferry.prom")
		s.Command = strings.ToValidUTF8(text.Draw(t, "command"), "")
		s.Mapping.Path, s.Target.TrunkID, s.Target.LeadsURL = text.Draw(t, "mapping"), text.Draw(t, "trunk"), text.Draw(t, "url")
		must.Do(t, os.RemoveAll(path))
		for range 2 {
			must.Do(t, WriteMetrics(path, begun(s)))
			must.Do(t, WriteMetrics(path, s))
		}
		must.Do(t, WriteMetrics(path, begun(s)))
		labels, last, err := lastRun(path)
		if err != nil || labels == nil || last != seconds(s.FinishedAt) {
			t.Fatalf("%v, %v, %v", labels, last, err)
		}
	})
}
