package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
)

func (p *program) resolveCommand() *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "settle rows in doubt by what a person found in the console", ArgsUsage: "FILE.csv",
		Description: `FILE.csv has the columns key and lead_id; - is standard input, and an export as
JSONL will do too. In lead_id, the ID of the lead that was found settles the row; the
word exists says that the lead was made but its ID is not known, so that it is never
sent again; the word none says that it was not made and may be sent. An empty lead_id
decides nothing: the row stays in doubt.

Each decision is kept with its time: leadferry checkpoint history KEY shows it, and
status shows whether anything that was found since contradicts it. A wrong one is
corrected by another file, as long as its row was not sent again since.

Example:

   leadferry checkpoint export --state in_doubt --sandbox -o doubt.csv
   # look each row up in the console and write what you found into lead_id
   leadferry checkpoint resolve doubt.csv --sandbox

Exit codes: 0 done; 2 the file was refused or decides nothing, nothing was settled, or
no checkpoint; 3 the disk refused it; 4 locked or damaged; 130 interrupted.`,
		Flags: []cli.Flag{
			boolFlag("", "none-created", "say of all rows in doubt that they were not made and may be sent"),
			boolFlag("", "yes", "with --none-created: do not ask"),
		},
		Action: p.resolve,
	}
}

func (p *program) resolve(c *cli.Context) error {
	if c.NArg() > 1 || c.Bool("none-created") == c.Args().Present() {
		return usage("resolve takes one file, or --none-created", "see leadferry checkpoint resolve --help")
	}
	if c.Bool("none-created") {
		return p.resolveNone(c)
	}
	read, err := p.readList(c.Args().First(), "resolve")
	if err != nil {
		return err
	}
	decisions, rows, err := decisionsOf(read)
	if err != nil {
		return err
	}
	if len(decisions) == 0 {
		why := "it has no rows"
		if n := len(read.rows); n > 0 {
			why = "lead_id is empty in " + english.Plural(n, "row", "")
		}
		return usage(read.path+": decides nothing: "+why+"; nothing was settled",
			"write into lead_id the lead's ID, exists, or none where the lead was not made")
	}
	return p.withCheckpoint(c, false, func(db *bolt.Store) error {
		r, err := db.Resolve(c.Context, decisions)
		if err != nil {
			return read.refused(err, rows, "nothing was settled")
		}
		p.reportResolved(r, decisions, len(read.rows)-len(decisions), db.Info().InDoubt)
		return nil
	})
}

// resolveNone decides about all that is in doubt at once, which a person confirms.
func (p *program) resolveNone(c *cli.Context) error {
	if !p.mayAsk(c) {
		return usage("--none-created has all rows in doubt sent again, which a person has to confirm; nothing was settled",
			"run it in a terminal, or add --yes")
	}
	return p.withCheckpoint(c, false, func(db *bolt.Store) error {
		var decisions []checkpoint.Decision
		err := db.Each(c.Context, checkpoint.Filter{State: checkpoint.InDoubt}, func(e checkpoint.Entry) error {
			if e.Reason != checkpoint.ReasonIncomplete { // it was not sent, but may have a lead that is missing here
				decisions = append(decisions, checkpoint.Decision{Key: e.Key})
			}
			return nil
		})
		if err == nil && len(decisions) == 0 {
			fmt.Fprintln(p.Out, "no row in doubt was sent by a run, so nothing was settled")
			return nil
		}
		if err == nil {
			err = p.confirm(c, fmt.Sprintf("This says of %s in doubt that no lead was made: the next import sends them.\nThose that were made after all are made twice, and leads cannot be deleted. Go on?",
				english.Plural(len(decisions), "row", "")), "nothing was settled", "answer y, or add --yes")
		}
		if err != nil {
			return err
		}
		r, err := db.Resolve(c.Context, decisions)
		if err == nil {
			p.reportResolved(r, decisions, 0, db.Info().InDoubt)
		}
		return err
	})
}

// decisionsOf reads what a person wrote into the column lead_id; rows are those that decide.
func decisionsOf(read *list) (decisions []checkpoint.Decision, rows []*listed, err error) {
	for i := range read.rows {
		row := &read.rows[i]
		d := checkpoint.Decision{Key: row.Key, LeadID: row.LeadID, Run: row.sender()}
		d.Sent, _ = time.Parse(time.RFC3339, row.UpdatedAt)
		switch {
		case d.LeadID == "":
			continue
		case strings.EqualFold(d.LeadID, "exists"):
			d.LeadID, d.Exists = "", true
		case strings.EqualFold(d.LeadID, "none"):
			d.LeadID = ""
		}
		if err := read.plausible(row, d.LeadID); err != nil {
			return nil, nil, err
		}
		decisions, rows = append(decisions, d), append(rows, row)
	}
	return decisions, rows, nil
}

// sender is the run that the list names. Spreadsheet programs take some for numbers; what
// they leave of these says nothing.
func (row *listed) sender() string {
	if len(row.RunID) == 8 && strings.Trim(row.RunID, "0123456789abcdef") == "" {
		return row.RunID
	}
	return ""
}

// reportResolved tells apart what was decided, and what was not.
func (p *program) reportResolved(r checkpoint.ResolveResult, decisions []checkpoint.Decision, undecided, doubts int) {
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
	fmt.Fprintf(p.Out, "%s settled (%d with a lead ID, %d without one that exist, %d not made), %d still in doubt\n",
		english.Plural(len(decisions), "row", ""), found, exist, not, doubts)
	p.tellCounts([]counted{
		{r.Corrected, "of these had been decided otherwise: corrected, and the history keeps both"},
		{r.Before, "of these had been decided so before"},
		{undecided, "without a decision, passed over: an empty lead_id decides nothing"},
	}, strconv.Itoa)
	if found+not > 0 {
		fmt.Fprintln(p.Out, "run the import again to send what may be sent and to link what was found")
	}
}
