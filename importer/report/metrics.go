package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"leadferry/internal/disk"
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

// labels tell the series of one schedule from those of another.
func (r *MetricsRun) labels() prometheus.Labels {
	return prometheus.Labels{
		"command": r.Command,
		"target":  r.Target.String(),
		"mapping": strings.ToValidUTF8(filepath.Base(r.Mapping), "?"),
	}
}

// Metrics is the file of --metrics: the figures of the last run as gauges in the Prometheus text format, for node_exporter's
// textfile collector or one like it.
//
// Begin writes it with leadferry_run_in_progress 1, End with 0 and the figures, so a run that was killed is one in progress.
// When the last good run ended is carried on from the file that is there. All series bear command, target and mapping; each
// schedule needs a file of its own. It is replaced as a whole and 0644: the collector is another user, and no text of a row
// stands in it.
type Metrics struct {
	path   string
	run    MetricsRun
	labels prometheus.Labels
	last   map[string]float64 // by name of the gauge: when the last runs ended, as far as is known

	gauges *prometheus.Registry // what the file is to hold
}

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
	old, unread := readMetrics(m.path)
	if unread != nil {
		unread = fmt.Errorf("read the metrics of the last run, so that it is not known when it was: %w", unread)
	}
	m.run, m.labels = run, run.labels()
	m.last = old.last(m.labels)
	m.anew(1)
	m.begun()
	return errors.Join(unread, m.write())
}

// End says how the run ended: with the exit code of the program and the figures of
// s, which is nil when the run ended before its first row.
func (m *Metrics) End(s *Summary, code int, now time.Time) error {
	if s != nil {
		m.run.Started, now = s.StartedAt, s.FinishedAt
		if s.Outcome == "complete" || s.Outcome == "attention" {
			m.last[lastComplete] = seconds(now)
		}
		if code == 0 && !s.DryRun {
			m.last[lastSuccess] = seconds(now)
		}
	}
	m.anew(0)
	m.begun()
	m.ended(now, code)
	if s != nil {
		m.figures(s)
	}
	return m.write()
}

// Refused says that a command ended with code before its run began. What is not known of
// the run, the file that is there says: its series go on.
func (m *Metrics) Refused(run MetricsRun, code int) error {
	old, err := readMetrics(m.path)
	if err != nil {
		return fmt.Errorf("read the metrics of the last run: %w", err)
	}
	m.run, m.labels = run, run.labels()
	if series := old[namespace+"_"+exitCode].GetMetric(); len(series) > 0 && (run.Target.LeadsURL == "" || run.Mapping == "") {
		known := labelsOf(series[0])
		m.labels["target"], m.labels["mapping"] = known["target"], known["mapping"]
	}
	m.last = old.last(m.labels)
	m.anew(0)
	m.ended(time.Now(), code)
	return m.write()
}

const (
	namespace    = "leadferry"
	exitCode     = "run_exit_code"
	lastSuccess  = "last_success_timestamp_seconds"
	lastComplete = "last_complete_timestamp_seconds"
)

var lastHelp = map[string]string{
	lastSuccess:  "Unix time at which the last run ended with exit code 0.",
	lastComplete: "Unix time at which the last run ended that came to the end of its input, whatever became of the rows.",
}

// vector is a gauge whose series are told apart by these labels besides.
func (m *Metrics) vector(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: m.labels}, labels)
	m.gauges.MustRegister(v)
	return v
}

func (m *Metrics) set(name, help string, value float64) {
	m.vector(name, help).WithLabelValues().Set(value)
}

func setEach[N int | float64](m *Metrics, name, help, label string, values map[string]N) {
	v := m.vector(name, help, label)
	for of, value := range values {
		v.WithLabelValues(of).Set(float64(value))
	}
}

// anew begins a file with what needs no run.
func (m *Metrics) anew(progress float64) {
	m.gauges = prometheus.NewRegistry()
	m.vector("build_info", "The program that wrote this file; always 1.", "version", "goversion").WithLabelValues(m.run.Version, runtime.Version()).Set(1)
	m.set("run_in_progress", "Whether the run goes on: 1 also when it was killed.", progress)
	m.set("run_start_timestamp_seconds", "Unix time at which the run began.", seconds(m.run.Started))
	for name, at := range m.last {
		m.set(name, lastHelp[name], at)
	}
}

// begun adds what is known from the run's beginning.
func (m *Metrics) begun() {
	m.set("checkpoint_leads", "Leads that the checkpoint knew when the run began.", float64(m.run.Leads))
	m.set("checkpoint_rows_in_doubt", "Rows, of whatever file, that the checkpoint held in doubt when the run began.", float64(m.run.InDoubt))
}

// ended adds what belongs to every end.
func (m *Metrics) ended(now time.Time, code int) {
	m.set("run_end_timestamp_seconds", "Unix time at which the run ended.", seconds(now))
	m.set(exitCode, "Exit code of the run: 0 no row needs attention, 1 some do, 2 usage, 3 stopped early, 4 checkpoint, 5 rows in doubt, 130 interrupted.", float64(code))
}

// figures adds those of a run that has ended. Every outcome has its series, those of no row
// too, so that each goes on from run to run.
func (m *Metrics) figures(s *Summary) {
	m.set("run_duration_seconds", "How long the run took.", s.DurationS)
	rows := s.Rows.ByName()
	delete(rows, "read")
	setEach(m, "run_rows", "Rows of the run by outcome; they add up to the rows read.", "outcome", rows)
	n, l := s.Requests, s.LatencyMs
	setEach(m, "run_requests", "Requests of the run by kind, further tries included.", "kind", map[string]int{"create": n.Create, "update": n.Update, "token": n.Token})
	m.set("run_retries", "Further tries among the requests of the run.", float64(n.Retries))
	setEach(m, "run_responses", "Answers of the service by HTTP status code.", "code", n.ByStatus)
	if n.Create+n.Update > 0 { // no summary in the sense of Prometheus: the sum is not known
		setEach(m, "run_request_duration_seconds", "How long lead requests took: percentiles and the longest.", "stat",
			map[string]float64{"p50": l.P50 / 1000, "p90": l.P90 / 1000, "p99": l.P99 / 1000, "max": l.Max / 1000})
	}
	if r := s.Reconciliation; r != nil {
		verdicts := map[string]int{}
		for _, v := range r.Verdicts {
			verdicts[v.Verdict] = v.Leads
		}
		setEach(m, "run_verdicts", "Rows by verdict of the reconciliation, and absent leads.", "verdict", verdicts)
		if s := r.Sample; s != nil {
			setEach(m, "run_sample_drift_ratio", "Share of sampled leads that differ, and its 95 % interval.", "bound",
				map[string]float64{"measured": s.Share, "low": s.Low, "high": s.High})
		}
	}
	changes := m.vector("run_transitions", "Leads whose status the run changed.", "from", "to")
	for _, t := range s.Transitions {
		changes.WithLabelValues(statusLabel(t.From), statusLabel(t.To)).Add(float64(t.Leads))
	}
}

// statusLabel is one word of the service's, or "other": a label is no place for texts.
func statusLabel(word string) string {
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	if len(word) > 40 || strings.ContainsFunc(word, func(r rune) bool { return !letter(r) }) {
		return "other"
	}
	return word
}

// write replaces the file, for all to read: who reads sees the old file or the new
// one. prometheus.WriteToTextfile goes by the names of files, which in the folder of another
// user, like the collector's, may come to be those of others.
func (m *Metrics) write() error {
	families, err := m.gauges.Gather()
	if err == nil {
		err = WriteFile(m.path, 0o644, func(w io.Writer) error {
			for _, f := range families {
				if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}

// oldMetrics are those that a file holds, by name.
type oldMetrics map[string]*dto.MetricFamily

// maxMetrics bounds what is read of an old metrics file, in bytes.
const maxMetrics = 1 << 20

// readMetrics reads the file at path; no file holds nothing.
func readMetrics(path string) (oldMetrics, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NonBlock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(f, maxMetrics))
	if err != nil {
		return nil, err
	}
	return families, nil
}

// IsMetrics reports whether a file of metrics stands at path, and nothing else.
func IsMetrics(path string) bool {
	old, err := readMetrics(path)
	_, ours := old[namespace+"_build_info"]
	return err == nil && ours
}

// last says when the last runs with exactly these labels ended.
func (old oldMetrics) last(labels prometheus.Labels) map[string]float64 {
	last := map[string]float64{}
	for name := range lastHelp {
		for _, series := range old[namespace+"_"+name].GetMetric() {
			if at := series.GetGauge().GetValue(); at > 0 && !math.IsInf(at, 0) && maps.Equal(labelsOf(series), labels) {
				last[name] = at
			}
		}
	}
	return last
}

func labelsOf(series *dto.Metric) prometheus.Labels {
	labels := prometheus.Labels{}
	for _, pair := range series.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
