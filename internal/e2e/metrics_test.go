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

// TestMetrics: good night, bad night, dry run.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(20)
	args := []string{"import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--metrics", "l.prom"}
	w.must(0, args...)
	first := w.expect("l.prom", map[string]string{
		"leadferry_run_in_progress{}": "0", "leadferry_run_exit_code{}": "0", `leadferry_run_rows{outcome="created"}`: "20",
		`leadferry_run_requests{kind="create"}`: "20", `leadferry_run_responses{code="201"}`: "20", "leadferry_checkpoint_leads{}": "0",
	})
	const success, complete = "leadferry_last_success_timestamp_seconds{}", "leadferry_last_complete_timestamp_seconds{}"
	if first[success] == "" || first[success] != first[complete] {
		t.Errorf("success %q, complete %q", first[success], first[complete])
	}
	w.write("more.csv", "id,org,name\nL90000,,no organization\n")
	w.must(1, "import", "-m", "leads.yaml", "leads.csv", "more.csv", "--out", "none", "--metrics", "l.prom")
	second := w.expect("l.prom", map[string]string{
		"leadferry_run_exit_code{}": "1", `leadferry_run_rows{outcome="created"}`: "0", `leadferry_run_rows{outcome="unchanged"}`: "20",
		`leadferry_run_rows{outcome="invalid"}`: "1", "leadferry_checkpoint_leads{}": "20", success: first[success],
	})
	if second[complete] == first[complete] {
		t.Error("the second run came to the end of its input, too")
	}
	before := w.figures("l.prom")["leadferry_run_start_timestamp_seconds{}"]
	w.must(0, append(args, "--dry-run")...)
	w.expect("l.prom", map[string]string{"leadferry_run_start_timestamp_seconds{}": before})

	w.env = append(w.env, "LEADFERRY_CLIENT_SECRET=wrong", "LEADFERRY_METRICS=l.prom")
	w.must(3, args[:6]...)
	w.expect("l.prom", map[string]string{"leadferry_run_exit_code{}": "3", success: first[success], complete: second[complete]})
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
