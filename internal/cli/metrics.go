package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
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

// metrics tells a monitoring system of one run; nil tells nobody.
type metrics struct {
	path  string
	file  *report.Metrics
	began atomic.Bool
}

// open finds out whether the file can be one of metrics.
func (m *metrics) open() (err error) {
	if m == nil {
		return nil
	}
	if m.file, err = report.NewMetrics(m.path); err != nil {
		return usage(fmt.Sprintf("--metrics cannot be written: %v", err), "name a file; it is replaced as a whole")
	}
	return nil
}

// mayBeMade reports whether a command that was refused may make the file: nothing is there,
// and nothing else of the command has its place there.
func (m *metrics) mayBeMade(c *cli.Context) bool {
	if _, err := os.Lstat(m.path); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return keepApart(c, filesOf(c, "", time.Time{}, false), c.Args().Slice(), os.Stdin) == nil
}

// begin is told once the run is sure to begin.
func (m *metrics) begin(s *importer.Start, o *importer.Options) error {
	if m == nil {
		return nil
	}
	defer m.began.Store(true)
	return m.file.Begin(report.MetricsRun{
		Command: o.Command, Version: Version, Mapping: o.MappingFile.Path, Started: time.Now(),
		Target: report.Target{BaseURL: s.Target.BaseURL, LeadsURL: s.Target.LeadsURL, TrunkID: s.Target.TrunkID},
		Leads:  s.Leads, InDoubt: s.InDoubt,
	})
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
