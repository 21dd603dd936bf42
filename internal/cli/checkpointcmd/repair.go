package checkpointcmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer/report"
)

// Repair brings what can be read of a damaged checkpoint, and what files of results know
// besides, into a new one; dry says what could be.
func (d *Desk) Repair(from, to string, target checkpoint.Target, files []string, dry, anyPlace bool) error {
	o := bolt.Options{ReadOnly: true, Require: true, Check: true, AnyPlace: anyPlace}
	db, err := bolt.Open(from, checkpoint.Target{}, o)
	switch {
	case err == nil:
		return errors.Join(db.Close(), usage(from+": is in order: there is nothing to repair", "what results know besides, `leadferry checkpoint adopt` takes over"))
	case errors.Is(err, checkpoint.ErrMissing):
		return usage("no checkpoint at "+from, "name the damaged file first, then the new one")
	case !errors.Is(err, checkpoint.ErrDamaged) && !errors.Is(err, checkpoint.ErrRolledBack):
		return err
	}
	var results []bolt.Evidence
	for _, path := range files {
		one, err := d.evidence(path)
		if err != nil {
			return err
		}
		results = append(results, one)
	}
	r, err := bolt.Repair(from, to, target, results, dry, bolt.Options{AnyPlace: anyPlace})
	if err != nil {
		return err
	}
	d.reportRepaired(from, to, &r, dry)
	return nil
}

// evidence reads results. The summary beside them says which checkpoint their run used.
func (d *Desk) evidence(path string) (bolt.Evidence, error) {
	one := bolt.Evidence{Source: path}
	read, file, err := d.openList(path, "repair")
	if err != nil {
		return one, err
	}
	defer file.Close()
	best, err := read.choose()
	if err != nil {
		return one, err
	}
	err = read.eachEntry(best, func(e checkpoint.Entry, _ *listed) error {
		one.Entries = append(one.Entries, e)
		return nil
	})
	if err != nil {
		return one, err
	}
	w := d.Witness(filepath.Dir(path))
	one.ID, one.Target = w.ID, w.Target
	return one, nil
}

func (d *Desk) reportRepaired(from, to string, r *bolt.Repaired, dry bool) {
	fmt.Fprintf(d.Out, "damaged     %s\n", report.Escape(from))
	d.printSalvaged(&r.Salvaged)
	d.tellCounts([]counted{
		{r.Found, "beside these, known by the results"},
		{r.Unsure, "of them not counted as missing ones: no summary beside these results says which checkpoint their run used"},
		{r.Left, "of the results left out: their lead has another key"},
	}, func(n int) string { return english.Plural(n, "lead", "") })
	for _, path := range r.Passed {
		fmt.Fprintf(d.Out, "passed over %s: its run had another target\n", report.Escape(path))
	}
	if r.Incomplete() {
		fmt.Fprintf(d.Out, "incomplete  %s: rows that are not known are held in doubt, not sent\n", r.Text())
	}
	if dry {
		fmt.Fprintln(d.Out, "\nnothing was written (--dry-run)")
		return
	}
	fmt.Fprintf(d.Out, "\nrepaired    %s\nTo put it in the old one's place:\n     %s\n     %s\n", report.Escape(to), moving(from, from+".damaged"), moving(to, from))
}

// moving is a command that gives a file another name and replaces nothing. On Windows, ren cannot, and move asks first,
// or refuses in PowerShell.
func moving(from, to string) string {
	switch {
	case runtime.GOOS != "windows":
		return "mv -n " + report.Quote(from) + " " + report.Quote(to)
	case filepath.Dir(from) == filepath.Dir(to):
		return "ren " + report.Quote(from) + " " + report.Quote(filepath.Base(to))
	}
	return "move " + report.Quote(from) + " " + report.Quote(to)
}
