package e2e

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// machine is a world with the files that the samples of schedules expect. It maps each
// path of the samples to a path in the world's folder.
type machine struct {
	*world
	places []string // a path of the samples, its path here, and so on
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	w := newWorld(t, sandbox.Options{})
	places := []string{"--rate=5", "--rate=500"} // faster: nobody else uses this service
	for _, p := range []string{"/etc/leadferry", "/srv/crm", "/var/lib/prometheus/node-exporter", "/var/lib/leadferry", "/state"} {
		here := filepath.Join(w.dir, p)
		must.Do(t, os.MkdirAll(here, 0o700))
		places = append(places, p, here)
	}
	for from, to := range map[string]string{"crm.yaml": "etc/leadferry/crm.yaml", "crm-export.csv": "srv/crm/crm-export.csv"} {
		w.write(to, sampleText(t, from))
	}
	w.write("etc/leadferry/client-secret", sandbox.ClientSecret+"\n")
	return &machine{w, places}
}

// here replaces the paths of the samples by those of this machine.
func (m *machine) here(text string) string { return strings.NewReplacer(m.places...).Replace(text) }

// ledgerOf returns the flag --checkpoint of a sample, or nil.
func (m *machine) ledgerOf(args []string) []string {
	for _, arg := range args {
		if strings.HasPrefix(arg, "--checkpoint=") {
			return []string{m.here(arg)}
		}
	}
	if i := slices.Index(args, "--checkpoint"); i >= 0 {
		return []string{args[i], m.here(args[i+1])}
	}
	return nil
}

// imports runs the import that a sample's command needs to have been run before.
func (m *machine) imports(args []string) {
	samples := filepath.Join(root(m.t), "samples")
	m.must(0, append([]string{"import", "-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv"), "--out", "none"}, m.ledgerOf(args)...)...)
}

// setting takes over a variable of a sample, except those that name the service: the test has its own.
func (m *machine) setting(name, value string) {
	m.t.Helper()
	switch name {
	case "LEADFERRY_BASE_URL", "LEADFERRY_LEADS_URL", "LEADFERRY_TRUNK_ID", "LEADFERRY_CLIENT_ID", "LEADFERRY_CLIENT_SECRET":
		return
	case "LEADFERRY_CLIENT_SECRET_FILE":
		m.env = append(m.env, "LEADFERRY_CLIENT_SECRET=")
	}
	m.env = append(m.env, name+"="+m.here(value))
	if !strings.HasPrefix(name, "LEADFERRY_") {
		return
	}
	help, err := exec.Command(binary(), "help", "sync", "--all").Output()
	connection, _ := exec.Command(binary(), "help", "connection").Output()
	if err != nil || !strings.Contains(string(help)+string(connection), "$"+name) {
		m.t.Errorf("no flag of sync takes %s", name)
	}
}

// night runs a command as the schedule would and returns standard output and error. The
// exit code must be 1: two rows need attention.
func (m *machine) night(c *exec.Cmd) (out, logged string) {
	m.t.Helper()
	var stdout, stderr strings.Builder
	c.Env, c.Stdout, c.Stderr = m.env, &stdout, &stderr
	_ = c.Run() // the exit code is checked below
	if code := c.ProcessState.ExitCode(); code != 1 {
		m.t.Fatalf("exit code %d, want 1\n%s%s", code, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

// objects fails the test unless each line is one JSON object with a level and a message.
func objects(t *testing.T, text string) (lines []map[string]any) {
	t.Helper()
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		var o map[string]any
		if err := json.Unmarshal(scan.Bytes(), &o); err != nil || o["level"] == nil || o["msg"] == nil {
			t.Errorf("no log line: %s", scan.Text())
		}
		lines = append(lines, o)
	}
	return lines
}

func sampleText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), "samples", name))
	must.Do(t, err)
	return string(b)
}

// schedule is one command of a sample, with its variables and its limits of time.
type schedule struct {
	file    string
	args    []string // of the program
	shell   string   // the whole line, if a shell runs it
	env     []string // NAME=value
	dir     string
	whole   time.Duration // a run is ended after this time; 0: never
	grace   time.Duration // from the signal to the kill
	metrics string        // the metrics file that a run writes
}

// schedules reads all samples of schedules.
func schedules(t *testing.T) []schedule {
	t.Helper()
	task := windowsTask(t)
	return slices.Concat(crontab(t), []schedule{systemdService(t), task, launchdAgent(t), cronJob(t, "leadferry-cronjob.yaml"), cronJob(t, "leadferry-reconcile-cronjob.yaml")})
}

// crontab are the commands of the sample for cron.
func crontab(t *testing.T) (all []schedule) {
	entry := regexp.MustCompile(`^(?:[0-9*/,-]+ ){5}leadferry (.* && leadferry (.*))$`)
	variable := regexp.MustCompile(`^([A-Z_]+)=(\S*)$`)
	var env []string
	for line := range strings.Lines(sampleText(t, "nightly.cron")) {
		line = strings.TrimSuffix(line, "\n")
		switch e := entry.FindStringSubmatch(line); {
		case line == "" || line[0] == '#':
		case variable.MatchString(line):
			if !strings.HasPrefix(line, "PATH=") {
				env = append(env, line)
			}
		case e == nil || strings.Contains(line, "%"): // cron reads % as a line end
			t.Fatalf("cron does not read: %s", line)
		default:
			name := "leadferry-" + strings.Fields(e[2])[0] + ".prom"
			all = append(all, schedule{file: "nightly.cron", args: strings.Fields(e[2]), shell: e[1], env: env, grace: time.Hour, metrics: "/var/lib/prometheus/node-exporter/" + name})
		}
	}
	return all
}

// setting returns a value of a unit file, also one that continues on the next line.
func setting(text, name string) string {
	_, value, _ := strings.Cut(strings.ReplaceAll(text, "\\\n", " "), "\n"+name+"=")
	value, _, _ = strings.Cut(value, "\n")
	return strings.ReplaceAll(value, "%S", "/var/lib")
}

func systemdService(t *testing.T) schedule {
	text := sampleText(t, "leadferry-sync.service")
	s := schedule{file: "leadferry-sync.service", args: strings.Fields(setting(text, "ExecStart"))[1:], dir: setting(text, "WorkingDirectory"), metrics: "/var/lib/prometheus/node-exporter/leadferry-sync.prom"}
	for _, pair := range regexp.MustCompile(`(?m)^Environment=(.*)`).FindAllStringSubmatch(text, -1) {
		s.env = append(s.env, strings.ReplaceAll(pair[1], "%S", "/var/lib"))
	}
	s.whole, s.grace = duration(t, setting(text, "TimeoutStartSec")), duration(t, setting(text, "TimeoutStopSec"))
	return s
}

// windowsTask is the sample for the Task Scheduler, with paths of this system.
func windowsTask(t *testing.T) schedule {
	var task struct {
		XMLName xml.Name `xml:"http://schemas.microsoft.com/windows/2004/02/mit/task Task"`
		Start   string   `xml:"Triggers>CalendarTrigger>StartBoundary"`
		Days    int      `xml:"Triggers>CalendarTrigger>ScheduleByDay>DaysInterval"`
		Limit   string   `xml:"Settings>ExecutionTimeLimit"`
		Second  string   `xml:"Settings>MultipleInstancesPolicy"`
		Words   string   `xml:"Actions>Exec>Arguments"`
	}
	must.Do(t, xml.Unmarshal([]byte(sampleText(t, "leadferry-sync.xml")), &task))
	if _, err := time.Parse("2006-01-02T15:04:05", task.Start); err != nil || task.Days != 1 || task.Second != "IgnoreNew" {
		t.Errorf("%+v, %v", task, err)
	}
	words := strings.NewReplacer(" --profile nightly", "", `C:\leadferry\metrics`, "/var/lib/leadferry", `C:\leadferry`, "/etc/leadferry", `C:\Exports`, "/srv/crm", `\`, "/").Replace(task.Words)
	return schedule{file: "leadferry-sync.xml", args: strings.Fields(words), dir: "/var/lib/leadferry", whole: duration(t, strings.ToLower(strings.TrimPrefix(task.Limit, "PT"))), grace: time.Hour}
}

func launchdAgent(t *testing.T) schedule {
	text := sampleText(t, "leadferry.sync.plist")
	values := func(name, end string) (all []string) {
		_, part, _ := strings.Cut(text, "<key>"+name+"</key>")
		part, _, _ = strings.Cut(part, end)
		for _, m := range regexp.MustCompile(`<(?:string|key|integer)>(.*?)</`).FindAllStringSubmatch(part, -1) {
			all = append(all, html.UnescapeString(m[1]))
		}
		return all
	}
	s := schedule{file: "leadferry.sync.plist", args: values("ProgramArguments", "</array>")[1:], dir: values("WorkingDirectory", "\n  <key>")[0]}
	for pair := range slices.Chunk(values("EnvironmentVariables", "</dict>"), 2) {
		if pair[0] != "LEADFERRY_CLIENT_SECRET_COMMAND" { // a test has no keychain
			s.env = append(s.env, pair[0]+"="+pair[1])
		}
	}
	s.grace = duration(t, values("ExitTimeOut", "</dict>")[0]+"s")
	return s
}

// variable is an environment variable of a container.
type variable struct{ Name, Value string }

// cronJob reads a sample for Kubernetes. tools/manifests compares all its fields with the published types.
func cronJob(t *testing.T, name string) schedule {
	t.Helper()
	var job struct {
		Kind string
		Spec struct {
			JobTemplate struct {
				Spec struct {
					Deadline int `yaml:"activeDeadlineSeconds"`
					Template struct {
						Spec struct {
							Grace      int `yaml:"terminationGracePeriodSeconds"`
							Containers []struct {
								WorkingDir string `yaml:"workingDir"`
								Args       []string
								Env        []variable
							}
						}
					}
				}
			} `yaml:"jobTemplate"`
		}
	}
	for d := yaml.NewDecoder(strings.NewReader(sampleText(t, name))); job.Kind != "CronJob"; {
		if err := d.Decode(&job); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	spec := job.Spec.JobTemplate.Spec
	main := spec.Template.Spec.Containers[0]
	s := schedule{file: name, args: main.Args, dir: main.WorkingDir, whole: time.Duration(spec.Deadline) * time.Second, grace: time.Duration(spec.Template.Spec.Grace) * time.Second}
	for _, v := range main.Env {
		s.env = append(s.env, v.Name+"="+v.Value)
	}
	return s
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	must.Do(t, err)
	return d
}

// Defaults of --timeout and --max-wait. The samples do not change them.
const (
	oneRequest = 30 * time.Second
	maxWait    = 15 * time.Minute
)

// checkFlags fails the test unless a schedule gives a run the time that its flags allow, and a stopped run the time of
// one request. A sync must refuse a broken export and ask for attention only to new rows.
func (s *schedule) checkFlags(t *testing.T) {
	t.Helper()
	words := " " + strings.ReplaceAll(strings.Join(s.args, " "), "=", " ") + " "
	flags := map[string]string{}
	for _, name := range []string{"wait", "max-duration"} {
		_, value, _ := strings.Cut(words, " --"+name+" ")
		flags[name], _, _ = strings.Cut(value, " ")
	}
	if most := duration(t, flags["wait"]) + duration(t, flags["max-duration"]) + maxWait; s.whole != 0 && s.whole <= most {
		t.Errorf("the schedule ends a run after %v, its flags allow %v", s.whole, most)
	}
	if s.grace <= oneRequest {
		t.Errorf("a stopped run is killed after %v, a request may take %v", s.grace, oneRequest)
	}
	wanted := []string{"quiet"}
	if s.args[0] == "sync" {
		wanted = []string{"quiet", "min-rows 100", "max-age 20h", "require-checkpoint", "wait 10m", "reopen hold", "attention new"}
	}
	for _, flag := range wanted {
		if !strings.Contains(words, " --"+flag+" ") {
			t.Errorf("no --%s", flag)
		}
	}
}

// Each sample of a schedule has safe flags, and its own command and variables work against an imitation of the service.
func TestEveryScheduleRuns(t *testing.T) {
	t.Parallel()
	for _, s := range schedules(t) {
		t.Run(s.file+" "+s.args[0], func(t *testing.T) {
			t.Parallel()
			s.checkFlags(t)
			m := newMachine(t)
			for _, pair := range s.env {
				name, value, _ := strings.Cut(pair, "=")
				m.setting(name, value)
			}
			m.env = append(m.env, "PATH="+filepath.Dir(binary())+string(os.PathListSeparator)+os.Getenv("PATH"))
			m.imports(s.args)
			if s.args[0] == "reconcile" {
				m.must(1, append([]string{"sync", "-m", m.here("/etc/leadferry/crm.yaml"), m.here("/srv/crm/crm-export.csv"), "--reopen", "hold", "--out", "none"}, m.ledgerOf(s.args)...)...)
			}
			c := exec.Command(binary(), strings.Split(m.here(strings.Join(s.args, "\n")), "\n")...)
			c.Dir = m.here(s.dir)
			if s.shell != "" {
				c = exec.Command("sh", "-c", m.here(s.shell))
			}
			out, logged := m.night(c)
			switch lines := objects(t, logged); {
			case s.shell != "":
				if !strings.Contains(out, " finished: 2 of 200 rows need attention.\n") || logged != "" {
					t.Errorf("cron mails %q and %q", out, logged)
				}
			case len(lines) != 1 || lines[0]["exit_code"] != 1.0 || out != "":
				t.Errorf("the log has %q and %q", out, logged)
			case s.args[0] == "reconcile" && lines[0]["sample"] == nil:
				t.Errorf("the log lacks the sample: %v", lines[0])
			}
			if s.metrics == "" {
				return
			}
			if b, err := os.ReadFile(m.here(s.metrics)); err != nil || !strings.Contains(string(b), `command="`+s.args[0]+`"`) {
				t.Errorf("metrics: %v\n%s", err, b)
			}
		})
	}
}

// Each metric that the alerts use is one that a sync or a reconciliation writes.
func TestAlertsUseMetricsThatRunsWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	w.must(0, "import -m leads.yaml leads.csv --out none --quiet")
	w.must(0, "sync -m leads.yaml leads.csv --out none --metrics sync.prom")
	w.must(0, "reconcile -m leads.yaml leads.csv --out none --sample 2 --metrics reconcile.prom")
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

// promtool says which alerts fire after a good night, after a bad one, and without figures.
func TestAlertsFireAfterABadNight(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool here")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"leadferry-alerts.rules": sampleText(t, "leadferry-alerts.rules"), "alerts_test.yaml": alertsTest} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
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
  - name: no run was complete for 27 hours, rows are in doubt, one is new
    interval: 1h
    input_series:
      - {series: 'leadferry_last_complete_timestamp_seconds{command="sync"}', values: '0x30'}
      - {series: 'leadferry_run_exit_code{command="sync"}', values: '3x30'}
      - {series: 'leadferry_run_rows{command="sync",outcome="in_doubt"}', values: '2x30'}
      - {series: 'leadferry_run_attention{command="sync",rows="new"}', values: '1x30'}
      - {series: 'leadferry_run_sample_drift_ratio{command="reconcile",bound="low"}', values: '0.1x30'}
    promql_expr_test: [{expr: 'count(ALERTS)', eval_time: 27h, exp_samples: [{value: 5}]}]
  - name: no run writes figures
    interval: 1h
    input_series: [{series: 'up', values: '1x30'}]
    promql_expr_test: [{expr: 'count(ALERTS{alertname="LeadferrySyncIsOverdue"})', eval_time: 1h, exp_samples: [{value: 1}]}]
`

// systemd-analyze has no objection to the units and their calendar.
func TestSystemdAcceptsTheUnits(t *testing.T) {
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
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		args = append(args, path)
	}
	if b, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || strings.Contains(string(b), dir) || strings.Contains(string(b), "leadferry-") {
		t.Errorf("%v\n%s", err, b)
	}
	calendar := setting(sampleText(t, "leadferry-sync.timer"), "OnCalendar")
	if b, err := exec.Command(analyze, "calendar", calendar).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}
