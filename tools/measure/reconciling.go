package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// readAll is N21: leads that a reconciliation reads a second as a share of the updates that wrk
// makes on as many connections. Neither side has changed anything.
func (l *lab) readAll(ctx context.Context) (found []finding, err error) {
	const target = 0.95
	rows := l.tenth()
	f := finding{
		what:   fmt.Sprintf("reconcile, %d in flight, %s, %s known leads", inFlight, slow, grouped(rows)),
		target: fmt.Sprintf("≥ %.2f × wrk's updates, 1 request a lead", target), measured: wrkMissing, held: unknown,
	}
	path, err := l.input(leadFile{to: rows})
	if err != nil {
		return nil, err
	}
	s, err := l.sink(ctx, slow)
	if err != nil {
		return nil, err
	}
	w, err := l.world(s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.leave(), s.stop()) }()
	args := []string{"-c", strconv.Itoa(inFlight), "-m", l.path("linked.yaml"), path}
	if _, err := w.run(ctx, outcomes{"created": rows}, append([]string{"import"}, args...)...); err != nil {
		return nil, err
	}
	var ratios, ours, theirs, each []float64
	for range l.runs {
		limit, err := l.wrkUpdates(ctx, s, inFlight)
		if err != nil {
			return nil, err
		}
		before, err := s.stats(ctx)
		if err != nil {
			return nil, err
		}
		t, err := w.run(ctx, outcomes{"unchanged": rows}, append([]string{"reconcile"}, args...)...)
		if err != nil {
			return nil, err
		}
		after, err := s.stats(ctx)
		if err != nil {
			return nil, err
		}
		each = append(each, float64(after.Updates+after.Creates-before.Updates-before.Creates)/float64(rows))
		ours = append(ours, t.rate(rows))
		if limit > 0 {
			theirs, ratios = append(theirs, limit), append(ratios, t.rate(rows)/limit)
		}
	}
	requests := fmt.Sprintf("%.2f requests a lead", median(each))
	if ratios != nil {
		f.measured = fmt.Sprintf("%.2f (%s of %s/s), %s", median(ratios), grouped(median(ours)), grouped(median(theirs)), requests)
		f.held = verdict(median(ratios) >= target && median(each) == 1)
	} else {
		f.measured = fmt.Sprintf("%s leads/s, %s; %s", grouped(median(ours)), requests, wrkMissing)
	}
	return []finding{f}, nil
}

// readNone is N22: every row is compared with what the checkpoint knows of its lead.
func (l *lab) readNone(ctx context.Context) ([]finding, error) {
	return l.besideValidate(ctx, "reconcile", fmt.Sprintf("reconcile --remote none, %s rows", grouped(l.rows)), 3.5, "--remote", "none")
}
