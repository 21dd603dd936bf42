package checkpointcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/rowkey"
)

// Resolve settles rows in doubt by the decisions of a file, all of them or none.
func (d *Desk) Resolve(ctx context.Context, path string) error {
	read, file, err := d.openList(path, "resolve")
	if err != nil {
		return err
	}
	defer file.Close()
	decisions, rows, all, err := decisionsOf(read)
	if err != nil {
		return err
	}
	if len(decisions) == 0 {
		why := "it has no rows"
		if all > 0 {
			why = "lead_id is empty in " + english.Plural(all, "row", "")
		}
		return exit.Usage(read.path+": decides nothing: "+why+"; nothing was settled",
			"write into lead_id the lead's ID, exists, or none where the lead was not made")
	}
	return d.with(false, func(db ledger.Ledger) error {
		r, err := checkpoint.Resolve(ctx, db, decisions)
		if err != nil {
			if why := (*checkpoint.ListError)(nil); errors.As(err, &why) {
				return read.refused(why, &rows[why.Index], "nothing was settled")
			}
			return err
		}
		d.reportResolved(r, decisions, all-len(decisions), db.Info().InDoubt)
		return nil
	})
}

// ResolveNone says of all rows in doubt that they were not made, which a person confirms.
func (d *Desk) ResolveNone(ctx context.Context) error {
	if !d.Person.CanAnswer() {
		return exit.Usage("--none-created has all rows in doubt sent again, which a person has to confirm; nothing was settled",
			"run it in a terminal, or add --yes")
	}
	return d.with(false, func(db ledger.Ledger) error {
		decisions, err := noneMade(ctx, db)
		if err == nil && len(decisions) == 0 {
			fmt.Fprintln(d.Out, "no row in doubt was sent by a run, so nothing was settled")
			return nil
		}
		if err == nil {
			err = d.Person.Confirm(fmt.Sprintf("This says of %s in doubt that no lead was made: the next import sends them.\nThose that were made after all are made twice, and leads cannot be deleted. Go on?",
				english.Plural(len(decisions), "row", "")), "nothing was settled", "answer y, or add --yes")
		}
		if err != nil {
			return err
		}
		r, err := checkpoint.Resolve(ctx, db, decisions)
		if err == nil {
			d.reportResolved(r, decisions, 0, db.Info().InDoubt)
		}
		return err
	})
}

// noneMade says of each send in doubt, and of no later one of its row, that no lead was made: while a person is asked, runs may go on
// beside.
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

// decisionsOf reads what a person wrote into the column lead_id; rows are those that decide,
// of all.
func decisionsOf(read *list) (decisions []checkpoint.Decision, rows []listed, all int, err error) {
	err = read.each(func(row *listed) error {
		all++
		d := checkpoint.Decision{Key: row.Key, LeadID: row.LeadID, Run: row.sender()}
		d.Sent, _ = time.Parse(time.RFC3339, row.UpdatedAt)
		switch {
		case d.LeadID == "":
			return nil
		case strings.EqualFold(d.LeadID, exists):
			d.LeadID, d.Exists = "", true
		case d.LeadID == notMade:
			d.LeadID = ""
		case meansNothing(d.LeadID):
			return read.fault(row, "its lead_id is "+d.LeadID+", which decides nothing; nothing was settled",
				"where no lead was made write none, in small letters; leave the cell empty where nobody has looked")
		}
		if id := d.LeadID; id != "" && (id == row.ExternalID || id == rowkey.Own(row.Key)) {
			return read.fault(row, "its lead_id is the row's own key or ExternalID, which the service has never given a lead; nothing was settled",
				"write the lead ID that the console shows, the word exists, or none where the lead was not made")
		}
		decisions, rows = append(decisions, d), append(rows, *row)
		return read.plausible(row, d.LeadID)
	})
	return decisions, rows, all, err
}

// meansNothing reports whether a word is what programs write for an empty value, or a translator for none. Only the word none
// itself has a row sent again.
func meansNothing(word string) bool {
	return slices.ContainsFunc([]string{notMade, "null", "nan", "nil", "na", "n/a", "#n/a", "nul", "undefined", "false", "no", "-", "keine", "kein", "aucun", "aucune", "ninguno", "nessuno", "geen"},
		func(other string) bool { return strings.EqualFold(word, other) })
}

// sender is the run that the list names. Spreadsheet programs take some for numbers; what
// they leave of these says nothing.
func (row *listed) sender() string {
	if isRun(row.RunID) {
		return row.RunID
	}
	return ""
}

// isRun reports whether a word is the ID of a run.
func isRun(word string) bool { return len(word) == 8 && strings.Trim(word, "0123456789abcdef") == "" }

// reportResolved tells apart what was decided, and what was not.
func (d *Desk) reportResolved(r checkpoint.ResolveResult, decisions []checkpoint.Decision, undecided, doubts int) {
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
	d.tellCounts([]counted{
		{r.Corrected, "of these had been decided otherwise: corrected, and the history keeps both"},
		{r.Before, "of these had been decided so before"},
		{undecided, "without a decision, passed over: an empty lead_id decides nothing"},
	}, strconv.Itoa)
	if found+not > 0 {
		fmt.Fprintln(d.Out, "run the import again to send what may be sent and to link what was found")
	}
}

// Forget removes what is known of keys, but for a hash that keeps their leads from being
// made again; unblock removes that, too. An argument - is standard input. imitation removes leads of the sandbox beside its
// checkpoint.
func (d *Desk) Forget(ctx context.Context, args []string, unblock bool, imitation func(checkpointPath string, leadIDs []string) (leads int, err error)) error {
	keys, err := d.keys(args)
	if err != nil {
		return err
	}
	var alike []checkpoint.Likeness
	var r checkpoint.ForgetResult
	inSandbox, sandboxed, kept := 0, false, false
	err = d.with(false, func(db ledger.Ledger) (err error) {
		if !d.Hold() { // half of it would leave a copy of the file
			return exit.ErrInterrupted
		}
		found, similar, err := lookUp(ctx, db, keys...) // first: nothing of them is known afterwards
		_, kept = db.(*postgres.Store)
		if alike, sandboxed = similar, db.Info().Target == connection.SandboxTarget; err == nil && sandboxed {
			var ids []string
			for i := range found {
				ids = append(ids, found[i].LeadID)
			}
			inSandbox, err = imitation(db.Info().Path, ids)
		}
		if err == nil {
			r, err = checkpoint.Forget(ctx, db, keys, unblock)
		}
		if why := (*checkpoint.ListError)(nil); errors.As(err, &why) {
			return exit.Usage(fmt.Sprintf("key %d: %s; nothing was forgotten", why.Index+1, why.Text), why.Hint)
		}
		return err
	})
	if err != nil {
		return err
	}
	d.reportForgotten(&r, inSandbox, sandboxed, unblock)
	if kept {
		fmt.Fprintln(d.Out, "the server's log of changes (WAL), its standbys and its backups keep what they have until they are recycled: ask whoever runs it how long")
	}
	for i, l := range alike {
		if l.File != "" {
			fmt.Fprintf(d.Out, "%s is not known, but looks like the key of %s:%d, of which nothing was removed: forget that one by its own key\n", report.Escape(keys[i]), report.Escape(l.File), l.Line)
		}
	}
	return nil
}

func (d *Desk) reportForgotten(r *checkpoint.ForgetResult, inSandbox int, sandboxed, unblock bool) {
	then := "not sent again"
	if unblock {
		then = "may be sent again"
	}
	fmt.Fprintf(d.Out, "%s forgotten, %s: %d with a lead, %d refused, %d in doubt, %d not known, %d forgotten before\n",
		english.Plural(r.Leads+r.Rejected+r.InDoubt+r.Unknown+r.Already, "key", ""), then, r.Leads, r.Rejected, r.InDoubt, r.Unknown, r.Already)
	if inSandbox > 0 {
		fmt.Fprintf(d.Out, "%s removed from the sandbox's own data\n", english.Plural(inSandbox, "lead", ""))
	}
	switch {
	case r.InDoubt > 0 && sandboxed:
		fmt.Fprintln(d.Out, "of those in doubt a lead may stand in the sandbox's own data: a run with --sandbox --sandbox-reset empties them")
	case r.InDoubt > 0:
		fmt.Fprintln(d.Out, "of those in doubt a lead may exist on the service: look in the console, nobody will be reminded of them")
	}
	if r.Already > 0 && unblock {
		fmt.Fprintf(d.Out, "what was forgotten before may have a lead on the service still, and the next import makes another: look in the console first, and forget the key again to block it\n")
	}
	if n := r.Leads - inSandbox; n > 0 && unblock {
		fmt.Fprintf(d.Out, "the service has %s of these rows still, and the next import makes another: delete it in the console first\n", english.Plural(n, "lead", ""))
	}
	if r.Unknown > 0 && !unblock {
		fmt.Fprintln(d.Out, "keys that are not known are blocked all the same: check that they are spelt as `leadferry checkpoint export` lists keys, and give --namespace where keys have one")
	}
}

// keys are the arguments; - is standard input, one a line.
func (d *Desk) keys(args []string) (keys []string, err error) {
	if len(args) == 0 {
		return nil, exit.Usage("no key given", "see leadferry checkpoint forget --help")
	}
	for _, a := range args {
		if rowkey.Trim(a) == "" {
			return nil, exit.Usage("a key is empty", "is a variable not set?")
		}
		if a != "-" {
			keys = append(keys, rowkey.Effective(d.Namespace, rowkey.Trim(a)))
			continue
		}
		lines := bufio.NewScanner(d.In)
		for lines.Scan() {
			if key := rowkey.Trim(lines.Text()); key != "" { // rows have their keys so
				keys = append(keys, rowkey.Effective(d.Namespace, key))
			}
		}
		if err := lines.Err(); err != nil {
			return nil, exit.Usage(fmt.Sprintf("standard input cannot be read: %v", err), "one key a line")
		}
	}
	return keys, nil
}
