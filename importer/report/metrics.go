package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// CheckMetrics refuses a metrics file that is "-" or not a regular file: a run replaces it.
func CheckMetrics(path string) error {
	info, err := os.Stat(path)
	switch {
	case path == "-":
		return errors.New("only the summary can go to standard output")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	return err
}

const (
	namespace    = "leadferry_"
	inProgress   = "run_in_progress"
	lastComplete = "last_complete_timestamp_seconds"
)

// Refused is the Outcome of a run that did not begin.
const Refused = "refused"

// WriteMetrics replaces the file of --metrics: gauges about the last run, for alerts, in the Prometheus text format for
// node_exporter's textfile collector. A run writes leadferry_run_in_progress 1 when it begins, and 0 with its counts
// when it ends: a killed run stays in progress. All series have the labels command, target and mapping; each schedule
// needs its own file. The time of the last complete run comes from the old file, if its labels are the same. All users
// may read the file: it holds no text of a row. It is written even if the old one cannot be read; the error says so.
func WriteMetrics(path string, s *Summary) error {
	old, last, unread := lastRun(path) // last: when the last run with these labels was complete
	if unread != nil {
		unread = fmt.Errorf("read the metrics of the last run, so its time of completion is lost: %w", unread)
	}
	labels := prometheus.Labels{
		"command": s.Command, "target": s.Target.String(),
		"mapping": strings.ToValidUTF8(filepath.Base(s.Mapping.Path), "?"),
	}
	if old != nil && (s.Target.LeadsURL == "" || s.Mapping.Path == "") { // a refused command may know neither
		labels["target"], labels["mapping"] = old["target"], old["mapping"]
	}
	if !maps.Equal(old, labels) {
		last = 0
	}
	if s.Outcome == "complete" || s.Outcome == "attention" {
		last = seconds(s.FinishedAt)
	}
	file, progress := prometheus.NewRegistry(), 1.0
	all := prometheus.WrapRegistererWith(labels, file)
	if s.Outcome != Running && s.Outcome != Refused {
		setCounts(all, s)
	}
	if last > 0 {
		set(all, lastComplete, "Unix time at which a run last ended after it came to the end of its input.", last)
	}
	set(all, "run_start_timestamp_seconds", "Unix time at which the run began.", seconds(s.StartedAt))
	if s.Outcome != Running {
		progress = 0
		set(all, "run_exit_code", "Exit code of the run: 0 no row needs attention, 1 some do, 2 usage, 3 stopped early, "+
			"4 checkpoint, 5 rows in doubt, 6 taken over, 130 interrupted.", float64(s.ExitCode))
	}
	set(all, inProgress, "Whether the run goes on: 1 also when it was killed.", progress)
	if err := prometheus.WriteToTextfile(path, file); err != nil {
		return errors.Join(unread, fmt.Errorf("write the metrics: %w", err))
	}
	return unread
}

// lastRun reads the metrics file at path: the labels of the last run, nil if no run wrote the file, and when a run was
// last complete, in Unix seconds; 0 if that is not known. A missing file is not an error.
func lastRun(path string) (labels prometheus.Labels, complete float64, err error) {
	if err := CheckMetrics(path); err != nil {
		return nil, 0, err
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	for _, series := range families[namespace+inProgress].GetMetric() {
		labels = prometheus.Labels{}
		for _, pair := range series.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
	}
	for _, series := range families[namespace+lastComplete].GetMetric() {
		complete = series.GetGauge().GetValue()
	}
	return labels, complete, err
}

// IsMetrics reports whether a run wrote the metrics file at path.
func IsMetrics(path string) bool {
	labels, _, err := lastRun(path)
	return err == nil && labels != nil
}

func set(to prometheus.Registerer, name, help string, value float64) {
	setEach(to, name, help, nil, map[string]float64{"": value})
}

// setEach sets a gauge: one series for each value of its label, or a single series if it has no label.
func setEach[N int | float64](to prometheus.Registerer, name, help string, label []string, values map[string]N) {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: namespace + name, Help: help}, label)
	to.MustRegister(v)
	for of, value := range values {
		v.WithLabelValues([]string{of}[:len(label)]...).Set(float64(value))
	}
}

// setCounts adds the counts of a run. Every outcome has a series, even with 0 rows, so that alerts find it.
func setCounts(all prometheus.Registerer, s *Summary) {
	rows, n := s.Rows.ByName(), s.Requests
	delete(rows, "read")
	setEach(all, "run_rows", "Rows of the run by outcome; they add up to the rows read.", []string{"outcome"}, rows)
	setEach(all, "run_requests", "Requests of the run by kind, further tries included.", []string{"kind"},
		map[string]int{"create": n.Create, "update": n.Update, "token": n.Token})
	if a := s.Asks; a != nil {
		setEach(all, "run_attention", "Rows that need attention, and those of them that did not in the run before.",
			[]string{"rows"}, map[string]int{"all": a.Rows, "new": a.New})
	}
	if r := s.Reconciliation; r != nil && r.Sample != nil {
		bounds := map[string]float64{"measured": r.Sample.Share, "low": r.Sample.Low, "high": r.Sample.High}
		setEach(all, "run_sample_drift_ratio", "Share of sampled leads that differ, and its 95 % interval.",
			[]string{"bound"}, bounds)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
