package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

func sampleText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// flagTime is the value of a flag that takes a duration, from arguments of a sample.
func flagTime(t *testing.T, args []string, name string) time.Duration {
	t.Helper()
	for i, a := range args {
		value, ok := strings.CutPrefix(a, name+"=")
		if a == name {
			value, ok = args[i+1], true
		}
		if ok {
			return duration(t, value)
		}
	}
	t.Fatalf("no %s among %q", name, args)
	return 0
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Defaults of --timeout and --max-wait, which the samples keep.
const (
	oneRequest = 30 * time.Second
	maxWait    = 15 * time.Minute
)

// orderly fails the test unless a schedule leaves a run the time that its flags allow,
// and a stopped one that of an answer.
func orderly(t *testing.T, args []string, whole, grace time.Duration) {
	t.Helper()
	if most := flagTime(t, args, "--wait") + flagTime(t, args, "--max-duration") + maxWait; whole <= most {
		t.Errorf("the schedule ends a run after %v, its flags allow %v", whole, most)
	}
	if grace <= oneRequest {
		t.Errorf("a stopped run is killed after %v, a request may take %v", grace, oneRequest)
	}
	for _, flag := range []string{"--require-checkpoint", "--quiet"} {
		if args[0] == "reconcile" && flag == "--require-checkpoint" {
			continue // it makes none
		}
		if !slices.Contains(args, flag) {
			t.Errorf("no %s", flag)
		}
	}
}

// TestEveryScheduleIsCareful: each nightly sync refuses a broken export, waits its turn, ends in time and tells news alone.
func TestEveryScheduleIsCareful(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"nightly.cron", "leadferry-sync.service", "leadferry-sync.xml", "leadferry.sync.plist", "leadferry-cronjob.yaml",
		"leadferry-cronjob-postgres.yaml",
	} {
		words := regexp.MustCompile(`(?:</?string>|[\s=]|- --)+`).ReplaceAllString(sampleText(t, name), " ")
		for _, flag := range []string{
			"min-rows 100", "max-age 20h", "require-checkpoint", "wait 10m", "max-duration", "reopen hold", "attention new",
		} {
			if !regexp.MustCompile(`[ -]` + flag + `( |$)`).MatchString(words) {
				t.Errorf("%s lacks --%s", name, flag)
			}
		}
	}
}

// TestAlertsAreOnFiguresThatRunsWrite: each alert asks for a gauge that a sync or a reconciliation writes.
func TestAlertsAreOnFiguresThatRunsWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	w.must(0, "import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--quiet")
	w.must(0, "sync", "-m", "leads.yaml", "leads.csv", "--out", "none", "--metrics", "sync.prom")
	w.must(0, "reconcile", "-m", "leads.yaml", "leads.csv", "--out", "none", "--sample", "2", "--metrics", "reconcile.prom")
	written := w.read("sync.prom") + w.read("reconcile.prom")
	asked := regexp.MustCompile(`leadferry_[a-z_]+`).FindAllString(sampleText(t, "leadferry-alerts.rules"), -1)
	if len(asked) < 6 {
		t.Fatalf("the alerts ask for %q", asked)
	}
	for _, gauge := range asked {
		if !strings.Contains(written, "\n"+gauge+"{") {
			t.Errorf("no run writes %s", gauge)
		}
	}
}

// TestAlertsRise asks Prometheus itself, over four nights' figures, which alerts rise.
func TestAlertsRise(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool here")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"leadferry-alerts.rules": sampleText(t, "leadferry-alerts.rules"), "alerts_test.yaml": alertsTest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(promtool, "test", "rules", "alerts_test.yaml")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

const alertsTest = `rule_files: [leadferry-alerts.rules]
tests:
  - name: a night like others
    interval: 1h
    input_series:
      - {series: 'leadferry_last_complete_timestamp_seconds{command="sync"}', values: '0x30'}
      - {series: 'leadferry_run_exit_code{command="sync"}', values: '0x30'}
      - {series: 'leadferry_run_attention{command="sync",rows="new"}', values: '0x30'}
    promql_expr_test: [{expr: 'count(ALERTS)', eval_time: 25h, exp_samples: []}]
  - name: no run came to its end for 27 hours, rows are in doubt, one is new
    interval: 1h
    input_series:
      - {series: 'leadferry_last_complete_timestamp_seconds{command="sync"}', values: '0x30'}
      - {series: 'leadferry_run_exit_code{command="sync"}', values: '3x30'}
      - {series: 'leadferry_run_rows{command="sync",outcome="in_doubt"}', values: '2x30'}
      - {series: 'leadferry_run_attention{command="sync",rows="new"}', values: '1x30'}
      - {series: 'leadferry_run_sample_drift_ratio{command="reconcile",bound="low"}', values: '0.1x30'}
    promql_expr_test: [{expr: 'count(ALERTS)', eval_time: 27h, exp_samples: [{value: 5}]}]
  - name: nobody writes figures
    interval: 1h
    input_series: [{series: 'up', values: '1x30'}]
    promql_expr_test: [{expr: 'count(ALERTS{alertname="LeadferrySyncIsOverdue"})', eval_time: 1h, exp_samples: [{value: 1}]}]
`

// TestTheCrontab runs its first command by the shell, with its variables.
func TestTheCrontab(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	entry := regexp.MustCompile(`^(?:[0-9*/,-]+ ){5}leadferry (.*)$`)
	variable := regexp.MustCompile(`^([A-Z_]+)=(\S*)$`)
	var commands []string
	for line := range strings.Lines(sampleText(t, "nightly.cron")) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if v := variable.FindStringSubmatch(line); v != nil {
			if v[1] != "PATH" {
				m.setting(v[1], v[2])
			}
			continue
		}
		e := entry.FindStringSubmatch(line)
		if e == nil || strings.Contains(line, "%") { // cron would take it for a line end
			t.Fatalf("cron does not read: %s", line)
		}
		commands = append(commands, e[1])
	}
	if len(commands) != 2 {
		t.Fatalf("commands: %q", commands)
	}
	m.imports("/var/lib/leadferry/leads.db")
	m.secretFromFile()
	m.env = append(m.env, "PATH="+filepath.Dir(binary())+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, told := m.night(exec.Command("sh", "-c", m.here(commands[0])))
	if !strings.HasPrefix(out, "Sync finished: 2 of 200 rows need attention.\n") || told != "" {
		t.Errorf("cron mails %q and %q", out, told)
	}
	if b, err := os.ReadFile(m.here("/var/lib/prometheus/node-exporter/leadferry-sync.prom")); err != nil || !strings.Contains(string(b), `outcome="updated"`) {
		t.Errorf("metrics: %v\n%s", err, b)
	}
	out, told = m.night(exec.Command("sh", "-c", m.here(commands[1])))
	if !strings.HasPrefix(out, "Reconcile finished: 2 of 200 rows need attention.\n") || told != "" {
		t.Errorf("cron mails %q and %q", out, told)
	}
	if b, err := os.ReadFile(m.here("/var/lib/prometheus/node-exporter/leadferry-reconcile.prom")); err != nil || !strings.Contains(string(b), `bound="low"`) {
		t.Errorf("metrics: %v\n%s", err, b)
	}
}

// unit reads a unit file: the values of each name, with lines that go on joined.
func unit(t *testing.T, name string) map[string][]string {
	t.Helper()
	text := strings.ReplaceAll(sampleText(t, name), "\\\n", " ")
	values := map[string][]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("%s: %s", name, line)
		}
		values[key] = append(values[key], strings.ReplaceAll(value, "%S", "/var/lib"))
	}
	return values
}

// systemdTime reads what the samples use of systemd's times: one number with a unit.
func systemdTime(t *testing.T, u map[string][]string, name string) time.Duration {
	t.Helper()
	if len(u[name]) != 1 {
		t.Fatalf("%s=%q", name, u[name])
	}
	return duration(t, u[name][0])
}

func TestTheSystemdService(t *testing.T) {
	t.Parallel()
	m, u := newMachine(t), unit(t, "leadferry-sync.service")
	args := strings.Fields(u["ExecStart"][0])[1:]
	orderly(t, args, systemdTime(t, u, "TimeoutStartSec"), systemdTime(t, u, "TimeoutStopSec"))
	for _, pair := range u["Environment"] {
		name, value, _ := strings.Cut(pair, "=")
		m.setting(name, value)
	}
	m.imports("/var/lib/leadferry/leads.db")
	m.secretFromFile()
	c := exec.Command(binary(), strings.Fields(m.here(strings.Join(args, " ")))...)
	c.Dir = m.here(u["WorkingDirectory"][0])
	out, told := m.night(c)
	if lines := objects(t, told); len(lines) != 1 || lines[0]["exit_code"] != 1.0 || out != "" {
		t.Errorf("the journal has %q and %q", out, told)
	}
	if _, err := os.Stat(m.here(strings.TrimPrefix(u["ReadWritePaths"][0], "-") + "/leadferry-sync.prom")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Join(c.Dir, "leadferry-runs")); err != nil || len(entries) != 1 {
		t.Errorf("runs in the state directory: %v, %v", entries, err)
	}
}

// TestSystemdTakesTheUnits asks systemd itself, with the program where it is.
func TestSystemdTakesTheUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not there (Debian: apt-get install systemd)")
	}
	dir := t.TempDir()
	names := []string{"leadferry-sync.service", "leadferry-sync.timer", "leadferry-reconcile.service", "leadferry-reconcile.timer"}
	args := []string{"verify", "--man=no"}
	for _, name := range names {
		text := strings.ReplaceAll(sampleText(t, name), "/usr/local/bin/leadferry", binary())
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	if b, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || strings.Contains(string(b), dir) || strings.Contains(string(b), "leadferry-") {
		t.Errorf("%v\n%s", err, b)
	}
	calendar := unit(t, "leadferry-sync.timer")["OnCalendar"]
	if b, err := exec.Command(analyze, append([]string{"calendar"}, calendar...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}
