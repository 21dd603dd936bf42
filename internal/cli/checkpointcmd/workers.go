package checkpointcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/shell"
)

// workers lists who uses a ledger in PostgreSQL.
func (d *Command) workers() error {
	return d.with(true, func(db ledger.Ledger) error {
		server, is := db.(*postgres.Store)
		if !is {
			return exit.Usage("a checkpoint in a file has no workers: one run at a time uses it",
				"leadferry checkpoint status shows the last runs")
		}
		return d.listWorkers(d.C.Context, server, "", func(*postgres.Worker) bool { return true })
	})
}

// shownWorkers is how many workers are listed, the newest, beside those that hold rows.
const shownWorkers = 20

// listWorkers lists those that are shown, below a title.
func (d *Command) listWorkers(ctx context.Context, server *postgres.Store, title string,
	shown func(*postgres.Worker) bool,
) error {
	all, err := server.Workers(ctx, shownWorkers)
	for i := range all {
		if w := &all[i]; shown(w) {
			fmt.Fprint(d.Out, title)
			d.worker(w)
			title = ""
		}
	}
	if err == nil && len(all) == 0 && title == "" {
		d.printf("no run has used it yet\n")
	}
	return err
}

func (d *Command) worker(w *postgres.Worker) {
	who := strings.TrimSpace(w.Command + " " + w.Run)
	if w.Fleet != "" {
		who += fmt.Sprintf(", shard %d/%d of fleet %s", w.Shard, w.Shards, w.Fleet)
	}
	how := "silent since " + day(w.Beat)
	switch {
	case w.Ended != nil:
		how = "ended " + day(*w.Ended)
	case w.Alive:
		how = "at work, last sign " + w.Beat.UTC().Format(time.TimeOnly) + "Z"
	}
	if w.Fenced != nil {
		how += ", replaced " + day(*w.Fenced)
	}
	if w.Holds > 0 {
		how += ", holds " + english.Plural(w.Holds, "row", "") + " in doubt"
		if w.Ended == nil && !w.MayStillSettle {
			how += ": they may be resolved"
		}
	}
	d.printf("%-6d  began %s  on %s (process %d)  %s: %s\n", w.ID, day(w.Started), w.Host, w.Process, who, how)
}

// prepare makes a database fit to hold ledgers.
func (d *Command) prepare() error {
	address := d.C.Args().First()
	if d.C.NArg() != 1 || !checkpoint.IsAddress(address) {
		return exit.Usage("init takes the address of a database",
			"for example leadferry checkpoint init postgres://owner@db.example.com/leads")
	}
	p, err := postgres.Init(address, d.ServerOptions())
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "the schema leadferry is there, version %d, owned by %s\n", p.Version, report.Escape(p.Owner))
	if !p.Roles {
		fmt.Fprintf(d.Out, "\nthis user may not make roles; have somebody who may carry this out in the database "+
			"%s:\n\n%s",
			report.Escape(p.Database), p.Grants)
	}
	fmt.Fprintf(d.Out, `
grant the users of runs and people their roles:

   GRANT leadferry_worker TO the_user_of_runs;
   GRANT leadferry_reader TO somebody_who_looks;

then run leadferry with --checkpoint %s, or the address with that user's name
`, shell.Word(address))
	return nil
}
