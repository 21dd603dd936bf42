package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"leadferry/checkpoint"
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

// Metrics is the file of --metrics: the figures of the last run as gauges in the Prometheus text format, for
// node_exporter's textfile collector. Begin writes it with leadferry_run_in_progress 1, End with 0 and the figures, so
// a run that was killed is one in progress. When the last good run ended is carried on from the file that is there.
// All series bear command, target and mapping; each schedule needs a file of its own. It is for all to read: no text
// of a row is in it.
type Metrics struct {
	path   string
	run    MetricsRun
	labels prometheus.Labels
	last   map[string]float64 // by name of the gauge: when the last runs ended, as far as is known
	gauges *prometheus.Registry
}

// NewMetrics is the metrics file at path. A device, a pipe or "-" is refused: the file is replaced, not written into.
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

// Begin says that a run has begun. An error says what could not be read of the old file, or that the new one could not
// be written; the run need not end for it.
func (m *Metrics) Begin(run MetricsRun) error {
	unread := m.begin(run)
	m.set("checkpoint_leads", "Leads that the checkpoint knew when the run began.", float64(run.Leads))
	m.set("checkpoint_rows_in_doubt", "Rows, of whatever file, that the checkpoint held in doubt when the run began.",
		float64(run.InDoubt))
	return errors.Join(unread, m.write(1))
}

// End says how the run ended: with the exit code of the program and the figures of s, which is nil when the run ended
// before its first row.
func (m *Metrics) End(s *Summary, code int, now time.Time) error {
	if s != nil {
		m.run.Started, now = s.StartedAt, s.FinishedAt
		if s.Outcome == "complete" || s.Outcome == "attention" {
			m.last[lastComplete] = seconds(now)
		}
		if code == 0 && !s.DryRun {
			m.last[lastSuccess] = seconds(now)
		}
		m.figures(s)
	}
	m.set("run_end_timestamp_seconds", "Unix time at which the run ended.", seconds(now))
	m.set(exitCode, "Exit code of the run: 0 no row needs attention, 1 some do, 2 usage, 3 stopped early, 4 "+
		"checkpoint, 5 rows in doubt, 130 interrupted.", float64(code))
	return m.write(0)
}

// Refused says that a command ended with code before its run began. Of the run's labels, the file that is there says
// what the command line does not.
func (m *Metrics) Refused(run MetricsRun, code int) error {
	if err := m.begin(run); err != nil {
		return err
	}
	return m.End(nil, code, time.Now())
}

const (
	namespace    = "leadferry_"
	exitCode     = "run_exit_code"
	lastSuccess  = "last_success_timestamp_seconds"
	lastComplete = "last_complete_timestamp_seconds"
)

// lastHelp is what is said of the times that live on from run to run.
var lastHelp = map[string]string{
	lastSuccess: "Unix time at which the last run ended with exit code 0.",
	lastComplete: "Unix time at which the last run ended that came to the end of its input, whatever became of " +
		"the rows.",
}

// begin reads of the old file when the last runs with the same labels ended.
func (m *Metrics) begin(run MetricsRun) error {
	old, err := readMetrics(m.path)
	m.run, m.gauges, m.last = run, prometheus.NewRegistry(), map[string]float64{}
	m.labels = prometheus.Labels{
		"command": run.Command, "target": run.Target.String(),
		"mapping": strings.ToValidUTF8(filepath.Base(run.Mapping), "?"),
	}
	if series := old[namespace+exitCode].GetMetric(); len(series) > 0 &&
		(run.Target.LeadsURL == "" || run.Mapping == "") {
		known := labelsOf(series[0])
		m.labels["target"], m.labels["mapping"] = known["target"], known["mapping"]
	}
	for name := range lastHelp {
		for _, series := range old[namespace+name].GetMetric() {
			if maps.Equal(labelsOf(series), m.labels) {
				m.last[name] = series.GetGauge().GetValue()
			}
		}
	}
	if err != nil {
		return fmt.Errorf("read the metrics of the last run, so that it is not known when it was: %w", err)
	}
	return nil
}

func labelsOf(series *dto.Metric) prometheus.Labels {
	labels := prometheus.Labels{}
	for _, pair := range series.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// readMetrics reads the file at path; no file holds nothing.
func readMetrics(path string) (map[string]*dto.MetricFamily, error) {
	if _, err := NewMetrics(path); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// IsMetrics reports whether a file of metrics is at path, and nothing else.
func IsMetrics(path string) bool {
	families, err := readMetrics(path)
	return err == nil && families[namespace+"build_info"] != nil
}

// figures adds those of a run that has ended. Every outcome has its series, those of no row too, so that each goes on
// from run to run. Durations are no summary in the sense of Prometheus: their sum is not known.
func (m *Metrics) figures(s *Summary) {
	rows, n, l := s.Rows.ByName(), s.Requests, s.LatencyMs
	delete(rows, "read")
	m.set("run_duration_seconds", "How long the run took.", s.DurationS)
	setEach(m, "run_rows", "Rows of the run by outcome; they add up to the rows read.", "outcome", rows)
	setEach(m, "run_requests", "Requests of the run by kind, further tries included.", "kind",
		map[string]int{"create": n.Create, "update": n.Update, "token": n.Token})
	m.set("run_retries", "Further tries among the requests of the run.", float64(n.Retries))
	setEach(m, "run_responses", "Answers of the service by HTTP status code.", "code", n.ByStatus)
	if n.Create+n.Update > 0 {
		setEach(m, "run_request_duration_seconds", "How long lead requests took: percentiles and the longest.", "stat",
			map[string]float64{"p50": l.P50 / 1000, "p90": l.P90 / 1000, "p99": l.P99 / 1000, "max": l.Max / 1000})
	}
	if a := s.Asks; a != nil {
		setEach(m, "run_attention", "Rows that need attention, and those of them that did not in the run before.",
			"rows", map[string]int{"all": a.Rows, "new": a.New})
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
	changes := m.gauge("run_transitions", "Leads whose status the run changed.", "from", "to")
	for _, t := range s.Transitions {
		changes.WithLabelValues(statusLabel(t.From), statusLabel(t.To)).Add(float64(t.Leads))
	}
}

// statusLabel is a status of the service's, or "other": a label is no place for texts.
func statusLabel(word string) string {
	if word == "" || slices.Contains(checkpoint.Statuses[:], word) {
		return word
	}
	return "other"
}

// write replaces the file. What every one holds needs no run.
func (m *Metrics) write(progress float64) error {
	m.gauge("build_info", "The program that wrote this file; always 1.", "version", "goversion").
		WithLabelValues(m.run.Version, runtime.Version()).Set(1)
	m.set("run_in_progress", "Whether the run goes on: 1 also when it was killed.", progress)
	m.set("run_start_timestamp_seconds", "Unix time at which the run began.", seconds(m.run.Started))
	for name, at := range m.last {
		m.set(name, lastHelp[name], at)
	}
	if err := prometheus.WriteToTextfile(m.path, m.gauges); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}

// gauge is one whose series are told apart by these labels besides; End goes on with those of Begin.
func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: namespace + name, Help: help, ConstLabels: m.labels}, labels)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](m.gauges.Register(v)); ok {
		return known.ExistingCollector.(*prometheus.GaugeVec)
	}
	return v
}

func (m *Metrics) set(name, help string, value float64) {
	m.gauge(name, help).WithLabelValues().Set(value)
}

func setEach[N int | float64](m *Metrics, name, help, label string, values map[string]N) {
	v := m.gauge(name, help, label)
	for of, value := range values {
		v.WithLabelValues(of).Set(float64(value))
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
