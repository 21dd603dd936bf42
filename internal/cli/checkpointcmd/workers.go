package checkpointcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
)

// shownWorkers is how many workers are listed, the newest, beside those that hold rows.
const shownWorkers = 20

// Workers lists who uses a ledger in PostgreSQL.
func (d *Desk) Workers(ctx context.Context) error {
	return d.with(true, func(db Ledger) error {
		server, is := db.(*postgres.Store)
		if !is {
			return usage("a checkpoint in a file has no workers: one run at a time uses it", "leadferry checkpoint status shows the last runs")
		}
		all, err := server.Workers(ctx, shownWorkers)
		for i := range all {
			d.worker(&all[i])
		}
		if err == nil && len(all) == 0 {
			fmt.Fprintln(d.Out, "no run has used it yet")
		}
		return err
	})
}

func (d *Desk) worker(w *postgres.Worker) {
	who := w.Command
	if w.Run != "" {
		who += " " + w.Run
	}
	if w.Fleet != "" {
		who += fmt.Sprintf(", shard %d/%d of fleet %s", w.Shard, w.Shards, w.Fleet)
	}
	how := "silent since " + day(w.Beat)
	switch {
	case !w.Ended.IsZero():
		how = "ended " + day(w.Ended)
	case w.Alive:
		how = "at work, last sign " + w.Beat.UTC().Format(time.TimeOnly) + "Z"
	}
	if !w.Fenced.IsZero() {
		how += ", replaced " + day(w.Fenced)
	}
	if w.Holds > 0 {
		how += ", holds " + english.Plural(w.Holds, "row", "") + " in doubt"
	}
	if w.Holds > 0 && w.Ended.IsZero() && !w.MayStillSettle {
		how += ": they may be resolved"
	}
	fmt.Fprintf(d.Out, "%-6d  began %s  on %s (process %d)  %s: %s\n", w.ID, day(w.Started), report.Escape(w.Host), w.Process, report.Escape(who), how)
}

// Prepare makes a database fit to hold ledgers.
func (d *Desk) Prepare(address string, o postgres.Options) error {
	p, err := postgres.Init(address, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "the schema leadferry is there, version %d, owned by %s\n", p.Version, report.Escape(p.Owner))
	if !p.Roles {
		fmt.Fprintf(d.Out, "\nthis user may not make roles; have somebody who may carry this out in the database %s:\n\n%s", report.Escape(p.Database), p.Grants)
	}
	fmt.Fprintf(d.Out, `
grant the users of runs and people their roles:

   GRANT leadferry_worker TO the_user_of_runs;
   GRANT leadferry_reader TO somebody_who_looks;

then run leadferry with --checkpoint %s, or the address with that user's name
`, report.Quote(address))
	return nil
}
