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

// Metrics is the file of --metrics: the figures of the last run as gauges in the Prometheus text format, for
// node_exporter's textfile collector. A run that begins writes it with leadferry_run_in_progress 1, and in the end with 0
// and the figures, so a run that was killed is one in progress. When the last good run ended is carried on from the file that is there.
// All series bear command, target and mapping; each schedule needs a file of its own. It is for all to read: no text
// of a row is in it.
type Metrics struct {
	Path, Command, Version string
	Target                 Target
	Mapping                string // path; its last element becomes a label
	Started                time.Time
	Known                  *Known // nil: the command was refused before its run began
}

// Known is what the checkpoint knew when the run began: leads, and rows in doubt, of whatever file.
type Known struct{ Leads, InDoubt int }

// CheckMetrics refuses a device, a pipe or "-" as the file of metrics: it is replaced, not written into.
func CheckMetrics(path string) error {
	info, err := os.Stat(path)
	switch {
	case path == "-":
		return errors.New("only the summary can go to standard output")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file", path)
	}
	return err
}

// GoesOn, in place of an exit code, is that of a run that has begun.
const GoesOn = -1

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

// Write replaces the file: with the exit code of the program and the figures of s, which is nil when the run ended
// before its first row, or never began. An error says what could not be read of the old file, or that the new one could
// not be written; the run need not end for it. A file that cannot be read is replaced by a run that has begun alone.
func (m *Metrics) Write(s *Summary, code int) error {
	old, unread := readMetrics(m.Path)
	if unread != nil {
		unread = fmt.Errorf("read the metrics of the last run, so that it is not known when it was: %w", unread)
		if m.Known == nil {
			return unread
		}
	}
	g := gauges{prometheus.NewRegistry(), m.labels(old)}
	last, began, ended := map[string]float64{}, m.Started, time.Now() // last: when the last runs with these labels ended
	for name := range lastHelp {
		for _, series := range old[namespace+name].GetMetric() {
			if maps.Equal(labelsOf(series), g.labels) {
				last[name] = series.GetGauge().GetValue()
			}
		}
	}
	if s != nil {
		began, ended = s.StartedAt, s.FinishedAt
		if s.Outcome == "complete" || s.Outcome == "attention" {
			last[lastComplete] = seconds(ended)
		}
		if code == 0 && !s.DryRun {
			last[lastSuccess] = seconds(ended)
		}
		g.figures(s)
	}
	for name, at := range last {
		g.set(name, lastHelp[name], at)
	}
	if m.Known != nil {
		g.set("checkpoint_leads", "Leads that the checkpoint knew when the run began.", float64(m.Known.Leads))
		g.set("checkpoint_rows_in_doubt", "Rows, of whatever file, that the checkpoint held in doubt when the run began.",
			float64(m.Known.InDoubt))
	}
	g.vec("build_info", "The program that wrote this file; always 1.", "version", "goversion").
		WithLabelValues(m.Version, runtime.Version()).Set(1)
	g.set("run_start_timestamp_seconds", "Unix time at which the run began.", seconds(began))
	progress := 1.0
	if code != GoesOn {
		progress = 0
		g.set("run_end_timestamp_seconds", "Unix time at which the run ended.", seconds(ended))
		g.set(exitCode, "Exit code of the run: 0 no row needs attention, 1 some do, 2 usage, 3 stopped early, 4 "+
			"checkpoint, 5 rows in doubt, 130 interrupted.", float64(code))
	}
	g.set("run_in_progress", "Whether the run goes on: 1 also when it was killed.", progress)
	if err := prometheus.WriteToTextfile(m.Path, g.Registry); err != nil {
		return errors.Join(unread, fmt.Errorf("write the metrics: %w", err))
	}
	return unread
}

// labels are those of all series. The file that is there says what the command line of a refused command does not.
func (m *Metrics) labels(old map[string]*dto.MetricFamily) prometheus.Labels {
	target, mapping := m.Target.String(), strings.ToValidUTF8(filepath.Base(m.Mapping), "?")
	for _, series := range old[namespace+exitCode].GetMetric() {
		if known := labelsOf(series); m.Target.LeadsURL == "" || m.Mapping == "" {
			target, mapping = known["target"], known["mapping"]
		}
	}
	return prometheus.Labels{"command": m.Command, "target": target, "mapping": mapping}
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
	if err := CheckMetrics(path); err != nil {
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

// gauges are what the file holds, all with these labels.
type gauges struct {
	*prometheus.Registry
	labels prometheus.Labels
}

// vec is a new gauge whose series are told apart by these labels besides.
func (g *gauges) vec(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: namespace + name, Help: help, ConstLabels: g.labels}, labels)
	g.MustRegister(v)
	return v
}

func (g *gauges) set(name, help string, value float64) {
	g.vec(name, help).WithLabelValues().Set(value)
}

func setEach[N int | float64](g *gauges, name, help, label string, values map[string]N) {
	v := g.vec(name, help, label)
	for of, value := range values {
		v.WithLabelValues(of).Set(float64(value))
	}
}

// figures adds those of a run that has ended. Every outcome has its series, those of no row too, so that each goes on
// from run to run. Durations are no summary in the sense of Prometheus: their sum is not known.
func (g *gauges) figures(s *Summary) {
	rows, n, l := s.Rows.ByName(), s.Requests, s.LatencyMs
	delete(rows, "read")
	g.set("run_duration_seconds", "How long the run took.", s.DurationS)
	setEach(g, "run_rows", "Rows of the run by outcome; they add up to the rows read.", "outcome", rows)
	setEach(g, "run_requests", "Requests of the run by kind, further tries included.", "kind",
		map[string]int{"create": n.Create, "update": n.Update, "token": n.Token})
	g.set("run_retries", "Further tries among the requests of the run.", float64(n.Retries))
	setEach(g, "run_responses", "Answers of the service by HTTP status code.", "code", n.ByStatus)
	if n.Create+n.Update > 0 {
		setEach(g, "run_request_duration_seconds", "How long lead requests took: percentiles and the longest.", "stat",
			map[string]float64{"p50": l.P50 / 1000, "p90": l.P90 / 1000, "p99": l.P99 / 1000, "max": l.Max / 1000})
	}
	if a := s.Asks; a != nil {
		setEach(g, "run_attention", "Rows that need attention, and those of them that did not in the run before.",
			"rows", map[string]int{"all": a.Rows, "new": a.New})
	}
	if r := s.Reconciliation; r != nil {
		verdicts := map[string]int{}
		for _, v := range r.Verdicts {
			verdicts[v.Verdict] = v.Leads
		}
		setEach(g, "run_verdicts", "Rows by verdict of the reconciliation, and absent leads.", "verdict", verdicts)
		if s := r.Sample; s != nil {
			setEach(g, "run_sample_drift_ratio", "Share of sampled leads that differ, and its 95 % interval.", "bound",
				map[string]float64{"measured": s.Share, "low": s.Low, "high": s.High})
		}
	}
	changes := g.vec("run_transitions", "Leads whose status the run changed.", "from", "to")
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

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
