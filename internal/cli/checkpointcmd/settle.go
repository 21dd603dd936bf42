package checkpointcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
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
	"leadferry/internal/shell"
	"leadferry/leadapi/sandbox"
)

// resolve settles rows in doubt. It carries out all decisions of a file or none; --none-created decides about all rows.
func (d *Command) resolve() error {
	switch none := d.C.Bool("none-created"); {
	case d.C.NArg() > 1 || none == d.C.Args().Present():
		return exit.Usage("resolve takes one file, or --none-created",
			"leadferry checkpoint export --state in_doubt -o doubt.csv makes it")
	case none && !d.Person.CanAnswer():
		return exit.Usage("with --none-created, all rows in doubt are sent again: a person has to confirm; nothing "+
			"was settled", "run it in a terminal, or add --yes")
	case none:
		return d.with(ledger.How{}, d.resolveNone)
	}
	read, err := d.openList(d.C.Args().First(), "resolve")
	if err != nil {
		return err
	}
	defer read.file.Close()
	decisions, spots, all, err := decisionsOf(read)
	if err != nil {
		return err
	}
	if len(decisions) == 0 {
		why, column := "it has no rows", "lead_id"
		if read.rejects {
			why, column = "it has no rows in doubt", "leadferry_lead_id"
		}
		if all > 0 {
			why = column + " is empty in " + countRows(all)
		}
		return exit.Usage(read.path+": decides nothing: "+why+"; nothing was settled",
			"write into "+column+" the lead's ID, exists, or none where the lead was not made")
	}
	return d.with(ledger.How{}, func(db ledger.Ledger) error {
		err := d.settle(db, decisions)
		if why, is := errors.AsType[*checkpoint.ListError](err); is {
			return spots[why.Index].refused(why, "nothing was settled")
		}
		if err == nil {
			undecided := all - len(decisions)
			d.printIf(undecided > 0, "%d without a decision, skipped: an empty lead_id decides nothing", undecided)
			d.printIf(read.ignored > 0, "%d not in doubt, skipped: their leadferry_lead_id was not used", read.ignored)
		}
		return err
	})
}

// resolveNone settles all rows in doubt as not made, after a person confirms.
func (d *Command) resolveNone(db ledger.Ledger) error {
	decisions, err := noneMade(d.C.Context, db)
	if err != nil {
		return err
	}
	if len(decisions) == 0 {
		fmt.Fprintln(d.Out, "no row in doubt was sent by a run, so nothing was settled")
		return nil
	}
	question := fmt.Sprintf("This says of %s in doubt that no lead was made: the next import sends them.\nThose that "+
		"were made after all are made twice, and leads cannot be deleted. Go on?", countRows(len(decisions)))
	if err = d.Person.Confirm(question, "nothing was settled", "answer y, or add --yes"); err != nil {
		return err
	}
	err = d.settle(db, decisions)
	if why, is := errors.AsType[*checkpoint.ListError](err); is {
		return exit.Usage("key "+rowkey.Own(why.Key)+": "+why.Text+"; nothing was settled", why.Hint)
	}
	return err
}

// noneMade returns for each send in doubt the decision that no lead was made. It does not cover a later send of the
// row: other runs may go on while a person is asked.
func noneMade(ctx context.Context, db ledger.Ledger) (decisions []checkpoint.Decision, err error) {
	err = checkpoint.Each(ctx, db, checkpoint.Filter{State: checkpoint.InDoubt}, func(e checkpoint.Entry) error {
		if e.Reason != checkpoint.ReasonIncomplete { // it was not sent, but may have a lead that is missing here
			decisions = append(decisions, checkpoint.Decision{Key: e.Key, Sent: e.Updated, Run: e.Run})
		}
		return nil
	})
	return decisions, err
}

// The words that decide instead of a lead ID.
const exists, notMade = "exists", "none"

// decisionsOf reads what a person wrote into lead_id. spots are the places of the decisions; all counts the keys.
func decisionsOf(read *list) (decisions []checkpoint.Decision, spots []spot, all int, err error) {
	given, keys := map[string]checkpoint.Decision{}, map[string]bool{} // each row of a key is listed in rejects
	for row, err := range read.each {
		if err != nil {
			return nil, nil, 0, err
		}
		keys[row.Key] = true
		d := checkpoint.Decision{Key: row.Key, LeadID: row.LeadID, Run: row.RunID}
		if len(d.Run) != 8 || strings.Trim(d.Run, "0123456789abcdef") != "" { // a spreadsheet changed it to a number
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
			return nil, nil, 0, row.fault("its lead_id is the row's own key or ExternalID, which the service has "+
				"never given a lead; nothing was settled",
				"write the lead ID that the console shows, the word exists, or none where the lead was not made")
		default:
			if err := row.checkLeadID(); err != nil {
				return nil, nil, 0, err
			}
		}
		if given[d.Key] == d {
			continue
		}
		given[d.Key] = d
		decisions, spots = append(decisions, d), append(spots, row.spot)
	}
	return decisions, spots, len(keys), nil
}

// settle carries out decisions and prints how many there were of each kind.
func (d *Command) settle(db ledger.Ledger, decisions []checkpoint.Decision) error {
	r, err := checkpoint.Resolve(d.C.Context, db, decisions)
	if err != nil {
		return err
	}
	found, exist := 0, 0
	for _, d := range decisions {
		if d.LeadID != "" {
			found++
		} else if d.Exists {
			exist++
		}
	}
	not := len(decisions) - found - exist
	fmt.Fprintf(d.Out, "%s settled: %d %s a lead ID, %d %s without a known ID, %d %s never made; %d still in doubt\n",
		countRows(len(decisions)), found, english.PluralWord(found, "has", "have"),
		exist, english.PluralWord(exist, "exists", "exist"), not, english.PluralWord(not, "was", "were"),
		db.Info().InDoubt)
	d.printIf(r.Corrected > 0, "%d of these had been decided otherwise: corrected, and the history keeps both",
		r.Corrected)
	d.printIf(r.Before > 0, "%d of these had been decided so before", r.Before)
	d.printIf(found+not > 0,
		"import the rejects file or the whole file again: either sends what may be sent and links what was found")
	return nil
}

// forget removes all that is known of keys, except a hash that stops their leads from being made again; --unblock
// removes the hash, too. It prints the lead IDs first, or forgets nothing. The sandbox forgets the leads as well.
func (d *Command) forget() error {
	ctx, unblock := d.C.Context, d.C.Bool("unblock")
	keys, err := d.keys(d.C.Args().Slice())
	if err != nil {
		return err
	}
	var (
		leads, names    []string // names: ExternalIDs, which other files may have as keys
		r               checkpoint.ForgetResult
		inSandbox       int
		sandboxed, kept bool
	)
	err = d.with(ledger.How{}, func(db ledger.Ledger) error {
		if !d.Hold() { // stopping halfway would leave a copy of the file
			return exit.ErrInterrupted
		}
		found, err := lookUp(ctx, db, keys...)
		for i := range found {
			if found[i].LeadID != "" {
				leads = append(leads, found[i].LeadID)
			}
			if id := cmp.Or(found[i].ExternalID, found[i].WantLink); id != "" && !slices.Contains(keys, id) && !unblock {
				if others, _ := lookUp(ctx, db, id); others[0].State == checkpoint.Unknown { // nobody else's key
					names = append(names, shell.Word(id))
				}
			}
		}
		_, kept = db.(*postgres.Store)
		switch sandboxed = db.Info().Target == connection.SandboxTarget; {
		case err != nil || len(leads) == 0:
		case sandboxed:
			inSandbox, err = sandbox.Forget(ledger.SandboxData(db.Info().Path), leads)
		default:
			_, err = fmt.Fprintln(d.Out, "lead IDs, for the person who can remove the leads at the vendor:",
				strings.Join(leads, " ")) // of letters, digits and -_. alone, and not cut
		}
		if err == nil {
			r, err = checkpoint.Forget(ctx, db, keys, unblock)
		}
		if why, is := errors.AsType[*checkpoint.ListError](err); is {
			return exit.Usage(fmt.Sprintf("key %d: %s; nothing was forgotten", why.Index+1, why.Text), why.Hint)
		}
		return err
	})
	if err != nil {
		return err
	}
	made, unknown := r[checkpoint.Created]+r[checkpoint.Partial], r[checkpoint.Unknown]+r[checkpoint.NotMade]
	refused, doubts, already := r[checkpoint.Rejected], r[checkpoint.InDoubt], r[checkpoint.Forgotten]
	then := map[bool]string{false: "not sent again", true: "may be sent again"}[unblock]
	d.printf("%s forgotten, %s: %d with a lead, %d refused, %d in doubt, %d not known, %d forgotten before\n",
		english.Plural(made+refused+doubts+unknown+already, "key", ""), then, made, refused, doubts, unknown, already)
	d.printIf(inSandbox > 0, "%s removed from the sandbox's own data", english.Plural(inSandbox, "lead", ""))
	d.printIf(doubts > 0, "rows in doubt may have a lead on the service: look in the console; leadferry will not "+
		"remind you"+map[bool]string{true: " (--sandbox-reset empties that of the sandbox)"}[sandboxed])
	still := made + already - inSandbox
	d.printIf(still > 0 && unblock, "the service may have %s of these rows still, and the next import makes another: "+
		"have it removed at the vendor first", english.Plural(still, "lead", ""))
	d.printIf(unknown > 0 && !unblock, "keys that are not known are blocked, too: check that they are spelt as "+
		"`leadferry checkpoint export` lists keys, and give --namespace where keys have one")
	if path, err := d.Path(); err == nil && len(names) > 0 {
		fmt.Fprintln(d.Out, "files that have its ExternalID as key make it again, unless you forget that, too:\n  "+
			"leadferry checkpoint forget "+strings.Join(names, " ")+" --checkpoint "+shell.Path(path))
	}
	d.reportTraces(keys)
	d.printIf(kept, "the server's log of changes (WAL), its standbys and its backups keep what they have until they "+
		"are recycled: ask its administrator how long")
	return nil
}

// reportTraces names the files of runs that still hold the rows, and how to remove them. Witnesses hold no cells.
func (d *Command) reportTraces(keys []string) {
	wanted := func(namespace, key string) bool { return slices.Contains(keys, rowkey.Effective(namespace, key)) }
	paths, _ := filepath.Glob(filepath.Join(report.RunsFolder, "*", "*"))
	held := slices.DeleteFunc(paths, func(path string) bool {
		kind := report.RunFile(filepath.Base(path))
		return !slices.Contains([]string{"results", "reconciliation", "rejects"}, kind) || !report.Holds(path, wanted)
	})
	d.printIf(len(held) > 0, "%s of runs here still %s these rows, and those of others. To remove:",
		english.Plural(len(held), "file", ""), english.PluralWord(len(held), "holds", "hold"))
	remove := map[bool]string{false: "rm", true: "del"}[runtime.GOOS == "windows"]
	for _, path := range held {
		fmt.Fprintf(d.Out, "  %s %s\n", remove, shell.Path(path))
	}
}

// keys returns the keys that the arguments name, in the form of rows' keys.
func (d *Command) keys(args []string) (keys []string, err error) {
	if len(args) == 0 {
		return nil, exit.Usage("no key given", "see leadferry checkpoint forget --help")
	}
	for _, a := range args {
		key := rowkey.Trim(a)
		if key == "" || a == "-" {
			return nil, exit.Usage("a key is missing", "is a variable not set? Keys are arguments (xargs makes them)")
		}
		keys = append(keys, rowkey.Effective(d.C.String("namespace"), key))
	}
	return keys, nil
}
