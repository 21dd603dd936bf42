package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"leadferry/internal/trust"
)

// maxMetrics bounds what is read of an old metrics file, in bytes.
const maxMetrics = 1 << 20

// writeGauges replaces the file at path by the gauges, each with the common labels
// besides its own. A reader sees the old file or the new one.
func writeGauges(path string, common map[string]string, gauges []gauge) error {
	registry := prometheus.NewRegistry()
	for _, g := range gauges {
		vector := prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: g.name, Help: g.help, ConstLabels: common,
		}, g.labels)
		if err := registry.Register(vector); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		for _, p := range g.points {
			one, err := vector.GetMetricWithLabelValues(p.labels...)
			if err != nil {
				return fmt.Errorf("%s: %w", g.name, err)
			}
			one.Set(p.value)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	return replaceText(path, families)
}

// replaceText puts a file of its own in the place of the one at path, for all to read.
func replaceText(path string, families []*dto.MetricFamily) error {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	out, err := create(folder, path)
	if err != nil {
		return err
	}
	err = out.file.Chmod(0o644)
	for i := 0; i < len(families) && err == nil; i++ {
		_, err = expfmt.MetricFamilyToText(out, families[i])
	}
	if err == nil {
		err = commit(out)
	}
	if err != nil {
		return errors.Join(err, out.discard())
	}
	return nil
}

// readLast finds in the file at path when the last runs with these labels ended. No
// file is no error: nothing is known then.
func readLast(path string, labels map[string]string) (lastRuns, error) {
	families, err := readMetrics(path)
	if err != nil {
		return lastRuns{}, err
	}
	return lastOf(families, labels), nil
}

func lastOf(families map[string]*dto.MetricFamily, labels map[string]string) lastRuns {
	value := func(name string) float64 { return valueOf(families[metricsNamespace+"_"+name], labels) }
	return lastRuns{success: value(lastSuccess), complete: value(lastComplete)}
}

// labelsOf are the labels of these names that the family's first series has.
func labelsOf(family *dto.MetricFamily, names ...string) map[string]string {
	labels := map[string]string{}
	if len(family.GetMetric()) == 0 {
		return labels
	}
	for _, pair := range family.GetMetric()[0].GetLabel() {
		if slices.Contains(names, pair.GetName()) {
			labels[pair.GetName()] = pair.GetValue()
		}
	}
	return labels
}

// IsMetrics reports whether a file of metrics stands at path, and nothing else.
func IsMetrics(path string) bool {
	families, err := readMetrics(path)
	_, ours := families[metricsNamespace+"_build_info"]
	return err == nil && ours
}

// readMetrics reads the file at path; no file holds nothing.
func readMetrics(path string) (map[string]*dto.MetricFamily, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|trust.NonBlock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(io.LimitReader(f, maxMetrics))
}

// valueOf is the value of the series with exactly these labels, or 0.
func valueOf(family *dto.MetricFamily, labels map[string]string) float64 {
	for _, m := range family.GetMetric() {
		v := m.GetGauge().GetValue()
		if hasLabels(m, labels) && v > 0 && !math.IsInf(v, 0) {
			return v
		}
	}
	return 0
}

func hasLabels(m *dto.Metric, labels map[string]string) bool {
	for _, pair := range m.GetLabel() {
		if want, ok := labels[pair.GetName()]; !ok || want != pair.GetValue() {
			return false
		}
	}
	return len(m.GetLabel()) == len(labels)
}
