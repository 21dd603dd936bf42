package checkpointcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
)

// Checks say what a check is to change besides.
type Checks struct {
	Older     string // ID by which a checkpoint is taken that is older than known
	Loss      bool   // what an incomplete one lacks is given up
	MovedHere bool   // a file is used on this machine from now on
}

func (c *Checks) writes() bool { return c.Older != "" || c.Loss || c.MovedHere }

// Check reads the whole checkpoint and says whether it can be relied on.
func (d *Desk) Check(ctx context.Context, todo Checks) (err error) {
	if todo.Older != "" && todo.Loss {
		return exit.Usage("--accept-older and --accept-loss exclude one another", "first take the older copy and look at what is held, then give up what is missing")
	}
	at, err := d.Ledger.Existing()
	if err != nil {
		return err
	}
	at.Options.Check = true
	db, err := at.Open(ledger.How{ReadOnly: !todo.writes(), Accept: todo.Older, Moved: todo.Older != ""})
	if err != nil {
		if errors.Is(err, checkpoint.ErrDamaged) && at.Server == nil {
			d.readable(at.Path)
		}
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	whole := "every page, record, index and count"
	if server, is := db.(*postgres.Store); is { // a file is checked when it is opened
		if err := server.Check(ctx); err != nil {
			return err
		}
		whole = "every row, index and count"
	}
	if !todo.writes() {
		return d.checked(ctx, db, whole, &todo)
	}
	return d.Ledger.Attested(ctx, db, true, func() error { return d.checked(ctx, db, whole, &todo) })
}

// checked tells of a checkpoint that is in order, and changes what is to be changed.
func (d *Desk) checked(ctx context.Context, db ledger.Ledger, whole string, todo *Checks) error {
	ws := d.Ledger.Witnesses()
	if !todo.writes() && ws != nil {
		ws.Looks = true
	}
	if !todo.writes() {
		v, err := checkpoint.Judge(ctx, db, ws, false, nil)
		if err == nil {
			err = v.RefuseOlder()
		}
		if err != nil {
			return err
		}
	}
	s, err := db.Status()
	if err != nil {
		return err
	}
	d.warn(s.Warnings)
	fmt.Fprintf(d.Out, "checkpoint  %s\nin order    %s\n", report.Escape(db.Info().Path), whole)
	d.printCounts(s.Keys)
	if todo.Older != "" {
		if err := d.takeOlder(ctx, db, ws, todo.Older); err != nil {
			return err
		}
	}
	if todo.Loss {
		if err := d.acceptLoss(ctx, db); err != nil {
			return err
		}
		if s, err = db.Status(); err != nil {
			return err
		}
	}
	if todo.MovedHere {
		if err := checkpoint.OnThisMachine(ctx, db, d.Ledger.Machine, true); err != nil {
			return err
		}
		fmt.Fprintln(d.Out, "\naccepted: the checkpoint is used on this machine from now on. Never use the copy on the other machine again.")
	}
	d.followUp(&s)
	return nil
}

// takeOlder takes a checkpoint that is older than known.
func (d *Desk) takeOlder(ctx context.Context, db ledger.Ledger, ws *checkpoint.Witnesses, answer string) error {
	took, err := checkpoint.TakeOlder(ctx, db, ws, answer, db.Moved())
	if err != nil {
		return err
	}
	if server, is := db.(*postgres.Store); is { // which is taken when it is opened, where its server has lost some of it
		took = took || server.Accepted()
	}
	if !took {
		return exit.Usage("--accept-older="+answer+" answers nothing: the checkpoint is not older than known, or the ID is another one", "leadferry checkpoint check shows how it stands")
	}
	fmt.Fprintf(d.Out, "\naccepted: the checkpoint has a new ID and is incomplete: it lacks %s.\nRows that it does not know are held in doubt by the next run, not sent.\n", db.Info().Missing)
	return nil
}

// acceptLoss asks before rows may be sent whose leads may exist.
func (d *Desk) acceptLoss(ctx context.Context, db ledger.Ledger) error {
	if !db.Info().Incomplete {
		fmt.Fprintln(d.Out, "\nnothing to accept: the checkpoint is complete")
		return nil
	}
	const hint = "answer y, or add --yes; leadferry checkpoint resolve settles what is held row by row"
	missing := "the checkpoint is incomplete: it lacks " + db.Info().Missing
	if !d.Person.CanAnswer() {
		return exit.Usage(missing+"; to give that up would make their leads a second time", hint)
	}
	if err := d.Person.Confirm("T"+missing[1:]+".\nTheir rows are made a second time when they come again. Give up what is missing?", "nothing was given up", hint); err != nil {
		return err
	}
	freed, err := checkpoint.AcceptLoss(ctx, db)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\naccepted: what is missing was given up; rows that were held for it and may be sent now: %d\n", freed)
	return nil
}

// readable says what an export of a damaged file would hold.
func (d *Desk) readable(path string) {
	r, err := bolt.Salvage(path, func(checkpoint.Entry) error { return nil })
	if err != nil {
		return // the error that is shown says more
	}
	fmt.Fprintf(d.Out, "checkpoint  %s\ndamaged     what can still be read, and what an export holds:\n", report.Escape(path))
	d.printSalvaged(&r)
	fmt.Fprintln(d.Out, "missing     nobody can tell")
	d.lostBlocks(r.Forgotten)
}

func (d *Desk) printSalvaged(r *bolt.Salvaged) {
	counts := map[checkpoint.State]int{checkpoint.Forgotten: r.Forgotten}
	for s, n := range r.Keys {
		counts[checkpoint.State(s)] += n
	}
	d.printCounts(counts)
}

// lostBlocks warns that an export cannot carry what was forgotten.
func (d *Desk) lostBlocks(n int) {
	if n > 0 {
		d.Warn(english.Plural(n, "key", "") + " forgotten: an export does not name them, so forget them again in the new checkpoint")
	}
}

// Repair brings what can be read of a damaged checkpoint, and what files of results know
// besides, into a new one; dry says what could be.
func (d *Desk) Repair(from, to string, target checkpoint.Target, files []string, dry bool) error {
	db, err := bolt.Open(from, checkpoint.Target{}, bolt.Options{ReadOnly: true, Require: true, Check: true, AnyPlace: ledger.AnyPlace()})
	switch {
	case err == nil:
		return errors.Join(db.Close(), exit.Usage(from+": is in order: there is nothing to repair", "what results know besides, `leadferry checkpoint adopt` takes over"))
	case errors.Is(err, checkpoint.ErrMissing):
		return exit.Usage("no checkpoint at "+from, "name the damaged file first, then the new one")
	case !errors.Is(err, checkpoint.ErrDamaged) && !errors.Is(err, checkpoint.ErrRolledBack):
		return err
	}
	var results []bolt.Results
	for _, path := range files {
		one, err := d.evidence(path)
		if err != nil {
			return err
		}
		results = append(results, one)
	}
	r, err := bolt.Repair(from, to, target, results, dry, bolt.Options{AnyPlace: ledger.AnyPlace(), Witnesses: d.Ledger.Witnesses()})
	if err != nil {
		return err
	}
	d.reportRepaired(from, to, &r, dry)
	return nil
}

// evidence reads results. The summary beside them says which checkpoint their run used.
func (d *Desk) evidence(path string) (bolt.Results, error) {
	one := bolt.Results{Source: path}
	read, file, err := d.openList(path, "repair")
	if err != nil {
		return one, err
	}
	defer file.Close()
	of := lists{{list: read, file: file}}
	if err := of.choose(); err != nil {
		return one, err
	}
	err = of.each(func(e checkpoint.Entry, _ *list, _ *listed) error {
		one.Entries = append(one.Entries, e)
		return nil
	})
	if err != nil {
		return one, err
	}
	w := ledger.WitnessIn(filepath.Dir(path))
	one.ID, one.Target = w.Ledger, w.Target
	return one, nil
}

func (d *Desk) reportRepaired(from, to string, r *bolt.Repaired, dry bool) {
	fmt.Fprintf(d.Out, "damaged     %s\n", report.Escape(from))
	d.printSalvaged(&r.Salvaged)
	d.tellCounts([]counted{
		{r.Found, "beside these, known by the results"},
		{r.Left, "of the results left out: their lead has another key"},
	}, func(n int) string { return english.Plural(n, "lead", "") })
	for _, path := range r.Passed {
		fmt.Fprintf(d.Out, "passed over %s: its run had another target\n", report.Escape(path))
	}
	fmt.Fprintln(d.Out, "incomplete  nobody knows what the damaged one has lost: rows that are not known are held in doubt, not sent")
	if dry {
		fmt.Fprintln(d.Out, "\nnothing was written (--dry-run)")
		return
	}
	aside := from + ".damaged"
	for n := 2; disk.Exists(aside); n++ { // it was damaged before
		aside = fmt.Sprintf("%s.damaged-%d", from, n)
	}
	fmt.Fprintf(d.Out, "\nrepaired    %s\nTo put it in the old one's place:\n     %s\n     %s\n", report.Escape(to), moving(from, aside), moving(to, from))
}

// moving is a command that gives a file another name and replaces nothing. On Windows, ren cannot, and move asks first,
// or refuses in PowerShell.
func moving(from, to string) string {
	switch {
	case runtime.GOOS != "windows":
		return "mv -n " + shell.Path(from) + " " + shell.Path(to)
	case filepath.Dir(from) == filepath.Dir(to):
		return "ren " + shell.Path(from) + " " + shell.Path(filepath.Base(to))
	}
	return "move " + shell.Path(from) + " " + shell.Path(to)
}
