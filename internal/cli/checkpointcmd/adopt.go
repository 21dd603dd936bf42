package checkpointcmd

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/shell"
)

// adopt takes over the leads of files, as a whole or not at all, into the checkpoint that is meant or a new one. It is
// marked before the files are read: runs are refused until all of them were taken over.
func (d *Command) adopt() error {
	if d.C.NArg() == 0 {
		return exit.Usage("adopt takes a file",
			"CSV with the columns key and lead_id, such as the results.csv of a run")
	}
	paths, err := inputs.Spread(d.C.Args().Slice())
	if err != nil {
		return err
	}
	read, err := d.openLists(paths, "adopt")
	defer read.close()
	if err != nil {
		return err
	}
	return d.with(ledger.How{Makes: true}, func(db ledger.Ledger) error {
		if db.Info().New {
			fmt.Fprintf(d.Say, "checkpoint: %s (new: no lead is known yet)\n", db.Info().Path)
		}
		d.Warn(db.Info().Warnings...)
		return d.takeOver(db, read, paths)
	})
}

// openLists opens files, and makes their paths whole: the hint that says how to finish may be pasted elsewhere.
func (d *Command) openLists(paths []string, command string) (*lists, error) {
	read := new(lists)
	for i, path := range paths {
		l, err := d.openList(path, command)
		if err != nil {
			return read, err
		}
		read.all = append(read.all, l)
		if whole, err := filepath.Abs(path); err == nil && path != "-" {
			paths[i] = whole
		}
	}
	return read, nil
}

func (ls *lists) close() {
	for _, l := range ls.all {
		l.file.Close()
	}
}

func (d *Command) takeOver(db ledger.Ledger, read *lists, paths []string) error {
	lacked := db.Info().Incomplete
	var from []string
	for _, l := range read.all {
		from = append(from, l.witness().Ledger)
	}
	result, err := checkpoint.AdoptList(d.C.Context, db, d.Witnesses(), checkpoint.Leads{
		Files: paths, From: from, Choose: func() error { return read.chooseFor(db.Info().Target) },
		Entries: read.entries, Missing: read.missing,
	})
	if why, is := errors.AsType[*checkpoint.ListError](err); is {
		return read.refused(why)
	}
	if err != nil {
		return err
	}
	i := db.Info()
	d.reportAdopted(result, read.passed(), i.Path)
	if i.Incomplete && !lacked {
		d.Warn("the checkpoint is incomplete: it lacks " + i.Missing +
			". The next import holds the rows that it does not know in doubt, it does not send them")
	}
	return nil
}

func (d *Command) reportAdopted(r checkpoint.AdoptResult, passed int, path string) {
	fmt.Fprintf(d.Out, "%s taken over, %d known already\n", english.Plural(r.Leads, "lead", ""), r.Known)
	at := " --checkpoint " + shell.Path(path)
	for _, one := range []struct {
		n    int
		text string
	}{
		{r.Unspecified, "with a status that the service's specification does not name, which is kept as it is"},
		{r.InDoubt, "in doubt taken over as in doubt: leadferry checkpoint export --state in_doubt" + at + " lists them"},
		{r.Rejected, "left out that the service refused (state rejected): they have no lead, and the next import " +
			"sends them again"},
		{passed, "skipped: no lead ID, or a duplicate row"},
		{r.Forgotten, "left out whose key was forgotten: they are not made again unless leadferry checkpoint forget " +
			"--unblock KEY" + at + " frees one, and it is adopted before the next import"},
	} {
		d.tellIf(one.n > 0, "%s %s", countRows(one.n), one.text)
	}
}

// lists are the files of one adoption, read one after another as if they were one. They are read several times, since
// there may be more leads than the memory holds.
type lists struct {
	all  []*list
	list *list   // that is being read
	row  *listed // that was read last

	leavesOut func(*checkpoint.Entry) bool // which entries are passed over; nil: none
}

// witness is what the run folder of results says of their run.
func (l *list) witness() (w checkpoint.Witness) {
	if l.results && l.path != "-" {
		w = ledger.WitnessIn(filepath.Dir(l.path))
	}
	return w
}

// entries are what is to be taken over; an error is the last.
func (ls *lists) entries(yield func(checkpoint.Entry, error) bool) {
	for _, l := range ls.all {
		ls.list, l.taken = l, 0
		for row, err := range l.each {
			if ls.row = row; err == nil && l.results {
				row.State, _, err = l.stateOf(row)
				if err == nil && (row.number > len(l.best) || !l.best[row.number-1]) {
					continue
				}
			}
			var e checkpoint.Entry
			if err == nil {
				e, err = l.entryOf(row)
			}
			if err == nil && ls.leavesOut != nil && ls.leavesOut(&e) {
				continue
			}
			l.taken++
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// refused is the refusal of all for one of the entries.
func (ls *lists) refused(why *checkpoint.ListError) error {
	at := 0
	for _, err := range ls.entries {
		if err != nil {
			return err
		}
		if at == why.Index {
			return ls.list.refused(why, ls.row, "nothing was taken over")
		}
		at++
	}
	return why
}

// passed is how many rows are not taken over.
func (ls *lists) passed() (n int) {
	for _, l := range ls.all {
		n += l.rows - l.taken
	}
	return n
}

// missing is what an export says that its checkpoint lacked: "" where that was complete.
func (ls *lists) missing() (lacks string) {
	for _, l := range ls.all {
		lacks = cmp.Or(lacks, l.lacks)
	}
	return lacks
}

// chooseFor is choose, for leads of a target. It refuses results whose run had another target: leads that this one
// lacks would count as made. An export says nothing of its target, and is how leads move with a service that changes
// its address.
func (ls *lists) chooseFor(target checkpoint.Target) error {
	if err := ls.chooseRows(); err != nil {
		return err
	}
	for _, l := range ls.all {
		if w := l.witness(); w.Ledger != "" && w.Target.Canonical() != target.Canonical() {
			return exit.Usage(fmt.Sprintf("%s: is of a run to another target, trunk %s at %s; nothing was taken over",
				l.path, cmp.Or(w.Target.TrunkID, "unknown"), w.Target.LeadsURL),
				"adopt it with the flags of that target; if the service moved, adopt what `leadferry checkpoint "+
					"export` writes of "+w.Place)
		}
	}
	return nil
}

// bestRow is the row of results that says most about a key so far.
type bestRow struct {
	lead   string
	list   uint32 // which of the lists
	number uint32 // of the row in it
	tells  uint8  // how much it says
}

// chooseRows chooses from the results of runs the row that says most about each key; of equal rows, the last. A key
// with two leads is refused.
func (ls *lists) chooseRows() error {
	best := map[string]bestRow{}
	for i, l := range ls.all {
		for row, err := range l.each {
			if err == nil && !l.results {
				break
			}
			this := bestRow{list: uint32(i)}
			if err == nil {
				row.State, this.tells, err = l.stateOf(row)
			}
			if err != nil {
				return err
			}
			if row.State == "" || row.Key == "" {
				continue
			}
			this.lead, this.number = strings.Clone(row.LeadID), uint32(row.number)
			b, again := best[row.Key]
			if again && this.lead != b.lead && this.lead != "" && b.lead != "" {
				where := fmt.Sprintf("row %d of %s", b.number, ls.all[b.list].path)
				return l.fault(row, "its key has another lead ID in "+where+"; nothing was taken over",
					"take out the row that is wrong")
			}
			if !again || this.tells >= b.tells {
				best[strings.Clone(row.Key)] = this // not the rest of its line
			}
		}
		if !l.results && len(ls.all) > 1 {
			return exit.Usage(l.path+": several files are taken over at once only where each is the results.csv "+
				"of a run", "adopt them one after another")
		}
		l.best = make([]bool, l.rows)
	}
	for _, b := range best {
		ls.all[b.list].best[b.number-1] = true
	}
	return nil
}

// stateOf is the state that a row of a run's results has in a checkpoint, or "" where it has no lead, and how much it
// tells of it, in this order: that there is one, that there may be this one, that there is this one, whether it is
// linked, too.
func (l *list) stateOf(row *listed) (state string, tells uint8, err error) {
	is := func(outcomes ...importer.Outcome) bool {
		return slices.ContainsFunc(outcomes, func(o importer.Outcome) bool { return o.String() == row.Outcome })
	}
	switch hasID := row.LeadID != ""; {
	case !importer.IsOutcome(row.Outcome):
		return "", 0, l.fault(row, "its outcome is none; nothing was taken over", "")
	case is(importer.InDoubt):
		return checkpoint.InDoubt.String(), 1, nil
	case hasID && is(importer.Pending, importer.Skipped):
		return checkpoint.Created.String(), 2, nil
	case hasID && is(importer.Partial):
		return checkpoint.Partial.String(), 3, nil
	case hasID:
		return checkpoint.Created.String(), 3, nil
	case is(importer.Created, importer.Unchanged, importer.Changed, importer.Partial):
		return checkpoint.Created.String(), 0, nil
	}
	return "", 0, nil
}

// entryOf is a row of a list as the checkpoint takes it; the reverse of exportLine.
func (l *list) entryOf(row *listed) (e checkpoint.Entry, err error) {
	if err := l.plausible(row); err != nil {
		return e, err
	}
	line, _ := strconv.Atoi(row.Line.String()) // people may have edited it
	e = checkpoint.Entry{
		Key: row.Key, LeadID: row.LeadID, Organization: row.OrganizationID, Location: row.Location, Status: row.Status,
		File: row.File, Line: line,
	}
	var known bool
	if e.State, known = stateNamed(row.State); !known {
		return e, l.fault(row, "its state is none: an export has created, partial, rejected or in_doubt; nothing was "+
			"taken over", "")
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
	if l.results && e.State == checkpoint.InDoubt && e.LeadID != "" {
		e.Run, e.Reason = l.witness().Run, checkpoint.ReasonUnkept
	}
	return e, nil
}
