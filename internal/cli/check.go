package cli

import (
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer/report"
)

func (p *program) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "check every page, record, index and count of the checkpoint",
		Description: `Reads the whole file and says whether it can be relied on, and if not, what to do.
Nothing is changed, but by these two. --accept-older takes a copy that is older than
what was known once, such as a restored backup, or one from elsewhere. It is incomplete
then: a row that it does not know may have been sent after the copy was made, so it is
held in doubt, not sent, until leadferry checkpoint resolve settles it. --accept-loss
gives up what is missing from an incomplete checkpoint: the rows that were held, and
all that come, are sent. It asks first.

Example:

   leadferry checkpoint check --sandbox

Exit codes: 0 in order; 2 no checkpoint, or nobody said yes; 4 damaged, older than
what is known, locked or of another target; 130 interrupted.`,
		Flags: []cli.Flag{
			boolFlag("", "accept-older", "take a file that was restored from an older copy, as incomplete"),
			boolFlag("", "accept-loss", "give up what is missing from an incomplete checkpoint"),
			boolFlag("", "yes", "with --accept-loss: do not ask"),
		},
		Action: p.check,
	}
}

func (p *program) check(c *cli.Context) (err error) {
	if c.Args().Present() {
		return usage("check takes no file", "name the checkpoint with --checkpoint")
	}
	older, loss := c.Bool("accept-older"), c.Bool("accept-loss")
	if older && loss {
		return usage("--accept-older and --accept-loss exclude one another", "first take the older copy and look at what is held, then give up what is missing")
	}
	path, o, target, err := p.existing(c)
	if err != nil {
		return err
	}
	o.ReadOnly, o.Check, o.Accept = !older && !loss, true, older
	db, err := bolt.Open(path, target, o)
	if err != nil {
		if errors.Is(err, checkpoint.ErrDamaged) {
			p.readable(path)
		}
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := db.Status()
	if err != nil {
		return err
	}
	p.warn(s.Warnings)
	fmt.Fprintf(p.Out, "checkpoint  %s\nin order    every page, record, index and count\n", report.Escape(db.Info().Path))
	p.printCounts(s.Keys)
	switch {
	case older:
		p.tookOlder(db)
	case loss:
		if err := p.acceptLoss(c, db); err != nil {
			return err
		}
		if s, err = db.Status(); err != nil {
			return err
		}
	}
	p.followUp(&s)
	return nil
}

func (p *program) tookOlder(db *bolt.Store) {
	if !db.Info().TookOlder {
		fmt.Fprintln(p.Out, "\nnothing to accept: it is not older than what is known")
		return
	}
	fmt.Fprintf(p.Out, "\naccepted: the checkpoint has a new ID and is incomplete: %s.\nRows that it does not know are held in doubt by the next run, not sent.\n", db.Info().Missing)
}

// acceptLoss asks before rows may be sent whose leads may exist.
func (p *program) acceptLoss(c *cli.Context, db *bolt.Store) error {
	if !db.Info().Incomplete {
		fmt.Fprintln(p.Out, "\nnothing to accept: the checkpoint is complete")
		return nil
	}
	const hint = "answer y, or add --yes; leadferry checkpoint resolve settles what is held row by row"
	missing := "the checkpoint is incomplete: " + db.Info().Missing
	if !p.mayAsk(c) {
		return usage(missing+"; to give that up would make their leads a second time", hint)
	}
	if err := p.confirm(c, "T"+missing[1:]+".\nTheir rows are made a second time when they come again. Give up what is missing?", "nothing was given up", hint); err != nil {
		return err
	}
	freed, err := db.AcceptLoss(c.Context)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "\naccepted: what is missing was given up; rows that were held for it and may be sent now: %d\n", freed)
	return nil
}

// readable says what an export of a damaged file would hold.
func (p *program) readable(path string) {
	r, err := bolt.Salvage(path, func(checkpoint.Entry) error { return nil })
	if err != nil {
		return // the error that is shown says more
	}
	fmt.Fprintf(p.Out, "checkpoint  %s\ndamaged     what can still be read, and what an export holds:\n", report.Escape(path))
	p.printSalvaged(&r)
	if r.Lost {
		fmt.Fprintln(p.Out, "missing     "+r.Text())
	}
	p.lostBlocks(r.Forgotten)
}

func (p *program) printSalvaged(r *bolt.Salvaged) {
	counts := map[checkpoint.State]int{checkpoint.Forgotten: r.Forgotten}
	for s, n := range r.Keys {
		counts[checkpoint.State(s)] += n
	}
	p.printCounts(counts)
}

// lostBlocks warns that an export cannot carry what was forgotten.
func (p *program) lostBlocks(n int) {
	if n > 0 {
		fmt.Fprintf(p.Err, "warning: %s forgotten: an export does not name them, so forget them again in the new checkpoint\n", english.Plural(n, "key", ""))
	}
}
