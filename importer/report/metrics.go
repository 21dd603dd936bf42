package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// MetricsRun is what is known of a run when it begins.
type MetricsRun struct {
	Command string
	Version string
	Target  Target
	Mapping string // path; its last element becomes a label
	Started time.Time
	Leads   int // that the checkpoint knew
	InDoubt int // rows that it held in doubt
}

// Metrics is the file of --metrics: the figures of the last run as gauges in the
// Prometheus text format, for node_exporter's textfile collector or one like it.
//
// Begin writes it with leadferry_run_in_progress 1, End with 0 and the figures, so a
// run that was killed is one that is in progress since its start time. When the last
// good run ended is carried on from the file that is there. All series bear command,
// target and mapping; each schedule needs a file of its own.
//
// The file is replaced as a whole and is 0644, unlike the run's other files: the
// collector is another user, and it holds no text of a row.
type Metrics struct {
	path   string
	run    MetricsRun
	labels map[string]string
	last   lastRuns
}

// lastRuns are Unix times in seconds; 0: never, as far as is known.
type lastRuns struct{ success, complete float64 }

// NewMetrics is the metrics file at path. A device, a pipe or "-" is refused: the
// file is replaced, not written into.
func NewMetrics(path string) (*Metrics, error) {
	if path == "-" {
		return nil, errors.New("only the summary can go to standard output")
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Metrics{path: path}, nil
}

// Begin says that a run has begun. An error says what could not be read of the old
// file, or that the new one could not be written; the run need not end for it.
func (m *Metrics) Begin(run MetricsRun) error {
	m.run, m.labels = run, metricsLabels(run)
	var unread error
	if m.last, unread = readLast(m.path, m.labels); unread != nil {
		unread = fmt.Errorf("read the metrics of the last run, so that it is not known when it was: %w", unread)
	}
	return errors.Join(unread, m.write(m.begun(1)))
}

// End says how the run ended: with the exit code of the program and the figures of
// s, which is nil when the run ended before its first row.
func (m *Metrics) End(s *Summary, code int, now time.Time) error {
	if s != nil {
		m.run.Started, now = s.StartedAt, s.FinishedAt
		if s.Outcome == "complete" || s.Outcome == "attention" {
			m.last.complete = seconds(now)
		}
		if code == 0 && !s.DryRun {
			m.last.success = seconds(now)
		}
	}
	gauges := append(m.begun(0), endGauges(now, code)...)
	if s != nil {
		gauges = append(gauges, s.gauges()...)
	}
	return m.write(gauges)
}

// Refused says that a command ended with code before its run began. What is not known of
// the run, the file that is there says: its series go on.
func (m *Metrics) Refused(run MetricsRun, code int) error {
	families, err := readMetrics(m.path)
	if err != nil {
		return fmt.Errorf("read the metrics of the last run: %w", err)
	}
	m.run, m.labels = run, metricsLabels(run)
	if run.Target.LeadsURL == "" || run.Mapping == "" {
		maps.Copy(m.labels, labelsOf(families[metricsNamespace+"_"+exitCode], "target", "mapping"))
	}
	m.last = lastOf(families, m.labels)
	return m.write(append(m.program(0), endGauges(time.Now(), code)...))
}

// metricsLabels tell the series of one schedule from those of another.
func metricsLabels(run MetricsRun) map[string]string {
	return map[string]string{
		"command": run.Command,
		"target":  run.Target.String(),
		"mapping": strings.ToValidUTF8(filepath.Base(run.Mapping), "?"),
	}
}

func (m *Metrics) write(gauges []gauge) error {
	if err := writeGauges(m.path, m.labels, gauges); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}

// endGauges are the gauges of every end.
func endGauges(now time.Time, code int) []gauge {
	return []gauge{
		single("run_end_timestamp_seconds", "Unix time at which the run ended.", seconds(now)),
		single(exitCode, "Exit code of the run: 0 no row needs attention, 1 some do, 2 usage, 3 stopped early, 4 checkpoint, 5 rows in doubt, 130 interrupted.", float64(code)),
	}
}

// begun are the gauges that the file holds from the run's beginning.
func (m *Metrics) begun(progress float64) []gauge {
	return append(m.program(progress),
		single("checkpoint_leads", "Leads that the checkpoint knew when the run began.", float64(m.run.Leads)),
		single("checkpoint_rows_in_doubt", "Rows, of whatever file, that the checkpoint held in doubt when the run began.", float64(m.run.InDoubt)),
	)
}

// program are the gauges that need no run.
func (m *Metrics) program(progress float64) []gauge {
	gauges := []gauge{
		{
			name: "build_info", help: "The program that wrote this file; always 1.", labels: []string{"version", "goversion"},
			points: []point{{[]string{m.run.Version, runtime.Version()}, 1}},
		},
		single("run_in_progress", "Whether the run goes on: 1 also when it was killed.", progress),
		single("run_start_timestamp_seconds", "Unix time at which the run began.", seconds(m.run.Started)),
	}
	if m.last.success > 0 {
		gauges = append(gauges, single(lastSuccess, "Unix time at which the last run ended with exit code 0.", m.last.success))
	}
	if m.last.complete > 0 {
		gauges = append(gauges, single(lastComplete, "Unix time at which the last run ended that came to the end of its input, whatever became of the rows.", m.last.complete))
	}
	return gauges
}

const (
	lastSuccess  = "last_success_timestamp_seconds"
	lastComplete = "last_complete_timestamp_seconds"
	exitCode     = "run_exit_code"
)

// host is the host of an address, with its port; the sandbox's address is a word.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(cmp.Or(u.Host, u.Path), "?")
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
