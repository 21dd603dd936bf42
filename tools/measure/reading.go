package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// validateCSV is N5.
func (l *lab) validateCSV(ctx context.Context) ([]finding, error) {
	const target = 1.6
	f := leadFile{to: l.rows}
	found, err := l.besideReader(ctx, f, "readcsv", "encoding/csv loop", 0.45)
	if err != nil {
		return nil, err
	}
	var ratios []float64
	for range l.runs {
		one, err := l.validatedBy(ctx, 1, f)
		if err != nil {
			return nil, err
		}
		two, err := l.validatedBy(ctx, 2, f)
		if err != nil {
			return nil, err
		}
		ratios = append(ratios, one.wall.Seconds()/two.wall.Seconds())
	}
	return append(found, finding{
		what:     fmt.Sprintf("validate, CSV, GOMAXPROCS=2, %s rows", grouped(f.to)),
		target:   fmt.Sprintf("≥ %.1f × GOMAXPROCS=1", target),
		measured: fmt.Sprintf("%.2f", median(ratios)),
		held:     verdict(median(ratios) >= target),
	}), nil
}

// validateJSONL is N6.
func (l *lab) validateJSONL(ctx context.Context) ([]finding, error) {
	return l.besideReader(ctx, leadFile{to: l.rows, format: "jsonl"}, "readjsonl", "jsontext token loop", 0.5)
}

// validateXLSX is N18.
func (l *lab) validateXLSX(ctx context.Context) ([]finding, error) {
	const limit = 64 * mebibyte
	f := leadFile{to: l.tenth(), format: "xlsx"}
	found, err := l.besideReader(ctx, f, "readxlsx", "excelize Rows loop", 2)
	if err != nil {
		return nil, err
	}
	t, err := l.validated(ctx, f, "--no-repeats")
	memory := finding{
		what:     fmt.Sprintf("memory, validate --no-repeats, XLSX, %s rows", grouped(f.to)),
		target:   fmt.Sprintf("≤ %d MiB", limit/mebibyte),
		measured: fmt.Sprintf("%d MiB", t.peak/mebibyte),
		held:     verdict(t.peak <= limit),
	}
	return append(found, memory), err
}

func (l *lab) besideReader(ctx context.Context, f leadFile, reader, name string, target float64) ([]finding, error) {
	path, err := l.input(f)
	if err != nil {
		return nil, err
	}
	var ratios, ours, theirs []float64
	for range l.runs {
		bare, err := l.peer(ctx, reader, path)
		if err != nil {
			return nil, err
		}
		if rows := strings.TrimSpace(string(bare.out)); rows != strconv.Itoa(f.to) {
			return nil, fmt.Errorf("%s read %s rows of %d", reader, rows, f.to)
		}
		t, err := l.validated(ctx, f)
		if err != nil {
			return nil, err
		}
		ours, theirs = append(ours, t.rate(f.to)), append(theirs, bare.rate(f.to))
		ratios = append(ratios, bare.wall.Seconds()/t.wall.Seconds())
	}
	kind, _, _ := strings.Cut(strings.ToUpper(strings.TrimPrefix(reader, "read")), " ")
	return []finding{{
		what:     fmt.Sprintf("validate, %s, ten fields, %s rows", kind, grouped(f.to)),
		target:   fmt.Sprintf("≥ %.2f × a bare %s", target, name),
		measured: fmt.Sprintf("%.2f (%s of %s rows/s)", median(ratios), grouped(median(ours)), grouped(median(theirs))),
		held:     verdict(median(ratios) >= target),
	}}, nil
}

// validated validates a file.
func (l *lab) validated(ctx context.Context, f leadFile, more ...string) (trial, error) {
	return l.validatedBy(ctx, 0, f, more...)
}

// validatedBy does so with as many processors, 0 for all.
func (l *lab) validatedBy(ctx context.Context, processors int, f leadFile, more ...string) (t trial, err error) {
	path, err := l.input(f)
	if err != nil {
		return t, err
	}
	w, err := l.world(nil)
	if err != nil {
		return t, err
	}
	w.processors = processors
	defer func() { err = errors.Join(err, w.leave()) }()
	args := append([]string{"validate", "-m", l.path("plain.yaml")}, more...)
	return w.run(ctx, outcomes{"pending": f.to - f.from}, append(args, path)...)
}

// resume is N7: every row is known and unchanged.
func (l *lab) resume(ctx context.Context) ([]finding, error) {
	return l.besideValidate(ctx, "import", fmt.Sprintf("resume, %s finished rows", grouped(l.rows)), 3.0)
}

// sync is N8: no lead differs.
func (l *lab) sync(ctx context.Context) ([]finding, error) {
	return l.besideValidate(ctx, "sync", fmt.Sprintf("sync, %s rows, none changed", grouped(l.rows)), 3)
}

// besideValidate runs a command over rows that are done, as often as long as validate,
// and sees that it sends no lead request.
func (l *lab) besideValidate(ctx context.Context, command, what string, target float64, more ...string) ([]finding, error) {
	known, err := l.fill(ctx, l.rows, false)
	if err != nil {
		return nil, err
	}
	before, err := known.service.stats(ctx)
	if err != nil {
		return nil, err
	}
	f := leadFile{to: l.rows}
	path, err := l.input(f)
	if err != nil {
		return nil, err
	}
	var ratios, ours, theirs []float64
	for range l.runs {
		v, err := l.validated(ctx, f)
		if err != nil {
			return nil, err
		}
		t, err := known.send(ctx, outcomes{"unchanged": l.rows}, command, inFlight, append(more, path)...)
		if err != nil {
			return nil, err
		}
		ours, theirs = append(ours, t.wall.Seconds()), append(theirs, v.wall.Seconds())
		ratios = append(ratios, t.wall.Seconds()/v.wall.Seconds())
	}
	after, err := known.service.stats(ctx)
	sent := after.Creates + after.Updates - before.Creates - before.Updates
	return []finding{{
		what: what, target: fmt.Sprintf("≤ %.1f × validate, 0 requests", target),
		measured: fmt.Sprintf("%.2f (%.1f s beside %.1f s), %d requests", median(ratios), median(ours), median(theirs), sent),
		held:     verdict(median(ratios) <= target && sent == 0),
	}}, err
}
