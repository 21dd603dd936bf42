// Package checkpointcmd has the commands of `leadferry checkpoint`. They show what a checkpoint knows, and take in what
// people know about its leads. An error in the command line or in a file has its hint on a line of its own.
package checkpointcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/spelling"
)

// Command is what a checkpoint command works with: its command line, the checkpoint, its streams, and the user.
type Command struct {
	ledger.Selection
	In     io.Reader
	Out    io.Writer
	Say    func(text string)     // prints announcements
	Warn   func(texts ...string) // prints warnings on standard error
	Person terminal.Person
	Shown  bool // Out is a terminal

	// Apart refuses the path of an output that would replace what the command reads.
	Apart func(path string) error
	// Hold makes the command handle signals itself from now on. It returns false if a signal has already come.
	Hold func() bool
}

// Commands returns all commands, without their help pages. begin makes the Command for one.
func Commands(begin func(*cli.Context) *Command) []*cli.Command {
	command := func(name, arguments string, do func(*Command) error, sets string) *cli.Command {
		return &cli.Command{
			Name: name, ArgsUsage: arguments, Flags: flags.Of(sets + " connection"),
			Action: func(c *cli.Context) error { return do(begin(c)) },
		}
	}
	return []*cli.Command{
		command("status", "", (*Command).status, "checkpoint standby"),
		command("export", "", (*Command).export, "export checkpoint standby"),
		command("history", "KEY", (*Command).history, "namespace checkpoint standby"),
		command("resolve", "FILE.csv", (*Command).resolve, "resolve decision namespace checkpoint standby"),
		command("adopt", "FILE.csv...", (*Command).adopt, "decision namespace checkpoint standby"),
		command("forget", "KEY...", (*Command).forget, "forget decision namespace checkpoint standby"),
		command("check", "", (*Command).check, "check decision checkpoint standby"),
		command("repair", "OLD NEW", (*Command).repair, "repair"),
		command("copy", "FROM TO", (*Command).copy, "standby"),
		command("init", "ADDRESS", (*Command).prepare, "standby"),
		command("workers", "", (*Command).workers, "checkpoint standby"),
	}
}

// with opens the checkpoint for f, and a witness if f may write. It removes a new checkpoint if f stores nothing.
func (d *Command) with(how ledger.How, f func(ledger.Ledger) error) error {
	db, err := d.Open(how)
	if err != nil {
		return err
	}
	if how.ReadOnly {
		return errors.Join(f(db), db.Close())
	}
	err = d.WithWitness(db, how.Check, func() error { return f(db) })
	_, closed := db.Drop()
	return errors.Join(err, closed)
}

// printf prints, and escapes what a terminal would obey in the arguments: they may be anybody's texts.
func (d *Command) printf(format string, args ...any) {
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = spelling.Escape(text)
		}
	}
	fmt.Fprintf(d.Out, format, args...)
}

// printIf prints a line as printf does, on a condition.
func (d *Command) printIf(is bool, format string, args ...any) {
	if is {
		d.printf(format+"\n", args...)
	}
}

func (d *Command) printCounts(counts map[checkpoint.State]int) {
	for _, s := range []checkpoint.State{
		checkpoint.InDoubt, checkpoint.Partial, checkpoint.Created, checkpoint.Rejected, checkpoint.NotMade,
		checkpoint.Forgotten,
	} {
		if s == checkpoint.Created || counts[s] > 0 {
			fmt.Fprintf(d.Out, "%-10s  %11s\n", s, humanize.Comma(int64(counts[s])))
		}
	}
}

func countRows(n int) string { return english.Plural(n, "row", "") }

// check reads the whole checkpoint and says whether it is reliable. With some flags it also changes the checkpoint.
func (d *Command) check() error {
	older, loss, here := d.C.String("accept-older"), d.C.Bool("accept-loss"), d.C.Bool("moved-here")
	if older != "" && loss {
		return exit.Usage("--accept-older and --accept-loss exclude one another",
			"first take the older copy and look at what is held, then give up what is missing")
	}
	how := ledger.How{ReadOnly: older == "" && !loss && !here, Check: true, Accept: older}
	return d.with(how, func(db ledger.Ledger) (err error) {
		_, onServer := db.(*postgres.Store)
		switch {
		case here && onServer:
			return exit.Usage("--moved-here is for a checkpoint in a file: any machine may use one in PostgreSQL",
				"leave it out")
		case how.ReadOnly:
			err = d.notOlder(db)
		case older != "":
			err = d.takeOlder(db, older)
		case loss:
			err = d.acceptLoss(db)
		}
		if err == nil && here {
			err = checkpoint.OnThisMachine(d.C.Context, db, d.Machine, true, nil)
			d.printIf(err == nil, "accepted: the checkpoint is used on this machine from now on. Never use the copy "+
				"on the other machine again.")
		}
		if err != nil {
			return err
		}
		s, err := checkpoint.StatusOf(d.C.Context, db)
		if err != nil {
			return err
		}
		d.printf("checkpoint  %s\nin order    every record, index and count\n", s.Path)
		d.printCounts(s.Keys)
		d.Warn(s.Warnings...)
		d.followUp(&s)
		return nil
	})
}

// notOlder refuses a checkpoint if a witness knows a later state of it.
func (d *Command) notOlder(db ledger.Ledger) error {
	ws := d.Witnesses()
	ws.Looks = true
	v, err := checkpoint.Judge(d.C.Context, db, ws, false, nil)
	if err != nil {
		return err
	}
	return v.RefuseOlder()
}

// takeOlder accepts a checkpoint although a witness knows a later state of it.
func (d *Command) takeOlder(db ledger.Ledger, answer string) error {
	took, err := checkpoint.TakeOlder(d.C.Context, db, d.Witnesses(), answer, db.Info().Moved)
	if err != nil {
		return err
	}
	if server, is := db.(*postgres.Store); is { // opening has accepted one whose server lost a part of it
		took = took || server.Accepted
	}
	if !took {
		return exit.Usage("--accept-older="+answer+" answers nothing: it is another ID",
			"leadferry checkpoint status names the ID of the checkpoint")
	}
	d.printf("accepted: the checkpoint has a new ID and is incomplete: it lacks %s.\n"+
		"Rows that it does not know are held in doubt by the next run, not sent.\n", db.Info().Missing)
	fmt.Fprintf(d.Out, "Their leads may be in results of runs, here and on other machines:\n     %s\n",
		checkpoint.AdoptRuns(db.Info().Path, nil))
	return nil
}

// acceptLoss gives up what an incomplete checkpoint lacks, after a person confirms: those leads may be made twice.
func (d *Command) acceptLoss(db ledger.Ledger) error {
	const hint = "answer y, or add --yes; leadferry checkpoint resolve settles what is held row by row"
	const half = "leads of a list that was not taken over to its end"
	missing := "the checkpoint is incomplete: it lacks " + cmp.Or(db.Info().Missing, half)
	if err := checkpoint.RefuseHalfAdopted(d.C.Context, db); err == nil && !db.Info().Incomplete {
		d.printf("nothing to accept: the checkpoint is complete\n")
		return nil
	}
	if !d.Person.CanAnswer() {
		return exit.Usage(missing+"; to give that up would make their leads a second time", hint)
	}
	err := d.Person.Confirm("T"+missing[1:]+".\nTheir rows are made a second time when they come again. Give up what "+
		"is missing?", "nothing was given up", hint)
	if err != nil {
		return err
	}
	freed, err := checkpoint.AcceptLoss(d.C.Context, db)
	d.printIf(err == nil, "accepted: what is missing was given up; rows that were held for it and may be sent now: %d",
		freed)
	return err
}
