package checkpointcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/rowkey"
	"leadferry/internal/shell"
	"leadferry/internal/spelling"
)

// stamp returns a time for a column.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// status shows what the checkpoint knows, its last runs, and what a person must look at.
func (d *Command) status() error {
	var s checkpoint.Status
	var workers []postgres.Worker
	err := d.with(ledger.How{ReadOnly: true}, func(db ledger.Ledger) (err error) { // printed later: readers are slow
		if server, is := db.(*postgres.Store); is {
			workers, err = server.Workers(d.C.Context, shownWorkers)
		}
		if err == nil {
			s, err = checkpoint.StatusOf(d.C.Context, db)
		}
		return err
	})
	locked, is := errors.AsType[*checkpoint.OpenError](err)
	if is && errors.Is(err, checkpoint.ErrLocked) { // by a run, if it is a file
		if w, goesOn := d.Book().Holder(locked.Path); goesOn {
			d.showHolder(&w)
			return nil
		}
	}
	if err != nil {
		return err
	}
	d.showStatus(&s)
	d.printIf(s.Moved != "", "\nit was copied: its leads are known there now, use --checkpoint %s", shell.Path(s.Moved))
	if checkpoint.IsAddress(s.Path) {
		fmt.Fprintln(d.Out, "\nworkers")
		d.listWorkers(workers)
	}
	return nil
}

func (d *Command) showHolder(w *checkpoint.Witness) {
	d.printf("checkpoint  %s\ntarget      %s, trunk %s\n", w.Place, w.Target.LeadsURL, w.Target.TrunkID)
	d.printf("\na run goes on (process %d): %s, since %s\n", w.Process, strings.TrimSpace(w.Command+" "+w.Run),
		stamp(w.Started))
	d.printIf(w.Folder != "", "folder      %s", w.Folder)
	d.printIf(w.Page != "", "page        %s", w.Page)
	d.printf("leads       %d, rows in flight included\nThe rest is shown when the run has ended.\n", w.Leads)
}

func (d *Command) showStatus(s *checkpoint.Status) {
	d.printf("checkpoint  %s (ID %s)\ntarget      %s, trunk %s\n", s.Path, s.ID, s.Target.LeadsURL, s.Target.TrunkID)
	d.printCounts(s.Keys)
	d.Warn(s.Warnings...)
	d.printIf(len(s.Runs) > 0, "\nlast runs")
	for _, r := range s.Runs {
		d.printf("%s  %s  %-9s  %s\n", stamp(r.Started), r.ID, r.Command, r.Outcome)
		for line := range strings.Lines(terminal.Wrap(countsText(r.Counts), terminal.Columns-4)) {
			d.printf("    %s\n", strings.TrimRight(line, "\n"))
		}
	}
	d.followUp(s)
}

// followUp says what a person must look at.
func (d *Command) followUp(s *checkpoint.Status) {
	at, doubts := " --checkpoint "+shell.Path(s.Path), s.Keys[checkpoint.InDoubt]
	d.printIf(doubts > 0, "\n%d in doubt. List them:\n    leadferry checkpoint export --state in_doubt%s -o doubt.csv\n"+
		"Look each up in the console, write what you found into lead_id, and settle them:\n"+
		"    leadferry checkpoint resolve doubt.csv%s", doubts, at, at)
	for _, x := range s.Contradicted {
		for _, e := range x.Against {
			if e.Other != "" {
				e.Text += " (" + e.Other + ")"
			}
			d.printf("\ncontradicted: on %s a person decided about %s: %s; on %s: %s: look both up in the console\n",
				stamp(x.At), rowkey.Own(x.Key), decisionText(x.Decision), stamp(e.Found), e.Text)
		}
	}
}

func countsText(counts map[string]int) string {
	var parts spelling.Texts
	for _, o := range (&report.Summary{}).Outcomes() {
		n := counts[o.Name]
		parts.Add(n > 0, "%s %s", humanize.Comma(int64(n)), o.Name)
	}
	if len(parts) == 0 {
		return ""
	}
	return countRows(counts["read"]) + " read: " + strings.Join(parts, ", ")
}

// workers lists who uses a ledger in PostgreSQL.
func (d *Command) workers() error {
	return d.with(ledger.How{ReadOnly: true}, func(db ledger.Ledger) error {
		server, is := db.(*postgres.Store)
		if !is {
			return exit.Usage("a checkpoint in a file has no workers: one run at a time uses it",
				"leadferry checkpoint status shows the last runs")
		}
		workers, err := server.Workers(d.C.Context, shownWorkers)
		if err == nil {
			d.listWorkers(workers)
		}
		return err
	})
}

// shownWorkers is how many of the newest workers are listed, besides those that hold rows.
const shownWorkers = 20

func (d *Command) listWorkers(workers []postgres.Worker) {
	d.printIf(len(workers) == 0, "no run has used it yet")
	waits := 0
	for i := range workers {
		d.worker(&workers[i])
		if workers[i].MayStillSettle {
			waits += workers[i].Holds
		}
	}
	d.printIf(waits > 0, "\n%s in doubt may still get an answer: resolve refuses them until their worker has ended or "+
		"was silent for 15 minutes (longer with a long --timeout)", countRows(waits))
}

func (d *Command) worker(w *postgres.Worker) {
	who := strings.TrimSpace(w.Command + " " + w.Run)
	if w.Fleet != "" {
		who += fmt.Sprintf(", shard %d/%d of fleet %s", w.Shard, w.Shards, w.Fleet)
	}
	how := "silent since " + stamp(w.Beat)
	switch {
	case w.Ended != nil:
		how = "ended " + stamp(*w.Ended)
	case w.Alive && w.Fenced != nil: // it is paused, or was killed a moment ago
		how = "last sign " + stamp(w.Beat)
	case w.Alive:
		how = "at work, last sign " + stamp(w.Beat)
	}
	if w.Fenced != nil {
		how += ", replaced " + stamp(*w.Fenced)
	}
	if w.Holds > 0 {
		how += ", holds " + countRows(w.Holds) + " in doubt"
		if w.Ended == nil && !w.MayStillSettle {
			how += ": they may be resolved"
		}
	}
	d.printf("%-6d  began %s  on %s (process %d)  %s: %s\n", w.ID, stamp(w.Started), w.Host, w.Process, who, how)
}

// prepare prepares a database for ledgers.
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
	d.printf("the schema leadferry is there, version %d, owned by %s\n", checkpoint.Format, p.Owner)
	if p.Grants != "" {
		fmt.Fprintf(d.Out, "\nthis user may not make roles: ask somebody who may to run this in the database "+
			"%s:\n\n%s", spelling.Escape(p.Database), p.Grants)
	}
	fmt.Fprintf(d.Out, `
give runs and people their roles:

   GRANT leadferry_worker TO the_user_of_runs;
   GRANT leadferry_reader TO somebody_who_looks;

then run leadferry with --checkpoint %s, or the address with that user's name
`, shell.Word(address))
	return nil
}

// history lists what was done with the row of a key, decided about it and found later.
func (d *Command) history() error {
	if d.C.NArg() != 1 {
		return exit.Usage("history takes one key", "`leadferry checkpoint export` lists all keys")
	}
	ctx, key := d.C.Context, rowkey.Effective(d.C.String("namespace"), rowkey.Trim(d.C.Args().First()))
	return d.with(ledger.How{ReadOnly: true}, func(db ledger.Ledger) error {
		found, err := lookUp(ctx, db, key)
		if err != nil {
			return err
		}
		lines, err := historyLines(ctx, db, key)
		if err != nil {
			return err
		}
		if found[0].State == checkpoint.Unknown && len(lines) == 0 {
			return exit.Usage("the checkpoint does not know this key",
				"`leadferry checkpoint export` lists all keys; --namespace names that of the mapping, if it has one")
		}
		d.writeState(&found[0])
		for _, l := range lines {
			d.printf("%s  %-8s  %s\n", stamp(l.at), l.run, l.text)
		}
		return nil
	})
}

func lookUp(ctx context.Context, db ledger.Ledger, keys ...string) (found []checkpoint.Entry, err error) {
	found = make([]checkpoint.Entry, len(keys))
	queries := make([]checkpoint.Query, len(keys))
	for i, key := range keys {
		queries[i].Key, queries[i].Entry = key, &found[i]
	}
	return found, db.Find(ctx, queries)
}

func (d *Command) writeState(e *checkpoint.Entry) {
	now := map[checkpoint.State]string{
		checkpoint.Unknown:   "not made: the next import sends it",
		checkpoint.NotMade:   "not made, a person said: the next import sends it",
		checkpoint.Forgotten: "forgotten on request: nothing else is kept, and it is not sent again",
	}[e.State]
	for part := range slices.Chunk([]string{
		"now", cmp.Or(now, strings.ReplaceAll(e.State.String(), "_", " ")), "lead", e.LeadID,
		"status", statusText(e.Status), "ExternalID", e.ConfirmedLink(), "to link",
		map[bool]string{true: e.WantLink}[e.WantLink != e.ConfirmedLink()], "assigned", e.Organization, "locator", e.Locator,
		"location", e.Location, "reason", importer.Explain(e), "request ID", e.RequestID,
	}, 2) {
		d.printIf(part[1] != "", "%-10s  %s", part[0], part[1])
	}
	d.printIf(e.File != "", "row         %s:%d", e.File, e.Line)
	fmt.Fprintln(d.Out)
}

type historyLine struct {
	at        time.Time
	run, text string
}

// historyLines returns the events of a key, what people decided about it, and what was found later.
func historyLines(ctx context.Context, db ledger.Ledger, key string) (lines []historyLine, err error) {
	events, unread := checkpoint.History(ctx, db, key)
	audit, err := checkpoint.AuditOf(ctx, db)
	for _, ev := range events {
		lines = append(lines, historyLine{ev.At, ev.Run, eventText(ev)})
	}
	for _, d := range audit {
		if d.Key != key {
			continue
		}
		lines = append(lines, historyLine{d.At, "-", "decided by a person: " + decisionText(d.Decision)})
		for _, e := range d.Against {
			lines = append(lines, historyLine{e.Found, "-", "contradicts the decision about " + d.Key + ": " + e.Text})
		}
	}
	slices.SortStableFunc(lines, func(a, b historyLine) int { return a.at.Compare(b.at) })
	return lines, errors.Join(unread, err)
}

func decisionText(d checkpoint.Decision) string {
	switch {
	case d.LeadID != "":
		return "it is lead " + d.LeadID
	case d.Exists:
		return "it exists, its lead ID is not known"
	}
	return "it was not made and may be sent"
}

// actTexts are the words for what a run or a person did.
var actTexts = []struct {
	act  checkpoint.Act
	text string
}{
	{checkpoint.Adopted, "taken over from a list"},
	{checkpoint.Decided, "settled"},
	{checkpoint.Made, "created"},
	{checkpoint.Linked, "ExternalID linked"},
	{checkpoint.DataSent, "other data sent"},
	{checkpoint.Refused, "refused"},
	{checkpoint.Doubted, "sent, in doubt"},
}

// eventText describes an event in words.
func eventText(ev checkpoint.Event) string {
	var parts spelling.Texts
	for _, a := range actTexts {
		byPeople := a.act == checkpoint.Made && ev.Act&(checkpoint.Adopted|checkpoint.Decided) != 0
		parts.Add(ev.Act&a.act != 0 && !byPeople, "%s", a.text)
	}
	s, doubted := ev.Send, ev.Act&checkpoint.Doubted != 0
	parts.Add(doubted && s.File != "", "%s:%d", s.File, s.Line)
	parts.Add(doubted && s.Organization != "", "for organization %s", s.Organization)
	parts.Add(doubted && s.Locator != "", "by locator %s", s.Locator)
	if len(parts) == 0 && ev.Act&checkpoint.StatusSent == 0 {
		parts.Add(ev.State == checkpoint.InDoubt, "held, not sent: the checkpoint was incomplete")
		parts.Add(ev.State != checkpoint.InDoubt, "not confirmed")
	}
	parts.Add(ev.Status != "", "status %s", statusText(ev.Status))
	parts.Add(ev.Code != 0, "HTTP %d", ev.Code)
	return strings.Join(parts, ", ")
}

func statusText(status string) string {
	if slices.Contains(checkpoint.Statuses[:], status) {
		return status
	}
	return status + " (unknown)"
}
