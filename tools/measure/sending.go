package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const slow = 20 * time.Millisecond // the latency of N1 and N2

// inFlight is the concurrency of all numbers but N2.
const inFlight = 64

// imported imports rows into a new checkpoint and leaves nothing behind.
func (l *lab) imported(ctx context.Context, s *service, f leadFile, workers int) (t trial, err error) {
	path, err := l.input(f)
	if err != nil {
		return t, err
	}
	w, err := l.world(s)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, w.leave()) }()
	return w.send(ctx, outcomes{"created": f.to - f.from}, "import", workers, path)
}

func (l *lab) besideWrk64(ctx context.Context) ([]finding, error) {
	return l.besideWrk(ctx, inFlight, l.tenth(), 0.95)
}

func (l *lab) besideWrk256(ctx context.Context) ([]finding, error) {
	return l.besideWrk(ctx, 256, l.three(), 0.88)
}

// besideWrk is N1 and N2: imported rows a second as a share of the requests that wrk
// makes on as many connections.
func (l *lab) besideWrk(ctx context.Context, workers, rows int, target float64) ([]finding, error) {
	f := finding{
		what:   fmt.Sprintf("import, %d in flight, %s, %s rows", workers, slow, grouped(rows)),
		target: fmt.Sprintf("≥ %.2f × wrk", target), measured: wrkMissing, held: unknown,
	}
	s, err := l.sink(ctx, slow)
	if err != nil {
		return nil, err
	}
	var ratios, ours, theirs []float64
	for range l.runs {
		limit, err := l.wrk(ctx, s, workers)
		if err != nil {
			return nil, err
		}
		t, err := l.imported(ctx, s, leadFile{to: rows}, workers)
		if err != nil {
			return nil, err
		}
		ours = append(ours, t.rate(rows))
		if limit > 0 {
			theirs, ratios = append(theirs, limit), append(ratios, t.rate(rows)/limit)
		}
	}
	if ratios != nil {
		f.measured = fmt.Sprintf("%.2f (%s of %s/s)", median(ratios), grouped(median(ours)), grouped(median(theirs)))
		f.held = verdict(median(ratios) >= target)
	} else {
		f.measured = fmt.Sprintf("%s rows/s; %s", grouped(median(ours)), wrkMissing)
	}
	return []finding{f}, s.stop()
}

// pair is an import and the same rows sent by the bare client.
type pair struct{ ours, bare trial }

// flatOut imports without latency, in turn with the bare client. N3 and N4 share it.
func (l *lab) flatOut(ctx context.Context) ([]pair, error) {
	if l.flat != nil {
		return l.flat, nil
	}
	rows := l.three()
	path, err := l.input(leadFile{to: rows})
	if err != nil {
		return nil, err
	}
	s, err := l.sink(ctx, 0)
	if err != nil {
		return nil, err
	}
	var all []pair
	for range l.runs {
		var p pair
		if p.bare, err = l.peer(ctx, "bare", "-url", s.url, "-c", strconv.Itoa(inFlight), path); err != nil {
			return nil, err
		}
		if p.ours, err = l.imported(ctx, s, leadFile{to: rows}, inFlight); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	l.flat = all
	return all, s.stop()
}

// besideBare is N3.
func (l *lab) besideBare(ctx context.Context) ([]finding, error) {
	const target = 0.65
	pairs, err := l.flatOut(ctx)
	if err != nil {
		return nil, err
	}
	rows := l.three()
	var ratios, ours, theirs []float64
	for _, p := range pairs {
		ours, theirs = append(ours, p.ours.rate(rows)), append(theirs, p.bare.rate(rows))
		ratios = append(ratios, p.bare.wall.Seconds()/p.ours.wall.Seconds())
	}
	return []finding{{
		what:     fmt.Sprintf("import, %d in flight, no latency, %s rows", inFlight, grouped(rows)),
		target:   fmt.Sprintf("≥ %.2f × a bare client without checkpoint", target),
		measured: fmt.Sprintf("%.2f (%s of %s rows/s)", median(ratios), grouped(median(ours)), grouped(median(theirs))),
		held:     verdict(median(ratios) >= target),
	}}, nil
}

// processor is N4: user and system time of the imports of N3.
func (l *lab) processor(ctx context.Context) ([]finding, error) {
	const target = 6.5
	pairs, err := l.flatOut(ctx)
	if err != nil {
		return nil, err
	}
	share := 100_000 / float64(l.three())
	var ours, theirs []float64
	for _, p := range pairs {
		ours, theirs = append(ours, p.ours.cpu.Seconds()*share), append(theirs, p.bare.cpu.Seconds()*share)
	}
	return []finding{{
		what: "processor time of an import, no latency", target: fmt.Sprintf("≤ %.1f s per 100,000 rows", target),
		measured: fmt.Sprintf("%.1f s (bare client %.1f s)", median(ours), median(theirs)), held: verdict(median(ours) <= target),
	}}, nil
}

// requests is N11, taken from a linked import, where most requests are made.
func (l *lab) requests(ctx context.Context) (all []finding, err error) {
	rows := l.tenth()
	path, err := l.input(leadFile{to: rows})
	if err != nil {
		return nil, err
	}
	s, err := l.sink(ctx, 0)
	if err != nil {
		return nil, err
	}
	w, err := l.world(s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.leave()) }()
	_, err = w.run(ctx, outcomes{"created": rows}, "import", "-c", strconv.Itoa(inFlight), "-m", l.path("linked.yaml"), path)
	if err != nil {
		return nil, err
	}
	seen, err := s.stats(ctx)
	if err != nil {
		return nil, err
	}
	creates, updates := float64(seen.Creates)/float64(rows), float64(seen.Updates)/float64(rows)
	return []finding{
		{"creates a created lead", "1.00", fmt.Sprintf("%.2f", creates), verdict(seen.Creates == int64(rows))},
		{"updates a linked lead", "≤ 1.00", fmt.Sprintf("%.2f", updates), verdict(seen.Updates <= int64(rows))},
		{"token requests a token life", "1", fmt.Sprint(seen.Tokens), verdict(seen.Tokens == 1)},
		{"connections at once, " + strconv.Itoa(inFlight) + " in flight", fmt.Sprintf("≤ %d", inFlight), fmt.Sprint(seen.Most), verdict(seen.Most <= inFlight)},
	}, s.stop()
}
