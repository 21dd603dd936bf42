package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// filled is a checkpoint that knows the rows of a file, and how its import went.
type filled struct {
	*world
	file     leadFile
	imported trial
	size     int64 // bytes of the checkpoint
}

// fill imports rows without latency. What it makes stays for other numbers.
func (l *lab) fill(ctx context.Context, rows int, random bool) (*filled, error) {
	name := fmt.Sprint(rows, random)
	if known := l.fills[name]; known != nil {
		return known, nil
	}
	l.say("%s importing %s rows for what follows", time.Now().Format(time.TimeOnly), grouped(rows))
	f := &filled{file: leadFile{to: rows, random: random}}
	s, err := l.sink(ctx, 0)
	if err != nil {
		return nil, err
	}
	if f.world, err = l.world(s); err != nil {
		return nil, err
	}
	path, err := l.input(f.file)
	if err != nil {
		return nil, err
	}
	if f.imported, err = f.send(ctx, outcomes{"created": rows}, "import", inFlight, path); err != nil {
		return nil, err
	}
	if f.size, err = f.world.size(); err != nil {
		return nil, err
	}
	l.fills[name] = f
	return f, nil
}

// checkpoints is N10.
func (l *lab) checkpoints(ctx context.Context) ([]finding, error) {
	big, err := l.fill(ctx, l.most(), false)
	if err != nil {
		return nil, err
	}
	perRow := float64(big.size) / float64(l.most())
	opening, err := l.opening(ctx, big)
	if err != nil {
		return nil, err
	}
	found := []finding{
		{"checkpoint, bytes a row", "≤ 512", fmt.Sprintf("%.0f", perRow), verdict(perRow <= 512)},
		{
			fmt.Sprintf("checkpoint, opening at %s rows after a clean end", grouped(l.most())),
			"≤ 1 s", fmt.Sprintf("%.2f s", opening), verdict(opening <= 1),
		},
	}
	growth, err := l.growth(ctx, big)
	return append(found, growth...), err
}

// opening is how long it takes from the start to the line that says which checkpoint
// was opened and what it knows.
func (l *lab) opening(ctx context.Context, big *filled) (float64, error) {
	path, err := l.input(big.file)
	if err != nil {
		return 0, err
	}
	var all []float64
	for range l.runs {
		t, err := big.send(ctx, outcomes{"unchanged": 1}, "import", inFlight, "--limit", "1", path)
		if err != nil {
			return 0, err
		}
		if t.opened == 0 {
			return 0, errors.New("import does not say any more that it has opened its checkpoint")
		}
		all = append(all, t.opened.Seconds())
	}
	return median(all), nil
}

// growth compares imports into a large checkpoint with imports into a small one.
func (l *lab) growth(ctx context.Context, big *filled) ([]finding, error) {
	const ordered, random = 0.5, 10_000
	small, err := l.fill(ctx, l.tenth(), false)
	if err != nil {
		return nil, err
	}
	var ratios, rates, bases []float64
	for turn := range l.runs {
		base, err := l.added(ctx, small, turn)
		if err != nil {
			return nil, err
		}
		rate, err := l.added(ctx, big, turn)
		if err != nil {
			return nil, err
		}
		ratios, rates, bases = append(ratios, rate/base), append(rates, rate), append(bases, base)
	}
	mixed, err := l.fill(ctx, l.most(), true)
	if err != nil {
		return nil, err
	}
	var unordered []float64
	for turn := range l.runs {
		rate, err := l.added(ctx, mixed, turn)
		if err != nil {
			return nil, err
		}
		unordered = append(unordered, rate)
	}
	what := fmt.Sprintf("import into a checkpoint of %s rows, keys ", grouped(l.most()))
	return []finding{
		{
			what + "in order", fmt.Sprintf("≥ %.2f × that into one of %s", ordered, grouped(l.tenth())),
			fmt.Sprintf("%.2f (%s of %s rows/s)", median(ratios), grouped(median(rates)), grouped(median(bases))), verdict(median(ratios) >= ordered),
		},
		{
			what + "random", fmt.Sprintf("≥ %s rows/s", grouped(random)),
			grouped(median(unordered)) + " rows/s", verdict(median(unordered) >= random),
		},
	}, nil
}

// added is the rate at which rows that follow those of a checkpoint are imported into it.
func (l *lab) added(ctx context.Context, into *filled, turn int) (rate float64, err error) {
	rows := l.tenth()
	f := into.file
	f.from = into.file.to + turn*rows
	f.to = f.from + rows
	path, err := l.input(f)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	t, err := into.send(ctx, outcomes{"created": rows}, "import", inFlight, path)
	return t.rate(rows), err
}
