package checkpointcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/rowkey"
)

// resolve settles rows in doubt by the decisions of a file, all of them or none, or of a person about all.
func (d *Command) resolve() error {
	switch none := d.C.Bool("none-created"); {
	case d.C.NArg() > 1 || none == d.C.Args().Present():
		return exit.Usage("resolve takes one file, or --none-created",
			"leadferry checkpoint export --state in_doubt -o doubt.csv makes it")
	case none:
		return d.resolveNone(d.C.Context)
	}
	read, err := d.openList(d.C.Args().First(), "resolve")
	if err != nil {
		return err
	}
	defer read.file.Close()
	decisions, rows, all, err := decisionsOf(read)
	if err != nil {
		return err
	}
	if len(decisions) == 0 {
		why, column := "it has no rows", "lead_id"
		if read.rejects {
			why, column = "it has no rows in doubt", "leadferry_lead_id"
		}
		if all > 0 {
			why = column + " is empty in " + english.Plural(all, "row", "")
		}
		return exit.Usage(read.path+": decides nothing: "+why+"; nothing was settled",
			"write into "+column+" the lead's ID, exists, or none where the lead was not made")
	}
	return d.with(false, func(db ledger.Ledger) error {
		r, err := checkpoint.Resolve(d.C.Context, db, decisions)
		if err != nil {
			if why := (*checkpoint.ListError)(nil); errors.As(err, &why) {
				return read.refused(why, &rows[why.Index], "nothing was settled")
			}
			return err
		}
		d.reportResolved(r, decisions, db.Info().InDoubt, counted{all - len(decisions), undecided},
			counted{read.passed, "not in doubt, passed over: their leadferry_lead_id was not used"})
		return nil
	})
}

// resolveNone says of all rows in doubt that they were not made, which a person confirms.
func (d *Command) resolveNone(ctx context.Context) error {
	if !d.Person.CanAnswer() {
		return exit.Usage("--none-created has all rows in doubt sent again, which a person has to confirm; nothing "+
			"was settled",
			"run it in a terminal, or add --yes")
	}
	return d.with(false, func(db ledger.Ledger) error {
		decisions, err := noneMade(ctx, db)
		if err == nil && len(decisions) == 0 {
			fmt.Fprintln(d.Out, "no row in doubt was sent by a run, so nothing was settled")
			return nil
		}
		if err == nil {
			question := fmt.Sprintf("This says of %s in doubt that no lead was made: the next import sends them.\n"+
				"Those that were made after all are made twice, and leads cannot be deleted. Go on?",
				english.Plural(len(decisions), "row", ""))
			err = d.Person.Confirm(question, "nothing was settled", "answer y, or add --yes")
		}
		if err != nil {
			return err
		}
		r, err := checkpoint.Resolve(ctx, db, decisions)
		if err == nil {
			d.reportResolved(r, decisions, db.Info().InDoubt)
		}
		return err
	})
}

// noneMade says of each send in doubt, and of no later one of its row, that no lead was made: other runs may go on
// while a person is asked.
func noneMade(ctx context.Context, db ledger.Ledger) (decisions []checkpoint.Decision, err error) {
	err = checkpoint.Each(ctx, db, checkpoint.Filter{State: checkpoint.InDoubt}, func(e checkpoint.Entry) error {
		if e.Reason != checkpoint.ReasonIncomplete { // it was not sent, but may have a lead that is missing here
			decisions = append(decisions, checkpoint.Decision{Key: e.Key, Sent: e.Updated, Run: e.Run})
		}
		return nil
	})
	return decisions, err
}

// The words that decide in the place of a lead ID.
const (
	exists  = "exists"
	notMade = "none"
)

// decisionsOf reads what a person wrote into the column lead_id; rows are those that decide, of all.
func decisionsOf(read *list) (decisions []checkpoint.Decision, rows []listed, all int, err error) {
	for row, err := range read.each {
		if err != nil {
			return nil, nil, 0, err
		}
		all++
		d := checkpoint.Decision{Key: row.Key, LeadID: row.LeadID, Run: row.RunID}
		if !isRun(d.Run) { // a spreadsheet program took it for a number
			d.Run = ""
		}
		d.Sent, _ = time.Parse(time.RFC3339, row.UpdatedAt)
		switch {
		case d.LeadID == "":
			continue
		case strings.EqualFold(d.LeadID, exists):
			d.LeadID, d.Exists = "", true
		case d.LeadID == notMade:
			d.LeadID = ""
		case d.LeadID == row.ExternalID, d.LeadID == rowkey.Own(row.Key):
			return nil, nil, 0, read.fault(row, "its lead_id is the row's own key or ExternalID, which the service has "+
				"never given a lead; nothing was settled",
				"write the lead ID that the console shows, the word exists, or none where the lead was not made")
		default:
			if err := read.plausible(row); err != nil {
				return nil, nil, 0, err
			}
		}
		if read.rejects && slices.Contains(decisions, d) { // each row of a key is there
			all--
			continue
		}
		decisions, rows = append(decisions, d), append(rows, *row)
	}
	return decisions, rows, all, nil
}

// isRun reports whether a word is the ID of a run.
func isRun(word string) bool { return len(word) == 8 && strings.Trim(word, "0123456789abcdef") == "" }

const undecided = "without a decision, passed over: an empty lead_id decides nothing"

// reportResolved tells apart what was decided, and what was passed over.
func (d *Command) reportResolved(r checkpoint.ResolveResult, decisions []checkpoint.Decision, doubts int,
	passed ...counted,
) {
	found, exist, not := 0, 0, 0
	for _, d := range decisions {
		switch {
		case d.LeadID != "":
			found++
		case d.Exists:
			exist++
		default:
			not++
		}
	}
	fmt.Fprintf(d.Out, "%s settled: %d %s a lead ID, %d %s without a known ID, %d %s never made; %d still in doubt\n",
		english.Plural(len(decisions), "row", ""), found, english.PluralWord(found, "has", "have"),
		exist, english.PluralWord(exist, "exists", "exist"), not, english.PluralWord(not, "was", "were"), doubts)
	d.tellCounts(append([]counted{
		{r.Corrected, "of these had been decided otherwise: corrected, and the history keeps both"},
		{r.Before, "of these had been decided so before"},
	}, passed...), strconv.Itoa)
	if found+not > 0 {
		fmt.Fprintln(d.Out,
			"import the rejects file or the whole file again: either sends what may be sent and links what was found")
	}
}
