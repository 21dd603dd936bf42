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

// Desk is where a command works: its streams, the checkpoint that its flags name, and the
// person before it.
type Desk struct {
	In     io.Reader
	Out    io.Writer
	Say    io.Writer         // for announcements
	Warn   func(text string) // on standard error
	Ledger ledger.Meant      // the one that the flags mean
	Person terminal.Person

	Namespace string // of keys that the command names
	// Hold says that the command sees to signals itself from here on; false: one has come already.
	Hold func() bool
}

// with opens the checkpoint as long as f takes.
func (d *Desk) with(readOnly bool, f func(ledger.Ledger) error) error {
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

func (d *Desk) warn(warnings []string) {
	for _, text := range warnings {
		d.Warn(text)
	}
}

func (d *Desk) printCounts(counts map[checkpoint.State]int) {
	for s := checkpoint.Created; s <= checkpoint.Forgotten; s++ {
		if s <= checkpoint.InDoubt || counts[s] > 0 {
			fmt.Fprintf(d.Out, "%-10s  %d\n", s, counts[s])
		}
	}
}

// counted is a number and what it counts.
type counted struct {
	n    int
	text string
}

// tellCounts prints those that are not 0.
func (d *Desk) tellCounts(list []counted, number func(int) string) {
	for _, one := range list {
		if one.n > 0 {
			fmt.Fprintln(d.Out, number(one.n)+" "+one.text)
		}
	}
}

// Status shows what the checkpoint knows, its last runs, and what a person has to look at.
func (d *Desk) Status() error {
	at, err := d.Ledger.Existing()
	if err != nil {
		return err
	}
	if at.Server != nil {
		return d.with(true, func(db ledger.Ledger) error {
			s, err := db.Status()
			if err != nil {
				return err
			}
			d.status(&s)
			return d.busyWorkers(db.(*postgres.Store))
		})
	}
	s, err := bolt.ReadStatus(at.Path, at.Target, at.Options)
	if err == nil {
		d.status(&s)
	}
	return err
}

func (d *Desk) status(s *checkpoint.Status) {
	fmt.Fprintf(d.Out, "checkpoint  %s\ntarget      %s, trunk %s\n", report.Escape(s.Path), report.Escape(s.Target.LeadsURL), report.Escape(s.Target.TrunkID))
	if s.Holder != nil {
		d.goesOn(s.Holder)
		return
	}
	d.printCounts(s.Keys)
	d.warn(s.Warnings)
	if len(s.Statuses) > 0 {
		fmt.Fprintln(d.Out, "\nleads by status last confirmed")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Statuses)) {
		fmt.Fprintf(d.Out, "%-22s  %d\n", report.Escape(cmp.Or(name, "not known")), s.Statuses[name])
	}
	if len(s.Runs) > 0 {
		fmt.Fprintln(d.Out, "\nlast runs")
	}
	for _, r := range s.Runs {
		fmt.Fprintf(d.Out, "%s  %s  %-8s  %-11s  %s\n", r.Started.UTC().Format(time.RFC3339), report.Escape(r.ID), report.Escape(r.Command), report.Escape(r.Outcome), report.Escape(countsText(r.Counts)))
	}
	d.followUp(s)
}

// goesOn shows the run that uses the checkpoint just now.
func (d *Desk) goesOn(w *checkpoint.Witness) {
	fmt.Fprintf(d.Out, "\na run goes on (process %d): %s, since %s\n", w.Process, report.Escape(strings.TrimSpace(w.Command+" "+w.Run)), w.Started.UTC().Format(time.RFC3339))
	for _, line := range []struct{ name, text string }{{"folder", w.Folder}, {"page", w.Page}} {
		if line.text != "" {
			fmt.Fprintf(d.Out, "%-10s  %s\n", line.name, report.Escape(line.text))
		}
	}
	fmt.Fprintf(d.Out, "leads       %d, rows in flight included\nThe rest is shown when the run has ended.\n", w.Leads)
}

// followUp says what a person has to look at.
func (d *Desk) followUp(s *checkpoint.Status) {
	at := " --checkpoint " + shell.Path(s.Path)
	if n := s.Keys[checkpoint.InDoubt]; n > 0 {
		fmt.Fprintf(d.Out, "\n%d in doubt: list them with leadferry checkpoint export --state in_doubt%s, look each up in the console, write what you found into lead_id, and settle them with leadferry checkpoint resolve FILE.csv%s\n", n, at, at)
	}
	for _, x := range s.Contradictions {
		text := fmt.Sprintf("\ncontradicted: on %s a person decided about %s: %s; on %s: %s", day(x.Decided), report.Escape(rowkey.Own(x.Key)), decisionText(x.Decision), day(x.Found), x.Text)
		if x.Other != "" {
			text += " (" + report.Escape(x.Other) + ")"
		}
		fmt.Fprintln(d.Out, text+": look both up in the console")
	}
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

func countsText(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
		}
	}
	return cmp.Or(strings.Join(parts, " "), "nothing")
}

// shownWorkers is how many workers are listed, the newest, beside those that hold rows.
const shownWorkers = 20

// Workers lists who uses a ledger in PostgreSQL.
func (d *Desk) Workers(ctx context.Context) error {
	return d.with(true, func(db ledger.Ledger) error {
		server, is := db.(*postgres.Store)
		if !is {
			return exit.Usage("a checkpoint in a file has no workers: one run at a time uses it", "leadferry checkpoint status shows the last runs")
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

// busyWorkers lists the workers that show life, or hold rows in doubt.
func (d *Desk) busyWorkers(server *postgres.Store) error {
	all, err := server.Workers(context.Background(), shownWorkers)
	all = slices.DeleteFunc(all, func(w postgres.Worker) bool { return !w.Alive && w.Holds == 0 })
	if len(all) > 0 {
		fmt.Fprintln(d.Out, "\nworkers")
	}
	for i := range all {
		d.worker(&all[i])
	}
	return err
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
	}
	if w.Holds > 0 && w.Ended == nil && !w.MayStillSettle {
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
`, shell.Word(address))
	return nil
}
