package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer/report"
)

func (p *program) repairCommand() *cli.Command {
	return &cli.Command{
		Name: "repair", Usage: "make a new checkpoint of what can be read of a damaged one", ArgsUsage: "OLD NEW",
		Description: `Brings everything that the checksums of the damaged file OLD vouch for into the new
file NEW, and what results of earlier runs know besides. OLD is only read.

What is known to be missing is counted. While leads are missing, NEW is incomplete: a
row that it does not know may be one of them, so it is held in doubt, not sent, until
leadferry checkpoint resolve settles it, or leadferry checkpoint check --accept-loss
gives up what is missing.

Example:

   leadferry checkpoint repair leads.db repaired.db --results leadferry-runs/*/results.csv

Exit codes: 0 done; 2 usage error, no checkpoint, or it is in order; 3 the disk refused
it; 4 locked, of another format version, or of another checkpoint than the results.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "results", EnvVars: []string{"LEADFERRY_RESULTS"}, Usage: "results `FILE` of a run that used the checkpoint; can be given again"},
			boolFlag("", "dry-run", "say what could be repaired, and write nothing"),
		},
		Action: p.repair,
	}
}

func (p *program) repair(c *cli.Context) error {
	from, to, files, err := repairNames(c)
	if err != nil {
		return err
	}
	o := bolt.Options{ReadOnly: true, Require: true, Check: true, AnyPlace: anyPlace()}
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
		one, err := p.evidence(path)
		if err != nil {
			return err
		}
		results = append(results, one)
	}
	dry := c.Bool("dry-run")
	r, err := bolt.Repair(from, to, p.target(), results, dry, bolt.Options{AnyPlace: anyPlace()})
	if err != nil {
		return err
	}
	p.reportRepaired(from, to, &r, dry)
	return nil
}

// repairNames are the files that the command line names. A pattern that a shell spread out
// leaves further results behind the two names.
func repairNames(c *cli.Context) (from, to string, results []string, err error) {
	names := c.Args().Slice()
	results = c.StringSlice("results")
	if len(names) > 2 && len(results) > 0 {
		names, results = names[:2], slices.Concat(results, names[2:])
	}
	if len(names) != 2 || sameFile(names[0], names[1]) {
		return "", "", nil, usage("repair takes two files: the damaged one, and one that is not there yet", "see leadferry checkpoint repair --help")
	}
	for _, path := range []string{names[1], names[1] + ".seq"} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return "", "", nil, usage(path+": exists already", "name a file that is not there yet")
		}
	}
	if dir := filepath.Dir(names[1]); !isFolder(dir) {
		return "", "", nil, usage("there is no folder "+dir, "make it first")
	}
	return names[0], names[1], results, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// evidence reads results. The summary beside them says which checkpoint their run used.
func (p *program) evidence(path string) (bolt.Evidence, error) {
	one := bolt.Evidence{Source: path}
	read, err := p.readList(path, "repair")
	if err != nil {
		return one, err
	}
	if one.Entries, _, err = entriesOf(read); err != nil {
		return one, err
	}
	w := witnessIn(filepath.Dir(path))
	one.ID, one.Target = w.ID, w.Target
	return one, nil
}

func (p *program) reportRepaired(from, to string, r *bolt.Repaired, dry bool) {
	fmt.Fprintf(p.Out, "damaged     %s\n", report.Escape(from))
	p.printSalvaged(&r.Salvaged)
	p.tellCounts([]counted{
		{r.Found, "beside these, known by the results"},
		{r.Unsure, "of them not counted as missing ones: no summary beside these results says which checkpoint their run used"},
		{r.Left, "of the results left out: their lead has another key"},
	}, func(n int) string { return english.Plural(n, "lead", "") })
	for _, path := range r.Passed {
		fmt.Fprintf(p.Out, "passed over %s: its run had another target\n", report.Escape(path))
	}
	if r.Lost {
		fmt.Fprintf(p.Out, "incomplete  %s: rows that are not known are held in doubt, not sent\n", r.Text())
	}
	if dry {
		fmt.Fprintln(p.Out, "\nnothing was written (--dry-run)")
		return
	}
	fmt.Fprintf(p.Out, "\nrepaired    %s\nTo put it in the old one's place:\n     mv -n %s %s\n     mv -n %s %s\n", report.Escape(to),
		report.Quote(from), report.Quote(from+".damaged"), report.Quote(to), report.Quote(from))
}
