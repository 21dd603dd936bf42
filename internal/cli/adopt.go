package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer"
	"leadferry/importer/report"
)

func (p *program) adoptCommand() *cli.Command {
	return &cli.Command{
		Name: "adopt", Usage: "take over leads that exist on the service already", ArgsUsage: "FILE.csv",
		Description: `FILE.csv has the columns key and lead_id and, where known, external_id, status and
organization_id; - is standard input. The leads count as made from then on: no
import makes them again, and a sync finds them and sends them all their content at
first. The file is taken as a whole or not at all; the same file again does no harm.
A lead ID that came from a list or a decision before is corrected.

The export of another checkpoint, CSV or JSONL, and the results.csv of a run can be
given as they are: rows in doubt stay in doubt, partial ones wait for their link, and
rows that are known to have a lead, but not which, are never made again. Rows without a
lead are left out. Where there is no checkpoint yet, one is made for the target that
the flags name.

Example:

   leadferry checkpoint adopt leads-of-the-console.csv --sandbox

Exit codes: 0 done; 2 the file was refused, nothing was taken over, or no
checkpoint; 3 the disk refused it; 4 locked or damaged.`,
		Flags: []cli.Flag{newCheckpointFlag()}, Action: p.adopt,
	}
}

func (p *program) adopt(c *cli.Context) (err error) {
	if c.NArg() != 1 {
		return usage("adopt takes one file", "see leadferry checkpoint adopt --help")
	}
	read, err := p.readList(c.Args().First(), "adopt")
	if err != nil {
		return err
	}
	entries, rows, err := entriesOf(read)
	if err != nil {
		return err
	}
	db, err := p.openOrMakeCheckpoint(c)
	if err != nil {
		return err
	}
	defer func() { // a new one that took nothing over knows nothing
		_, dropped := db.Drop()
		err = errors.Join(err, dropped)
	}()
	if db.Info().New {
		fmt.Fprintf(p.say(c), "checkpoint: %s (new: no lead is known yet)\n", db.Info().Path)
	}
	p.warn(db.Info().Warnings)
	if err := ofThisTarget(c.Args().First(), read, db.Info().Target); err != nil {
		return err
	}
	result, err := db.Adopt(c.Context, entries)
	if err != nil {
		return read.refused(err, rows, "nothing was taken over")
	}
	p.reportAdopted(result, len(read.rows)-len(rows), db.Info().Path)
	return nil
}

// ofThisTarget refuses results of which the summary beside them says that their run had
// another target: leads that this one lacks would count as made. An export says nothing of
// its target, and is how leads move with a service that changes its address.
func ofThisTarget(path string, read *list, target checkpoint.Target) error {
	if !read.results || path == "-" {
		return nil
	}
	w := witnessIn(filepath.Dir(path))
	if w.ID == "" || w.Target.Canonical() == target.Canonical() {
		return nil
	}
	return usage(fmt.Sprintf("%s: is of a run to another target, trunk %s at %s; nothing was taken over",
		path, cmp.Or(w.Target.TrunkID, "unknown"), w.Target.LeadsURL),
		"adopt it with the flags of that target; if the service moved, adopt what `leadferry checkpoint export` writes of "+w.Path)
}

// openOrMakeCheckpoint makes one where there is none, if the flags name a target.
func (p *program) openOrMakeCheckpoint(c *cli.Context) (*bolt.Store, error) {
	path, err := p.checkpointPath(c)
	if err != nil {
		return nil, err
	}
	target := p.target()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || target.BaseURL == "" || target.LeadsURL == "" || target.TrunkID == "" {
		return p.openCheckpoint(c, false)
	}
	if err := makeStateDir(path); err != nil {
		return nil, err
	}
	return bolt.Open(path, target, opening(c))
}

func (p *program) reportAdopted(r checkpoint.AdoptResult, passed int, path string) {
	fmt.Fprintf(p.Out, "%s taken over, %d known already\n", english.Plural(r.Leads, "lead", ""), r.Known)
	at := " --checkpoint " + report.Quote(path)
	p.tellCounts([]counted{
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
