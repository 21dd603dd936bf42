package checkpointcmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/rowkey"
	"leadferry/internal/shell"
)

// status shows what the checkpoint knows, its last runs, and what a person has to look at.
func (d *Command) status() error {
	at, err := d.Existing()
	if err != nil {
		return err
	}
	if at.Server == nil {
		s, err := bolt.ReadStatus(at.Path, at.Target, at.Options)
		if err == nil {
			d.tell(&s)
		}
		return err
	}
	return d.with(true, func(db ledger.Ledger) error {
		s, err := db.Status()
		if err != nil {
			return err
		}
		d.tell(&s)
		busy := func(w *postgres.Worker) bool { return w.Alive || w.Holds > 0 }
		return d.listWorkers(d.C.Context, db.(*postgres.Store), "\nworkers\n", busy)
	})
}

func (d *Command) tell(s *checkpoint.Status) {
	d.printf("checkpoint  %s\ntarget      %s, trunk %s\n", s.Path, s.Target.LeadsURL, s.Target.TrunkID)
	if w := s.Holder; w != nil {
		d.printf("\na run goes on (process %d): %s, since %s\n", w.Process, strings.TrimSpace(w.Command+" "+w.Run),
			w.Started.UTC().Format(time.RFC3339))
		if w.Folder != "" {
			d.printf("folder      %s\n", w.Folder)
		}
		if w.Page != "" {
			d.printf("page        %s\n", w.Page)
		}
		d.printf("leads       %d, rows in flight included\nThe rest is shown when the run has ended.\n", w.Leads)
		return
	}
	d.printCounts(s.Keys)
	d.warn(s.Warnings)
	if len(s.Statuses) > 0 {
		d.printf("\nleads by status last confirmed\n")
	}
	byLife := func(a, b string) int { return cmp.Or(cmp.Compare(lifeOf(a), lifeOf(b)), cmp.Compare(a, b)) }
	for _, name := range slices.SortedFunc(maps.Keys(s.Statuses), byLife) {
		d.printf("%-22s  %*s\n", cmp.Or(name, "not known"), figures, humanize.Comma(int64(s.Statuses[name])))
	}
	if len(s.Runs) > 0 {
		d.printf("\nlast runs\n")
	}
	for _, r := range s.Runs {
		d.printf("%s  %s  %-9s  %s\n", r.Started.UTC().Format(time.RFC3339), r.ID, r.Command, r.Outcome)
		for line := range strings.Lines(terminal.Wrap(countsText(r.Counts), terminal.Columns-4)) {
			d.printf("    %s\n", strings.TrimRight(line, "\n"))
		}
	}
	d.followUp(s)
}

// followUp says what a person has to look at.
func (d *Command) followUp(s *checkpoint.Status) {
	at := " --checkpoint " + shell.Path(s.Path)
	if n := s.Keys[checkpoint.InDoubt]; n > 0 {
		fmt.Fprintf(d.Out, "\n%d in doubt: list them with leadferry checkpoint export --state in_doubt%s, look each "+
			"up in the console, write what you found into lead_id, and settle them with leadferry checkpoint resolve "+
			"FILE.csv%s\n", n, at,
			at)
	}
	for _, x := range s.Contradictions {
		if x.Other != "" {
			x.Text += " (" + x.Other + ")"
		}
		d.printf("\ncontradicted: on %s a person decided about %s: %s; on %s: %s: look both up in the console\n",
			day(x.Decided), rowkey.Own(x.Key), decisionText(x.Decision), day(x.Found), x.Text)
	}
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

// lifeOf is the place of a status in a lead's life.
func lifeOf(status string) int {
	if at := slices.Index(checkpoint.Statuses[:], status); at >= 0 {
		return at
	}
	return len(checkpoint.Statuses)
}

func countsText(counts map[string]int) string {
	var parts []string
	for _, o := range (&report.Summary{}).Outcomes() {
		if n := counts[o.Name]; n > 0 {
			parts = append(parts, humanize.Comma(int64(n))+" "+o.Name)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return english.Plural(counts["read"], "row", "") + " read: " + strings.Join(parts, ", ")
}

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
