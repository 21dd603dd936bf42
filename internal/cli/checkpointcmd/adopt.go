package checkpointcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/shell"
	"leadferry/mapping"
)

// adopt takes over all leads of files, or none, into the selected checkpoint or a new one. It marks the checkpoint
// before it reads the files: runs are refused until all leads are taken over.
func (d *Command) adopt() error {
	if d.C.NArg() == 0 {
		return exit.Usage("adopt takes a file",
			"CSV with the columns key and lead_id, such as the results.csv of a run")
	}
	read, err := d.openLists(d.C.Args().Slice(), "adopt")
	defer read.close()
	if err != nil {
		return err
	}
	return d.with(ledger.How{Makes: true}, func(db ledger.Ledger) error {
		if db.Info().New {
			d.Say("checkpoint: " + db.Info().Path + " (new: no lead is known yet)")
		}
		d.Warn(db.Info().Warnings...)
		return d.takeOver(db, read, false)
	})
}

// lists are the files of one adoption, read one after another like a single file. They are read several times, because
// there may be more leads than fit into memory.
type lists struct {
	all   []*list
	spots []spot // of the rows that can be taken over, in the last reading
}

// openLists opens the files that args name, also by patterns. The caller closes the lists, even after an error.
func (d *Command) openLists(args []string, command string) (ls lists, err error) {
	paths, err := inputs.Spread(args)
	if err != nil {
		return ls, err
	}
	for _, path := range paths {
		l, err := d.openList(path, command)
		if err != nil {
			return ls, err
		}
		ls.all = append(ls.all, l)
	}
	return ls, nil
}

func (ls *lists) close() {
	for _, l := range ls.all {
		l.file.Close()
	}
}

// takeOver adopts lists into a checkpoint. It skips results of runs to another target, which may be in the same
// folders: their leads do not exist here. An export names no target: that is how leads move with a service that changes
// its address. lenient also skips results of another checkpoint, and leads that the checkpoint knows in another way.
func (d *Command) takeOver(db ledger.Ledger, from lists, lenient bool) error {
	before := db.Info()
	lineage, err := checkpoint.LineageOf(d.C.Context, db)
	if err != nil {
		return err
	}
	var ls lists
	elsewhere := ""
	leads := checkpoint.Leads{Lenient: lenient}
	if d.C.String("namespace") != "" { // a hint may have to repeat it
		leads.Words = []string{"--namespace=" + d.C.String("namespace")}
	}
	for _, l := range from.all {
		w := l.witness()
		is := func(a checkpoint.Ancestor) bool { return a.ID == w.Ledger }
		strange := len(lineage.Ancestors) > 0 && !slices.ContainsFunc(lineage.Ancestors, is)
		other := w.Target.Canonical() != before.Target.Canonical()
		if w.Ledger != "" && (other || lenient && strange) {
			d.printf("skipped %s: its run had another target or checkpoint\n", l.path)
			elsewhere = w.Place
			continue
		}
		ls.all, leads.Words, leads.ByHand = append(ls.all, l), append(leads.Words, l.whole), leads.ByHand || l.byHand
		if l.results {
			leads.From = append(leads.From, w)
		}
	}
	if len(ls.all) == 0 && !lenient {
		return exit.Usage("all of these results are of runs to another target; nothing was taken over", "adopt it with the flags of "+
			"that target; if the service moved, adopt what `leadferry checkpoint export` writes of "+elsewhere)
	}
	leads.Entries, leads.Missing = ls.entries, ls.missing
	result, err := checkpoint.AdoptList(d.C.Context, db, d.Witnesses(), leads)
	if why, is := errors.AsType[*checkpoint.ListError](err); is {
		return ls.spots[why.Index].refused(why, "nothing was taken over")
	}
	if err != nil {
		return err
	}
	i := db.Info()
	d.reportAdopted(result, ls.skipped(&result), strings.TrimSuffix(i.Path, ".repairing"))
	d.printIf(slices.ContainsFunc(ls.all, func(l *list) bool { return l.nameless }), "The list has no namespace: imports "+
		"by a mapping that names one do not find these leads. Adopt them with --namespace before such an import")
	if i.Incomplete && !before.Incomplete {
		d.Warn(i.Warnings[len(i.Warnings)-1])
	}
	return nil
}

func (d *Command) reportAdopted(r checkpoint.AdoptResult, skipped int, path string) {
	fmt.Fprintf(d.Out, "%s taken over, %d known already\n", english.Plural(r.Leads, "lead", ""), r.Known)
	at := " --checkpoint " + shell.Path(path)
	rows := func(n int, text string) { d.printIf(n > 0, "%s %s", countRows(n), text) }
	rows(r.InDoubt, "in doubt taken over as in doubt: leadferry checkpoint export --state in_doubt"+at+" lists them")
	rows(r.Rejected, "left out that the service refused (state rejected): they have no lead")
	rows(skipped, "skipped: no lead ID, or a duplicate row")
	rows(r.Forgotten, "left out whose key was forgotten: they are not made again unless leadferry checkpoint forget "+
		"--unblock KEY"+at+" (and --namespace, if it has one) frees one, and it is adopted before the next import")
}

// witness returns what the run folder says about the run of these results; nothing for other lists.
func (l *list) witness() (w checkpoint.Witness) {
	switch {
	case l.results && l.path == "-":
		w = checkpoint.Witness{Source: "the run of these results", Err: fs.ErrNotExist}
	case l.results:
		w = checkpoint.WitnessIn(filepath.Dir(l.path))
	}
	return w
}

// entries yields the rows that can be taken over as checkpoint entries; it stops after an error.
func (ls *lists) entries(yield func(checkpoint.Entry, error) bool) {
	ls.spots = ls.spots[:0]
	for _, l := range ls.all {
		for row, err := range l.each {
			var e checkpoint.Entry
			has := true
			if err == nil {
				e, has, err = row.entry()
			}
			if has && err == nil {
				ls.spots = append(ls.spots, row.spot)
			}
			if has && !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// skipped returns how many rows are in no other count: they have no lead ID, or repeat another row.
func (ls *lists) skipped(r *checkpoint.AdoptResult) (n int) {
	for _, l := range ls.all {
		n += l.rows
	}
	return n - r.Leads - r.InDoubt - r.Known - r.Rejected - r.Forgotten
}

// missing returns what an export says that its checkpoint lacked: "" if it was complete.
func (ls *lists) missing() (lacks string) {
	for _, l := range ls.all {
		lacks = cmp.Or(lacks, l.lacks)
	}
	return lacks
}

// stateOf returns the state that a row has in a checkpoint. has is false for a row of results without a lead. The state
// is Unknown if the run did not process the row: it does not show whether its lead is linked.
func (row *listed) stateOf() (state checkpoint.State, has bool, err error) {
	if !row.list.results {
		if state, has = stateNamed(row.State); !has {
			err = row.fault("its state is unknown: an export has created, partial, rejected or in_doubt; nothing was "+
				"taken over", "")
		}
		return state, true, err
	}
	o, known := report.OutcomeNamed(row.Outcome)
	switch hasID := row.LeadID != ""; {
	case !known:
		return state, true, row.fault("its outcome is unknown; nothing was taken over", "")
	case row.Key == "":
		return state, false, nil
	case o == report.InDoubt:
		return checkpoint.InDoubt, true, nil
	case hasID && (o == report.Pending || o == report.Skipped):
		return checkpoint.Unknown, true, nil
	case hasID && o == report.Partial:
		return checkpoint.Partial, true, nil
	default:
		made := []report.Outcome{report.Created, report.Unchanged, report.Changed, report.Partial}
		return checkpoint.Created, hasID || slices.Contains(made, o), nil
	}
}

// entry returns a row as a checkpoint entry, the reverse of exportLine. For has, see stateOf.
func (row *listed) entry() (e checkpoint.Entry, has bool, err error) {
	state, has, err := row.stateOf()
	if err == nil && has {
		err = row.checkLeadID()
	}
	if err != nil || !has {
		return e, has, err
	}
	line, _ := strconv.Atoi(row.Line.String()) // people may have edited it
	status, _ := mapping.StatusKey(row.Status) // the console shows labels
	e = checkpoint.Entry{
		Key: row.Key, State: state, LeadID: row.LeadID, Organization: row.OrganizationID, Location: row.Location,
		Status: cmp.Or(status, row.Status), File: row.File, Line: line,
	}
	if locator, ok := strings.CutPrefix(e.Organization, importer.ForLocator); ok {
		e.Organization, e.Locator = "", locator
	}
	switch {
	case e.State == checkpoint.InDoubt:
		e.WantLink, e.Run = row.ExternalID, row.RunID
		e.Updated, _ = time.Parse(time.RFC3339, row.UpdatedAt) // if that fails, the time of adoption counts
		held := checkpoint.Entry{State: checkpoint.InDoubt, Reason: checkpoint.ReasonIncomplete}
		if row.Error == importer.Explain(&held) { // held, not sent: --none-created must not free it
			e.Reason = held.Reason
		}
	case e.State == checkpoint.Partial, e.LeadID == "": // a lead without an ID cannot have been linked
		e.WantLink = row.ExternalID
	default:
		e.ExternalID = row.ExternalID
	}
	switch {
	case !row.list.results:
	case e.State == checkpoint.InDoubt && e.LeadID != "":
		e.Run, e.Reason = row.list.witness().Run, checkpoint.ReasonUnkept
	case !row.ownKey():
		e.Reason = checkpoint.FoundLead
	}
	return e, true, nil
}

// ownKey reports whether a row of results has its lead under its own key. A sync also finds leads by other names.
func (row *listed) ownKey() bool {
	switch row.Outcome {
	case report.Created.String(), report.Partial.String(), report.InDoubt.String(), report.Changed.String():
		return true
	}
	w := row.list.witness() // while a run is open, complete results are of an earlier run in the same folder
	return w.Command == "import" && w.Open == row.list.isPartial()
}
