package checkpointcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer"
	"leadferry/importer/report"
)

// Adopt takes over the leads of a file, as a whole or not at all. open opens the checkpoint,
// or makes one.
func (d *Desk) Adopt(ctx context.Context, path string, open func() (*bolt.Store, error)) (err error) {
	read, err := d.readList(path, "adopt")
	if err != nil {
		return err
	}
	entries, rows, err := entriesOf(read)
	if err != nil {
		return err
	}
	db, err := open()
	if err != nil {
		return err
	}
	defer func() { // a new one that took nothing over knows nothing
		_, dropped := db.Drop()
		err = errors.Join(err, dropped)
	}()
	if db.Info().New {
		fmt.Fprintf(d.Say, "checkpoint: %s (new: no lead is known yet)\n", db.Info().Path)
	}
	d.warn(db.Info().Warnings)
	if err := d.ofThisTarget(path, read, db.Info().Target); err != nil {
		return err
	}
	result, err := db.Adopt(ctx, entries)
	if err != nil {
		return read.refused(err, rows, "nothing was taken over")
	}
	d.reportAdopted(result, len(read.rows)-len(rows), db.Info().Path)
	return nil
}

// ofThisTarget refuses results of which the summary beside them says that their run had
// another target: leads that this one lacks would count as made. An export says nothing of
// its target, and is how leads move with a service that changes its address.
func (d *Desk) ofThisTarget(path string, read *list, target checkpoint.Target) error {
	if !read.results || path == "-" {
		return nil
	}
	w := d.Witness(filepath.Dir(path))
	if w.ID == "" || w.Target.Canonical() == target.Canonical() {
		return nil
	}
	return usage(fmt.Sprintf("%s: is of a run to another target, trunk %s at %s; nothing was taken over",
		path, cmp.Or(w.Target.TrunkID, "unknown"), w.Target.LeadsURL),
		"adopt it with the flags of that target; if the service moved, adopt what `leadferry checkpoint export` writes of "+w.Path)
}

func (d *Desk) reportAdopted(r checkpoint.AdoptResult, passed int, path string) {
	fmt.Fprintf(d.Out, "%s taken over, %d known already\n", english.Plural(r.Leads, "lead", ""), r.Known)
	at := " --checkpoint " + report.Quote(path)
	d.tellCounts([]counted{
		{r.Corrected, "corrected: people had given it another lead ID before"},
		{r.Unspecified, "with a status that the service's specification does not name, which is kept as it is"},
		{r.InDoubt, "in doubt taken over as in doubt: leadferry checkpoint export --state in_doubt" + at + " lists them"},
		{r.Rejected, "left out that the service refused (state rejected): they have no lead, and the next import sends them again"},
		{passed, "passed over: no lead is known of them, or another row says more of it"},
		{r.Forgotten, "left out whose key was forgotten: leadferry checkpoint forget --unblock KEY" + at + " frees one"},
	}, func(n int) string { return english.Plural(n, "row", "") })
}

// entriesOf are the entries of a list that are to be taken over, with their rows. Of a run's
// results, these are the rows that have a lead or may have one, once each key.
func entriesOf(read *list) (entries []checkpoint.Entry, rows []*listed, err error) {
	if read.results {
		rows, err = read.withLeads()
	} else {
		for i := range read.rows {
			rows = append(rows, &read.rows[i])
		}
	}
	for _, row := range rows {
		if err := read.plausible(row, row.LeadID); err != nil {
			return nil, nil, err
		}
		e, err := entryOf(row)
		if err != nil {
			return nil, nil, read.fault(row, err.Error()+"; nothing was taken over", "")
		}
		entries = append(entries, e)
	}
	return entries, rows, err
}

// withLeads gives rows of a run's results their state and returns those that tell most of
// their keys.
func (l *list) withLeads() (rows []*listed, err error) {
	best := map[string]*listed{}
	for i := range l.rows {
		row := &l.rows[i]
		if row.State, err = stateOfOutcome(row); err != nil {
			return nil, l.fault(row, err.Error()+"; nothing was taken over", "")
		}
		if row.State == "" || row.Key == "" {
			continue
		}
		before, again := best[row.Key]
		if again && row.LeadID != "" && before.LeadID != "" && before.LeadID != row.LeadID {
			return nil, l.fault(row, fmt.Sprintf("its key has another lead ID in row %d; nothing was taken over", before.number), "take out the row that is wrong")
		}
		if !again || row.tells() >= before.tells() {
			best[row.Key] = row
		}
	}
	return slices.SortedFunc(maps.Values(best), func(a, b *listed) int { return a.number - b.number }), nil
}

// tells orders what rows of one key tell: that it has this lead, that it may have one, that
// it has one.
func (row *listed) tells() int {
	switch {
	case row.State == checkpoint.InDoubt.String():
		return 1
	case row.LeadID != "":
		return 2
	}
	return 0
}

// stateOfOutcome is how a row of a run's results stands in a checkpoint, or nothing where
// it has no lead.
func stateOfOutcome(row *listed) (string, error) {
	known := slices.ContainsFunc(importer.Outcomes(), func(o importer.Outcome) bool { return o.String() == row.Outcome })
	switch {
	case !known:
		return "", errors.New("its outcome is none")
	case row.Outcome == importer.InDoubt.String():
		return checkpoint.InDoubt.String(), nil
	case row.Outcome == importer.Partial.String() && row.LeadID != "":
		return checkpoint.Partial.String(), nil
	case row.LeadID != "" || slices.Contains([]string{"created", "unchanged", "changed", "partial"}, row.Outcome):
		return checkpoint.Created.String(), nil
	}
	return "", nil
}

// entryOf is a row of a list as the checkpoint takes it; the reverse of exportLine.
func entryOf(row *listed) (checkpoint.Entry, error) {
	e := checkpoint.Entry{
		Key: row.Key, LeadID: row.LeadID, Organization: row.OrganizationID, Location: row.Location, Status: row.Status,
		File: row.File, Line: int(row.Line),
	}
	if row.State != "" {
		s, err := stateNamed(row.State)
		if err != nil {
			return e, errors.New("its state is none: an export has created, partial, rejected or in_doubt")
		}
		e.State = s
	}
	if locator, ok := strings.CutPrefix(e.Organization, importer.ForLocator); ok {
		e.Organization, e.Locator = "", locator
	}
	switch {
	case e.State == checkpoint.InDoubt:
		e.WantLink, e.Run = row.ExternalID, row.RunID
		e.Updated, _ = time.Parse(time.RFC3339, row.UpdatedAt) // else the time of adoption
	case e.State == checkpoint.Partial, e.LeadID == "": // without its ID, it cannot have been linked
		e.WantLink = row.ExternalID
	default:
		e.ExternalID = row.ExternalID
	}
	return e, nil
}
