package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// onServer is a world whose checkpoint is a database of its own.
func (l *lab) onServer(ctx context.Context, s *service) (*world, error) {
	at, err := l.postgres(ctx)
	if err != nil {
		return nil, err
	}
	w, err := l.world(s)
	if err == nil {
		w.checkpoint, err = at.database(ctx)
	}
	return w, err
}

// importedOnServer imports rows into a new ledger in PostgreSQL.
func (l *lab) importedOnServer(ctx context.Context, s *service, rows int) (t trial, err error) {
	path, err := l.input(leadFile{to: rows})
	if err != nil {
		return t, err
	}
	w, err := l.onServer(ctx, s)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, w.leave()) }()
	return w.send(ctx, outcomes{"created": rows}, "import", inFlight, path)
}

// ledgerOnServer is N15.
func (l *lab) ledgerOnServer(ctx context.Context) ([]finding, error) {
	slowly, err := l.serverBesideWrk(ctx)
	if err != nil {
		return nil, err
	}
	fast, err := l.serverBesideFile(ctx)
	return []finding{slowly, fast}, err
}

func (l *lab) serverBesideWrk(ctx context.Context) (f finding, err error) {
	const target = 0.95
	rows := l.tenth()
	f = finding{
		what:   fmt.Sprintf("import, ledger in PostgreSQL, %d in flight, %s, %s rows", inFlight, slow, grouped(rows)),
		target: fmt.Sprintf("≥ %.2f × wrk", target), measured: wrkMissing, held: unknown,
	}
	s, err := l.sink(ctx, slow)
	if err != nil {
		return f, err
	}
	var ratios, ours, theirs []float64
	for range l.runs {
		limit, err := l.wrk(ctx, s, inFlight)
		if err != nil {
			return f, err
		}
		t, err := l.importedOnServer(ctx, s, rows)
		if err != nil {
			return f, err
		}
		ours = append(ours, t.rate(rows))
		if limit > 0 {
			theirs, ratios = append(theirs, limit), append(ratios, t.rate(rows)/limit)
		}
	}
	f.measured = fmt.Sprintf("%s rows/s; %s", grouped(median(ours)), wrkMissing)
	if ratios != nil {
		f.measured = fmt.Sprintf("%.2f (%s of %s/s)", median(ratios), grouped(median(ours)), grouped(median(theirs)))
		f.held = verdict(median(ratios) >= target)
	}
	return f, s.stop()
}

func (l *lab) serverBesideFile(ctx context.Context) (f finding, err error) {
	const target = 0.6
	rows := l.three()
	s, err := l.sink(ctx, 0)
	if err != nil {
		return f, err
	}
	var ratios, servers, files []float64
	for range l.runs {
		file, err := l.imported(ctx, s, leadFile{to: rows}, inFlight)
		if err != nil {
			return f, err
		}
		server, err := l.importedOnServer(ctx, s, rows)
		if err != nil {
			return f, err
		}
		files, servers = append(files, file.rate(rows)), append(servers, server.rate(rows))
		ratios = append(ratios, file.wall.Seconds()/server.wall.Seconds())
	}
	return finding{
		what:     fmt.Sprintf("import, ledger in PostgreSQL, %d in flight, no latency, %s rows", inFlight, grouped(rows)),
		target:   fmt.Sprintf("≥ %.2f × the file", target),
		measured: fmt.Sprintf("%.2f (%s of %s rows/s)", median(ratios), grouped(median(servers)), grouped(median(files))),
		held:     verdict(median(ratios) >= target),
	}, s.stop()
}

// fleetOfFour is N16: four workers beside one, and how often they ask the server.
func (l *lab) fleetOfFour(ctx context.Context) ([]finding, error) {
	const workers, target, most = 4, 3.5, 3.0
	rows := l.tenth()
	path, err := l.input(leadFile{to: rows})
	if err != nil {
		return nil, err
	}
	s, err := l.sink(ctx, slow)
	if err != nil {
		return nil, err
	}
	var ratios, one, four, trips []float64
	for range l.runs {
		alone, err := l.importedOnServer(ctx, s, rows)
		if err != nil {
			return nil, err
		}
		before, err := l.server.ask(ctx, "postgres", "SELECT pg_stat_statements_reset()")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", before, err)
		}
		wall, err := l.fleet(ctx, s, path, rows, workers)
		if err != nil {
			return nil, err
		}
		calls, err := l.server.ask(ctx, "postgres", `SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE '%leadferry.lead_rows%'`)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseFloat(calls, 64)
		if err != nil {
			return nil, fmt.Errorf("count statements: %w", err)
		}
		one, four = append(one, alone.rate(rows)), append(four, float64(rows)/wall.Seconds())
		ratios, trips = append(ratios, alone.wall.Seconds()/wall.Seconds()), append(trips, n*128/float64(rows))
	}
	return []finding{
		{
			fmt.Sprintf("fleet of %d, %d in flight each, %s, %s rows", workers, inFlight, slow, grouped(rows)), fmt.Sprintf("≥ %.1f × one worker", target),
			fmt.Sprintf("%.2f (%s of %s rows/s)", median(ratios), grouped(median(four)), grouped(median(one))), verdict(median(ratios) >= target),
		},
		{
			"claims, outcomes and look-ups per 128 rows", fmt.Sprintf("≤ %.0f round trips", most),
			fmt.Sprintf("%.1f", median(trips)), verdict(median(trips) <= most),
		},
	}, s.stop()
}

// fleet has workers import a file together and returns how long all of them took.
func (l *lab) fleet(ctx context.Context, s *service, path string, rows, workers int) (wall time.Duration, err error) {
	ledger, err := l.onServer(ctx, s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ledger.leave()) }()
	var group sync.WaitGroup
	errs := make([]error, workers)
	start := time.Now()
	for i := range workers {
		w, err := l.world(s)
		if err != nil {
			return 0, err
		}
		w.checkpoint = ledger.checkpoint
		group.Go(func() {
			_, errs[i] = perform(w.command(ctx, "import", "-m", l.path("plain.yaml"), "-c", strconv.Itoa(inFlight), "--out", "none", "--quiet",
				"--fleet", "measure", "--shard", fmt.Sprintf("%d/%d", i, workers), path))
			errs[i] = errors.Join(errs[i], w.leave())
		})
	}
	group.Wait()
	return time.Since(start), errors.Join(errs...)
}

// resumeOnServer is N17, but for the copies.
func (l *lab) resumeOnServer(ctx context.Context) ([]finding, error) {
	const target = 12.0
	f := leadFile{to: l.rows}
	path, err := l.input(f)
	if err != nil {
		return nil, err
	}
	s, err := l.sink(ctx, 0)
	if err != nil {
		return nil, err
	}
	w, err := l.onServer(ctx, s)
	if err != nil {
		return nil, err
	}
	if _, err := w.send(ctx, outcomes{"created": l.rows}, "import", inFlight, path); err != nil {
		return nil, errors.Join(err, w.leave())
	}
	var found []finding
	for _, command := range []string{"import", "sync"} {
		var ratios, rates []float64
		for range l.runs {
			base, err := l.validated(ctx, f)
			if err != nil {
				return nil, err
			}
			t, err := w.send(ctx, outcomes{"unchanged": l.rows}, command, inFlight, path)
			if err != nil {
				return nil, err
			}
			ratios, rates = append(ratios, t.wall.Seconds()/base.wall.Seconds()), append(rates, t.rate(l.rows))
		}
		found = append(found, finding{
			fmt.Sprintf("%s, ledger in PostgreSQL, nothing to send, %s rows", command, grouped(l.rows)), fmt.Sprintf("≤ %.0f × validate", target),
			fmt.Sprintf("%.1f (%s rows/s)", median(ratios), grouped(median(rates))), verdict(median(ratios) <= target),
		})
	}
	return found, errors.Join(w.leave(), s.stop())
}
