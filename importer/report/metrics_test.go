package report

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// clock is the beginning of a run; runs of these tests take ten seconds.
var clock = time.Date(2026, 5, 12, 2, 30, 0, 0, time.UTC)

func nightly() MetricsRun {
	return MetricsRun{
		Command: "sync", Version: "1.2.3", Mapping: "/etc/leadferry/crm.yaml", Started: clock, Leads: 200, InDoubt: 2,
		Target: Target{BaseURL: "https://api.example.com", LeadsURL: "https://user:pass@leads.example.com:8443/eu", TrunkID: "t-1"},
	}
}

func ended(outcome string, code int) *Summary {
	return &Summary{
		Command: "sync", Outcome: outcome, ExitCode: code, StartedAt: clock, FinishedAt: clock.Add(10 * time.Second), DurationS: 10,
		Rows:      RowCounts{Read: 200, Updated: 28, Unchanged: 170, Unmatched: 1, Conflict: 1},
		Requests:  Requests{Update: 29, Token: 1, Retries: 1, ByStatus: map[string]int{"200": 29, "429": 1}},
		LatencyMs: Latency{P50: 5, P90: 10, P99: 20.5, Max: 31},
		Transitions: []Transition{
			{"open", "contacted", 7}, {"", "open", 1}, {"Ann Lee", "open", 1}, {"555 0100", "open", 2},
		},
	}
}

func metricsAt(t *testing.T, path string) *Metrics {
	t.Helper()
	m, err := NewMetrics(path)
	must(t, err)
	return m
}

// night is one run from its beginning to its end.
func night(t *testing.T, path string, run MetricsRun, s *Summary, code int) {
	t.Helper()
	m := metricsAt(t, path)
	must(t, m.Begin(run))
	must(t, m.End(s, code, run.Started.Add(10*time.Second)))
}

// value is the number of the one series that begins with a name, labels left out.
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
	night(t, path, nightly(), ended("attention", 1), 1)
	got := strings.ReplaceAll(read(t, path), runtime.Version(), "GO")
	golden := filepath.Join("testdata", "metrics.prom")
	if diff := cmp.Diff(read(t, golden), got); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"pass", "Ann", "555", "/etc"} {
		if strings.Contains(got, secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
}

// A run that was killed leaves what Begin wrote.
func TestMetricsOfARunThatWasKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leadferry.prom")
	night(t, path, nightly(), ended("complete", 0), 0)
	again := nightly()
	again.Started = clock.Add(24 * time.Hour)
	must(t, metricsAt(t, path).Begin(again))
	for name, want := range map[string]string{
		"run_in_progress": "1", "run_start_timestamp_seconds": "1.7786394e+09", "checkpoint_rows_in_doubt": "2",
		"run_exit_code": "none", "run_duration_seconds": "none", lastSuccess: "1.77855301e+09", lastComplete: "1.77855301e+09",
	} {
		if got := value(t, path, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestLastRunsLiveOn: the second night's end decides which times move; the first
// night's stand otherwise.
func TestLastRunsLiveOn(t *testing.T) {
	const first, second = "1.77855301e+09", "1.77863941e+09"
	later := func(s *Summary) *Summary {
		s.StartedAt, s.FinishedAt = s.StartedAt.Add(24*time.Hour), s.FinishedAt.Add(24*time.Hour)
		return s
	}
	dry := ended("complete", 0)
	dry.DryRun = true
	other := nightly()
	other.Command = "import"
	tests := []struct {
		name              string
		run               MetricsRun
		s                 *Summary
		code              int
		success, complete string
	}{
		{"no row needs attention", nightly(), ended("complete", 0), 0, second, second},
		{"rows need attention", nightly(), ended("attention", 1), 1, first, second},
		{"a row is in doubt", nightly(), ended("attention", 5), 5, first, second},
		{"standard output was closed", nightly(), ended("complete", 0), 3, first, second},
		{"stopped early", nightly(), ended("stopped", 3), 3, first, first},
		{"interrupted", nightly(), ended("interrupted", 130), 130, first, first},
		{"the time was up, no row was left", nightly(), ended("stopped", 0), 0, second, first},
		{"refused before the first row", nightly(), nil, 2, first, first},
		{"a dry run", nightly(), dry, 0, first, second},
		{"another command", other, ended("stopped", 3), 3, "none", "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leadferry.prom")
			night(t, path, nightly(), ended("complete", 0), 0)
			if tt.s != nil {
				later(tt.s)
			}
			night(t, path, tt.run, tt.s, tt.code)
			if got := value(t, path, lastSuccess); got != tt.success {
				t.Errorf("last success %s, want %s", got, tt.success)
			}
			if got := value(t, path, lastComplete); got != tt.complete {
				t.Errorf("last complete %s, want %s", got, tt.complete)
			}
			if got := value(t, path, "run_in_progress"); got != "0" {
				t.Errorf("in progress: %s", got)
			}
		})
	}
}

// TestAnOldFileThatCannotBeRead is told of and replaced: the next run has one to read.
func TestAnOldFileThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"other text": "this is no metric\n", "half a file": "# HELP leadferry_x y\nleadferry_last_success_timestamp_seconds{comm", "binary": "\x00\xff\x00",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leadferry.prom")
			must(t, os.WriteFile(path, []byte(text), 0o600))
			m := metricsAt(t, path)
			if err := m.Begin(nightly()); err == nil || !strings.Contains(err.Error(), "read the metrics of the last run") {
				t.Errorf("error %v", err)
			}
			if got := value(t, path, "run_in_progress"); got != "1" {
				t.Errorf("in progress: %s", got)
			}
			must(t, m.End(ended("complete", 0), 0, clock))
			night(t, path, nightly(), ended("stopped", 3), 3)
			if got := value(t, path, lastSuccess); got != "1.77855301e+09" {
				t.Errorf("last success %s", got)
			}
		})
	}
}

func TestAnEmptyOldFileSaysNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leadferry.prom")
	must(t, os.WriteFile(path, nil, 0o600))
	night(t, path, nightly(), ended("stopped", 3), 3)
	if got := value(t, path, lastSuccess); got != "none" {
		t.Errorf("last success %s", got)
	}
}

// TestMetricsFileIsForOthersToRead, whole, under its own name, and never through a link.
func TestMetricsFileIsForOthersToRead(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "leadferry.prom"), filepath.Join(dir, "target")
	must(t, os.WriteFile(target, []byte("# a file of somebody else\n"), 0o600))
	must(t, os.Symlink(target, path))
	night(t, path, nightly(), ended("complete", 0), 0)
	info, err := os.Lstat(path)
	must(t, err)
	if info.Mode() != fs.FileMode(0o644) {
		t.Errorf("mode %v", info.Mode())
	}
	if got := read(t, target); got != "# a file of somebody else\n" {
		t.Errorf("the link's target was written: %q", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

func TestMetricsThatCannotBeWritten(t *testing.T) {
	m := metricsAt(t, filepath.Join(t.TempDir(), "no such folder", "leadferry.prom"))
	if err := m.Begin(nightly()); err == nil {
		t.Error("Begin: no error")
	}
	if err := m.End(ended("complete", 0), 0, clock); err == nil {
		t.Error("End: no error")
	}
}

func TestMetricsAreNotWrittenIntoWhatIsNoFile(t *testing.T) {
	for _, path := range []string{"-", os.DevNull, t.TempDir()} {
		if _, err := NewMetrics(path); err == nil {
			t.Errorf("%s was taken", path)
		}
	}
}

// TestMetricsOfAnyTexts: whatever names and statuses look like, the file is one that
// the next run reads.
func TestMetricsOfAnyTexts(t *testing.T) {
	dir := t.TempDir()
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "leadferry.prom")
		run := nightly()
		run.Command = text.Draw(t, "command")
		run.Mapping, run.Target.TrunkID, run.Target.LeadsURL = text.Draw(t, "mapping"), text.Draw(t, "trunk"), text.Draw(t, "url")
		run.Command, run.Version = strings.ToValidUTF8(run.Command, ""), "1"
		s := ended("complete", 0)
		s.Transitions = append(s.Transitions, Transition{text.Draw(t, "from"), text.Draw(t, "to"), 1})
		must(t, os.RemoveAll(path))
		for range 2 {
			m, err := NewMetrics(path)
			must(t, err)
			must(t, m.Begin(run))
			must(t, m.End(s, 0, clock))
		}
		m, err := NewMetrics(path)
		must(t, err)
		err = m.begin(run)
		last := m.last
		if want := seconds(s.FinishedAt); err != nil || last[lastSuccess] != want || last[lastComplete] != want {
			t.Fatalf("%v, %v", last, err)
		}
	})
}
