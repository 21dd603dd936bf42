package main

import (
	"context"
	"fmt"
)

const mebibyte = 1 << 20

// allowed is what a run may take: a base, and something for each slot, of which a
// worker has two.
func allowed(workers int) int64 { return (64 + 2*int64(workers)) * mebibyte }

// perRepeat is what validate may take for a row beside that, to find repeated keys.
const perRepeat = 16

// memory is N9: the most anonymous memory of each command, for few rows and for many.
func (l *lab) memory(ctx context.Context) ([]finding, error) {
	few, many := l.tenth(), l.most()
	measures := []struct {
		what  string
		limit func(rows int) int64
		take  func(rows int) (trial, error)
	}{
		{"import", func(int) int64 { return allowed(inFlight) }, func(rows int) (trial, error) {
			f, err := l.fill(ctx, rows, false)
			if err != nil {
				return trial{}, err
			}
			return f.imported, nil
		}},
		{"sync", func(int) int64 { return allowed(inFlight) }, func(rows int) (trial, error) { return l.again(ctx, rows, "sync") }},
		{"reconcile --remote none", func(int) int64 { return allowed(inFlight) }, func(rows int) (trial, error) {
			return l.again(ctx, rows, "reconcile", "--remote", "none")
		}},
		{"validate --no-repeats", func(int) int64 { return allowed(0) }, func(rows int) (trial, error) {
			return l.validated(ctx, leadFile{to: rows}, "--no-repeats")
		}},
		{"validate", func(rows int) int64 { return allowed(0) + perRepeat*int64(rows) }, func(rows int) (trial, error) {
			return l.validated(ctx, leadFile{to: rows})
		}},
	}
	var found []finding
	for _, m := range measures {
		small, err := m.take(few)
		if err != nil {
			return found, err
		}
		large, err := m.take(many)
		if err != nil {
			return found, err
		}
		f := finding{
			what:     fmt.Sprintf("memory, %s, %s and %s rows", m.what, grouped(few), grouped(many)),
			target:   fmt.Sprintf("≤ %d and %d MiB", m.limit(few)/mebibyte, m.limit(many)/mebibyte),
			measured: "left out: this system does not show it", held: unknown,
		}
		if small.peak > 0 && large.peak > 0 {
			f.measured = fmt.Sprintf("%d and %d MiB", small.peak/mebibyte, large.peak/mebibyte)
			f.held = verdict(small.peak <= m.limit(few) && large.peak <= m.limit(many))
		}
		found = append(found, f)
	}
	return found, nil
}

// again runs a command over rows that are known.
func (l *lab) again(ctx context.Context, rows int, command string, more ...string) (trial, error) {
	known, err := l.fill(ctx, rows, false)
	if err != nil {
		return trial{}, err
	}
	path, err := l.input(known.file)
	if err != nil {
		return trial{}, err
	}
	return known.send(ctx, outcomes{"unchanged": rows}, command, inFlight, append(more, path)...)
}
