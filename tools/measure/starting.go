package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// doubt is N12, which is judged by what the service holds after many deaths.
func (l *lab) doubt(context.Context) ([]finding, error) {
	return []finding{{
		what: "rows in doubt a kill -9, and after a clean stop", target: "≤ 2 × concurrency, 0",
		measured: "`go test ./internal/e2e -run TestKill -kills 1000`", held: unknown,
	}}, nil
}

// start is N13.
func (l *lab) start(ctx context.Context) ([]finding, error) {
	var versions, imports []float64
	for range max(5, l.runs) {
		version, one, err := l.started(ctx)
		if err != nil {
			return nil, err
		}
		versions, imports = append(versions, version.Seconds()), append(imports, one.Seconds())
	}
	return []finding{
		{"`leadferry --version`", "≤ 15 ms", fmt.Sprintf("%.0f ms", 1000*median(versions)), verdict(median(versions) <= 0.015)},
		{"import of 1 row against the sandbox", "≤ 0.5 s", fmt.Sprintf("%.2f s", median(imports)), verdict(median(imports) <= 0.5)},
	}, nil
}

// started measures both starts in a world in which nothing has happened yet.
func (l *lab) started(ctx context.Context) (version, one time.Duration, err error) {
	w, err := l.world(nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, w.leave()) }()
	v, err := perform(w.command(ctx, "--version"))
	if err != nil {
		return 0, 0, err
	}
	// The sandbox knows organizations of its own, and the samples name them.
	samples := filepath.Join(l.root, "samples")
	i, err := w.run(ctx, outcomes{"created": 1}, "import", "--sandbox", "--limit", "1",
		"-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv"))
	return v.wall, i.wall, err
}

// binary is N14.
func (l *lab) binary(context.Context) ([]finding, error) {
	info, err := os.Stat(l.program)
	if err != nil {
		return nil, err
	}
	size := float64(info.Size()) / 1e6
	return []finding{{"the program, stripped", "≤ 32 MB", fmt.Sprintf("%.1f MB", size), verdict(size <= 32)}}, nil
}
