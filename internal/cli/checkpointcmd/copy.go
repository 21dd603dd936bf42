package checkpointcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
	"leadferry/internal/spelling"
)

// copy copies all that a checkpoint knows to an empty one elsewhere.
func (d *Command) copy() error {
	from, to := d.C.Args().Get(0), d.C.Args().Get(1)
	if d.C.NArg() != 2 || from == to {
		return exit.Usage("copy takes two places: the checkpoint, and where it goes",
			"see leadferry checkpoint copy --help")
	}
	at, err := d.Named(from)
	if err != nil {
		return err
	}
	if err = ledger.RefuseName(to); err == nil && !checkpoint.IsAddress(to) {
		to, err = filepath.Abs(to)
	}
	if err != nil {
		return err
	}
	return d.copyTo(at, to)
}

// copyTo copies to an address or to a file. Until the copy is complete, runs with either checkpoint are refused. Then
// only runs with the old one are. Repeating a copy that was cut off completes it.
func (d *Command) copyTo(from ledger.Place, to string) (err error) {
	src, err := from.Open(ledger.How{Moved: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	info, isFile := src.Info(), !checkpoint.IsAddress(to)
	again := info.Moved == to
	elsewhere := checkpoint.RefuseElsewhere(info.Path, info.ID, info.Moved, "")
	if info.Moved != "" && !again || again && isFile && !disk.Exists(to) {
		return elsewhere
	}
	read := func() (*checkpoint.Contents, error) {
		if err := src.SetMoved(to); err != nil {
			return nil, err
		}
		return src.Contents(d.C.Context)
	}
	err = d.WithWitness(src, false, func() error {
		if !again { // after the first copy, no run uses it any more
			if err := checkpoint.OnThisMachine(d.C.Context, src, d.Machine, false, nil); err != nil {
				return err
			}
		}
		if isFile {
			return bolt.Fill(to, read, info.Path, info.Target, d.FileOptions())
		}
		o := d.ServerOptions()
		o.Require = again
		return postgres.Fill(to, read, info.Path, info.Target, o)
	})
	// The checkpoint there was completed before, or is gone.
	other := func(kind error) bool { return errors.Is(err, kind) }
	if again && slices.ContainsFunc([]error{checkpoint.ErrMissing, fs.ErrExist, checkpoint.ErrLocked}, other) {
		return elsewhere
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "copied: %s, %d in doubt, and everything else\nNo run uses %s any more. Use "+
		"--checkpoint %s from now on\n",
		english.Plural(info.Leads, "lead", ""), info.InDoubt, spelling.Escape(info.Path), shell.Path(to))
	return nil
}

// repair makes a new checkpoint from what can be read of a damaged one and from results files.
func (d *Command) repair() error {
	names, paths := d.C.Args().Slice(), d.C.StringSlice("results")
	if len(names) > 2 && len(paths) > 0 { // a shell expanded a pattern of results
		names, paths = names[:2], slices.Concat(paths, names[2:])
	}
	if len(names) != 2 || disk.SameFile(names[0], names[1]) {
		return exit.Usage("repair takes two files: the damaged one, and a new one",
			"such as: checkpoint repair leads.db repaired.db")
	}
	from, to := names[0], names[1]
	if disk.Exists(to) {
		return exit.Usage(to+": exists already", "name a file that is not there yet; if this is the repaired one, put it "+
			"in the place of the other")
	}
	damaged := d.At(from, checkpoint.Target{})
	db, err := damaged.Open(ledger.How{ReadOnly: true, Check: true})
	switch {
	case err == nil:
		return errors.Join(db.Close(), exit.Usage(from+": is in order: there is nothing to repair",
			"leadferry checkpoint adopt takes leads that only results know"))
	case errors.Is(err, checkpoint.ErrMissing):
		return exit.Usage("no checkpoint at "+from, "name the damaged file first, then the new one")
	case !errors.Is(err, checkpoint.ErrDamaged):
		return err
	}
	results, err := d.openLists(paths, "repair")
	defer results.close()
	if err != nil {
		return err
	}
	o := d.FileOptions()
	o.Witnesses, o.Empty = d.Witnesses(), len(paths) > 0
	part := to + ".repairing" // until it is whole
	_ = os.Remove(part)
	r, err := bolt.Repair(from, part, d.Target, o)
	if err == nil && len(paths) > 0 { // adopt rows that the damaged one does not know
		at := d.At(part, checkpoint.Target{})
		if db, err = at.Open(ledger.How{}); err == nil {
			err = errors.Join(d.takeOver(db, results, true), db.Close())
		}
	}
	if err == nil {
		err = disk.Rename(part, to)
	}
	if err != nil {
		_ = os.Remove(part)
		return err
	}
	d.reportRepaired(from, to, r)
	return nil
}

func (d *Command) reportRepaired(from, to string, r *bolt.Salvaged) {
	d.printf("damaged     %s\n", from)
	d.printCounts(r.Counts())
	fmt.Fprintln(d.Out, "incomplete  nobody knows what the damaged one has lost: rows that it does not know are held "+
		"in doubt, not sent")
	aside := from + ".damaged"
	for n := 2; disk.Exists(aside); n++ { // it was damaged before
		aside = fmt.Sprintf("%s.damaged-%d", from, n)
	}
	// mv -n replaces nothing, move asks first.
	move := map[bool]string{false: "mv -n", true: "move"}[runtime.GOOS == "windows"]
	fmt.Fprintf(d.Out, "\nrepaired    %s\nTo put it in the old one's place:\n     %[2]s %[3]s %[4]s\n     %[2]s "+
		"%[5]s %[3]s\n", spelling.Escape(to), move, shell.Path(from), shell.Path(aside), shell.Path(to))
}
