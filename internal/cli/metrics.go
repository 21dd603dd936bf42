package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
)

// metricsFlag says where a run's figures go for a monitoring system.
func metricsFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "metrics", EnvVars: []string{"LEADFERRY_METRICS"}, Category: files,
		Usage: "write the run's figures to `FILE` as Prometheus text, for node_exporter, which reads names that end in .prom",
	}
}

// metrics tells a monitoring system of one run; nil tells nobody. What it cannot
// write is a warning: leads matter more than their figures, and a time of last
// success that stands still is an alarm of its own.
type metrics struct {
	file    *report.Metrics
	options *importer.Options
	began   bool
}

// newMetrics reads --metrics.
func newMetrics(c *cli.Context, o *importer.Options) (*metrics, error) {
	path := c.String("metrics")
	if path == "" {
		return nil, nil
	}
	f, err := report.NewMetrics(path)
	if err != nil {
		return nil, usage(fmt.Sprintf("--metrics cannot be written: %v", err), "name a file; it is replaced as a whole")
	}
	if o.DryRun {
		return nil, nil
	}
	return &metrics{file: f, options: o}, nil
}

// sameFile tells it of files that are not there yet by their names.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	if err == nil && otherErr == nil {
		return os.SameFile(one, other)
	}
	a, err = filepath.Abs(a)
	b, otherErr = filepath.Abs(b)
	return err == nil && otherErr == nil && a == b
}

// begin is told once the run is sure to begin.
func (m *metrics) begin(s *importer.Start) {
	if m == nil {
		return
	}
	m.began = true
	m.warn(m.file.Begin(report.MetricsRun{
		Command: m.options.Command, Version: Version, Mapping: m.options.MappingFile.Path, Started: time.Now(),
		Target: report.Target{BaseURL: s.Target.BaseURL, LeadsURL: s.Target.LeadsURL, TrunkID: s.Target.TrunkID},
		Leads:  s.Leads, InDoubt: s.InDoubt,
	}))
}

// end is told at last, with the exit code; s is nil where there was no run after all.
func (m *metrics) end(s *report.Summary, code int) {
	if m != nil && m.began {
		m.warn(m.file.End(s, code, time.Now()))
	}
}

func (m *metrics) warn(err error) {
	if err != nil {
		m.options.Log.Warn("the metrics file is not right", "error", report.Escape(err.Error()))
	}
}
