package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
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
	return prometheus.WriteToTextfile(path, registry)
}

// readLast finds in the file at path when the last runs with these labels ended. No
// file is no error: nothing is known then.
func readLast(path string, labels map[string]string) (lastRuns, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lastRuns{}, nil
	}
	if err != nil {
		return lastRuns{}, err
	}
	defer f.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(f, maxMetrics))
	if err != nil {
		return lastRuns{}, err
	}
	value := func(name string) float64 { return valueOf(families[metricsNamespace+"_"+name], labels) }
	return lastRuns{success: value(lastSuccess), complete: value(lastComplete)}, nil
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
