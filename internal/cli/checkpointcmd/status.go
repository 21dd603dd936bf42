// Package checkpointcmd is what the commands of `leadferry checkpoint` do: they show what a
// checkpoint knows, and let people say what they know of its leads. The flags are
// internal/cli's; an error of the command line or of a file brings its hint in a line of its
// own.
package checkpointcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

// Command is what a checkpoint command works with: its streams, the checkpoint that its
// flags name, and the person at the terminal.
type Command struct {
	In     io.Reader
	Out    io.Writer
	Say    io.Writer         // for announcements
	Warn   func(text string) // on standard error
	Ledger ledger.Selection  // the one that the flags mean
	Person terminal.Person

	Namespace string // of keys that the command names
	// Hold makes the command handle signals itself from here on; false: one has come already.
	Hold func() bool
}

// with opens the checkpoint for f.
func (d *Command) with(readOnly bool, f func(ledger.Ledger) error) error {
	at, err := d.Ledger.Existing()
	if err != nil {
		return err
	}
	db, err := at.Open(ledger.How{ReadOnly: readOnly})
	if err != nil {
		return err
	}
	if readOnly {
		return errors.Join(f(db), db.Close())
	}
	return errors.Join(d.Ledger.Attested(context.Background(), db, false, func() error { return f(db) }), db.Close())
}

func (d *Command) warn(warnings []string) {
	for _, text := range warnings {
		d.Warn(text)
	}
}

func (d *Command) printCounts(counts map[checkpoint.State]int) {
	for _, s := range []checkpoint.State{
		checkpoint.InDoubt, checkpoint.Partial, checkpoint.Created, checkpoint.Rejected, checkpoint.NotMade,
		checkpoint.Forgotten,
	} {
		if s == checkpoint.Created || counts[s] > 0 {
			fmt.Fprintf(d.Out, "%-10s  %*s\n", s, figures, humanize.Comma(int64(counts[s])))
		}
	}
}

// figures is how wide a column of numbers is.
const figures = 11

// counted is a number and what it counts.
type counted struct {
	n    int
	text string
}

// tellCounts prints those that are not 0.
func (d *Command) tellCounts(list []counted, number func(int) string) {
	for _, one := range list {
		if one.n > 0 {
			fmt.Fprintln(d.Out, number(one.n)+" "+one.text)
		}
	}
}

// Status shows what the checkpoint knows, its last runs, and what a person has to look at.
func (d *Command) Status() error {
	at, err := d.Ledger.Existing()
	if err != nil {
		return err
	}
	if at.Server == nil {
		s, err := bolt.ReadStatus(at.Path, at.Target, at.Options)
		if err == nil {
			d.status(&s)
		}
		return err
	}
	return d.with(true, func(db ledger.Ledger) error {
		s, err := db.Status()
		if err != nil {
			return err
		}
		d.status(&s)
		busy := func(w *postgres.Worker) bool { return w.Alive || w.Holds > 0 }
		return d.workers(context.Background(), db.(*postgres.Store), "\nworkers\n", busy)
	})
}

func (d *Command) status(s *checkpoint.Status) {
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

// printf prints texts of others so that a terminal obeys nothing in them.
func (d *Command) printf(format string, args ...any) {
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = report.Escape(text)
		}
	}
	fmt.Fprintf(d.Out, format, args...)
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

// Workers lists who uses a ledger in PostgreSQL.
func (d *Command) Workers(ctx context.Context) error {
	return d.with(true, func(db ledger.Ledger) error {
		server, is := db.(*postgres.Store)
		if !is {
			return exit.Usage("a checkpoint in a file has no workers: one run at a time uses it",
				"leadferry checkpoint status shows the last runs")
		}
		return d.workers(ctx, server, "", func(*postgres.Worker) bool { return true })
	})
}

// shownWorkers is how many workers are listed, the newest, beside those that hold rows.
const shownWorkers = 20

// workers lists those that are shown, below a title.
func (d *Command) workers(ctx context.Context, server *postgres.Store, title string,
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

// Prepare makes a database fit to hold ledgers.
func (d *Command) Prepare(address string, o postgres.Options) error {
	p, err := postgres.Init(address, o)
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
