package cli

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer/report"
)

func (p *program) checkCommand(shared []cli.Flag) *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "check every page, record, index and count of the checkpoint",
		Description: `Reads the whole file and says whether it can be relied on, and if not, what to do.
Nothing is changed, unless --accept is given: it goes on with a copy that is older
than what was known once, such as a restored backup. What was made after that copy
is not known to it and will be made again: first import only files whose rows it
knows, or adopt what is missing.

Example:

   leadferry checkpoint check --sandbox

Exit codes: 0 in order; 2 no checkpoint; 4 damaged, rolled back, locked or of
another target.`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "accept", Usage: "go on with a file that was restored from an older copy"},
		}, shared...),
		Action: p.check,
	}
}

func (p *program) check(c *cli.Context) (err error) {
	if c.Args().Present() {
		return usage("check takes no file", "name the checkpoint with --checkpoint")
	}
	accept := c.Bool("accept")
	path, o, target, err := existing(c)
	if err != nil {
		return err
	}
	o.ReadOnly, o.Check, o.Accept = !accept, true, accept
	db, err := checkpoint.Open(path, target, o)
	if err != nil {
		if errors.Is(err, checkpoint.ErrDamaged) {
			p.readable(path)
		}
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	counts, err := db.Counts()
	if err != nil {
		return err
	}
	p.warn(db)
	fmt.Fprintf(p.Out, "checkpoint  %s\nin order    every page, record, index and count\n", report.Escape(db.Path()))
	p.printCounts(counts)
	if accept {
		fmt.Fprintln(p.Out, "\naccepted: the next run goes on with this file as it is")
	}
	return p.followUp(db, counts)
}

// readable says what an export of a damaged file would hold.
func (p *program) readable(path string) {
	r, err := checkpoint.Salvage(path, func(checkpoint.Entry) error { return nil })
	if err != nil {
		return // the error that is shown says more
	}
	fmt.Fprintf(p.Out, "checkpoint  %s\ndamaged     what can still be read, and what an export holds:\n", report.Escape(path))
	counts := make(map[checkpoint.State]int)
	for s, n := range r.Keys {
		counts[checkpoint.State(s)] = n
	}
	counts[checkpoint.Forgotten] = r.Forgotten
	p.printCounts(counts)
	p.lostBlocks(r.Forgotten)
}

// lostBlocks warns that an export cannot carry what was forgotten.
func (p *program) lostBlocks(n int) {
	if n > 0 {
		fmt.Fprintf(p.Err, "warning: %s forgotten: an export does not name them, so forget them again in the new checkpoint\n", plural(n, "key"))
	}
}
