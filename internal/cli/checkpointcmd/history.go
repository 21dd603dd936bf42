package checkpointcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/rowkey"
)

// history lists what was done with the row of a key, decided about it and found since.
func (d *Command) history() error {
	if d.C.NArg() != 1 {
		return exit.Usage("history takes one key", "leadferry checkpoint export lists all keys")
	}
	ctx, key := d.C.Context, rowkey.Effective(d.C.String("namespace"), rowkey.Trim(d.C.Args().First()))
	return d.with(true, func(db ledger.Ledger) error {
		found, alike, err := lookUp(ctx, db, key)
		if err != nil {
			return err
		}
		lines, err := historyLines(ctx, db, key)
		if err != nil {
			return err
		}
		if found[0].State == checkpoint.Unknown && len(lines) == 0 {
			hint := "leadferry checkpoint export lists all keys; --namespace names that of the mapping, if it has one"
			if alike[0].File != "" {
				hint = fmt.Sprintf("it knows one that looks like it, of %s:%d", report.Escape(alike[0].File),
					alike[0].Line)
			}
			return exit.Usage("the checkpoint does not know this key", hint)
		}
		d.writeState(&found[0])
		for _, l := range lines {
			d.printf("%s  %-8s  %s\n", l.at.UTC().Format(time.RFC3339), l.run, l.text)
		}
		return nil
	})
}

// lookUp returns what is known of keys, and for those that are not known one that looks like it.
func lookUp(ctx context.Context, db ledger.Ledger, keys ...string) (found []checkpoint.Entry,
	alike []checkpoint.Likeness, err error,
) {
	found, alike = make([]checkpoint.Entry, len(keys)), make([]checkpoint.Likeness, len(keys))
	queries := make([]checkpoint.Query, len(keys))
	for i, key := range keys {
		queries[i] = checkpoint.Query{Key: key, Alike: &alike[i]}
	}
	return found, alike, db.Find(ctx, queries, found, make([]checkpoint.Match, len(keys)))
}

// writeState says how the key is now.
func (d *Command) writeState(e *checkpoint.Entry) {
	text := map[checkpoint.State]string{
		checkpoint.Unknown:   "not made: the next import sends it",
		checkpoint.NotMade:   "not made, a person said: the next import sends it",
		checkpoint.Forgotten: "forgotten on request: nothing else is kept, and it is not sent again",
	}[e.State]
	if text == "" {
		text = strings.ReplaceAll(e.State.String(), "_", " ")
	}
	fmt.Fprintf(d.Out, "now         %s\n", text)
	for _, part := range []struct{ name, value string }{
		{"lead", e.LeadID},
		{"status", statusText(e.Status)},
		{"ExternalID", e.ExternalID},
		{"to link", e.WantLink},
		{"assigned", e.Organization},
		{"locator", e.Locator},
		{"location", e.Location},
		{"reason", importer.Explain(e)},
		{"request ID", e.RequestID},
	} {
		if part.value != "" {
			d.printf("%-10s  %s\n", part.name, part.value)
		}
	}
	if e.File != "" {
		d.printf("row         %s:%d\n", e.File, e.Line)
	}
	fmt.Fprintln(d.Out)
}

type historyLine struct {
	at   time.Time
	run  string
	text string
}

// historyLines gathers the events of a key and what the audit holds about it.
func historyLines(ctx context.Context, db ledger.Ledger, key string) (lines []historyLine, err error) {
	events, err := checkpoint.History(ctx, db, key)
	if err != nil {
		return nil, err
	}
	for _, ev := range events {
		lines = append(lines, historyLine{ev.At, ev.Run, eventText(ev)})
	}
	audit, err := checkpoint.AuditOf(ctx, db)
	if err != nil {
		return nil, err
	}
	var before time.Time // of the last decision
	for _, d := range audit.Decisions {
		if d.Key != key {
			continue
		}
		sentSince := func(ev checkpoint.Event) bool { return ev.Act&checkpoint.Doubted != 0 && ev.At.After(before) }
		how := "decided by a person: "
		if !before.IsZero() && !slices.ContainsFunc(events, sentSince) {
			how = "corrected by a person: "
		}
		lines, before = append(lines, historyLine{d.At, "-", how + decisionText(d.Decision)}), d.At
	}
	for _, x := range audit.Contradictions {
		if x.Key == key || x.Other == key {
			lines = append(lines, historyLine{x.Found, "-", "contradicts the decision about " + x.Key + ": " + x.Text})
		}
	}
	slices.SortStableFunc(lines, func(a, b historyLine) int { return a.at.Compare(b.at) })
	return lines, nil
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

// actTexts are what a run or a person can do, in words.
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

// eventText says in words what an event was.
func eventText(ev checkpoint.Event) string {
	var parts []string
	for _, a := range actTexts {
		byPeople := a.act == checkpoint.Made && ev.Act&(checkpoint.Adopted|checkpoint.Decided) != 0
		if ev.Act&a.act != 0 && !byPeople {
			parts = append(parts, a.text)
		}
	}
	if s := ev.Send; ev.Act&checkpoint.Doubted != 0 {
		if s.File != "" {
			parts = append(parts, fmt.Sprintf("%s:%d", s.File, s.Line))
		}
		switch {
		case s.Organization != "":
			parts = append(parts, "for organization "+s.Organization)
		case s.Locator != "":
			parts = append(parts, "by locator "+s.Locator)
		}
	}
	switch {
	case len(parts) > 0 || ev.Act&checkpoint.StatusSent != 0:
	case ev.State == checkpoint.InDoubt:
		parts = append(parts, "held, not sent: the checkpoint was incomplete")
	default:
		parts = append(parts, "not confirmed")
	}
	if ev.Status != "" {
		parts = append(parts, "status "+statusText(ev.Status))
	}
	if ev.Code != 0 {
		parts = append(parts, fmt.Sprintf("HTTP %d", ev.Code))
	}
	return strings.Join(parts, ", ")
}

// statusText is a status for people.
func statusText(status string) string {
	if checkpoint.KnownStatus(status) {
		return status
	}
	return status + " (unknown)"
}
