package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// figures are the series of a metrics file by name and own label, without the labels
// that all have.
func (w *world) figures(name string) map[string]string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	common := regexp.MustCompile(`(command|mapping|target)="[^"]*",?`)
	series := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if line[0] != '#' {
			name, value, _ := strings.Cut(strings.TrimSpace(common.ReplaceAllString(line, "")), " ")
			series[strings.Replace(name, ",}", "}", 1)] = value
		}
	}
	return series
}

func (w *world) expect(name string, want map[string]string) map[string]string {
	w.t.Helper()
	have := w.figures(name)
	for series, value := range want {
		if have[series] != value {
			w.t.Errorf("%s is %q, want %q", series, have[series], value)
		}
	}
	return have
}

// TestMetricsOfAKilledRun: who watches sees a run that began and does not end.
func TestMetricsOfAKilledRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Latency: 20 * time.Millisecond})
	w.leads(300)
	args := []string{"import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--metrics", "l.prom"}
	w.must(0, append(args, "--limit", "20")...)
	first := w.figures("l.prom")
	c := w.command(args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run makes leads", func() bool {
		leads, err := w.service.Leads()
		return err != nil || len(leads) > 20
	})
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	const success, start = "leadferry_last_success_timestamp_seconds{}", "leadferry_run_start_timestamp_seconds{}"
	killed := w.expect("l.prom", map[string]string{"leadferry_run_in_progress{}": "1", "leadferry_run_exit_code{}": "", success: first[success]})
	if killed[start] == first[start] {
		t.Error("the file still tells of the first run")
	}
	code, _ := w.run(args...)
	doubt := strconv.Itoa(len(w.exported("in_doubt")))
	w.expect("l.prom", map[string]string{
		"leadferry_run_in_progress{}": "0", "leadferry_run_exit_code{}": strconv.Itoa(code),
		`leadferry_run_rows{outcome="in_doubt"}`: doubt, "leadferry_checkpoint_rows_in_doubt{}": doubt,
	})
}
