// Package checkpointcmd is the commands of `leadferry checkpoint`: they show what a checkpoint knows, and let people
// say what they know of its leads. An error of the command line or of a file brings its hint in a line of its own.
package checkpointcmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/cli/terminal"
)

// Command is what a checkpoint command works with: its line with the checkpoint that is meant, its streams, and the
// person at the terminal.
type Command struct {
	ledger.Selection
	In     io.Reader
	Out    io.Writer
	Say    io.Writer         // for announcements
	Warn   func(text string) // on standard error
	Person terminal.Person
	Shown  bool // a person looks at Out

	// Apart refuses the path of an output that would take the place of what the command reads.
	Apart func(path string) error
	// Hold makes the command handle signals itself from here on; false: one has come already.
	Hold func() bool
}

const own = flags.Group("")

// Commands are all of them, without the flags that they share. begin makes what one works with.
func Commands(begin func(*cli.Context) *Command) []*cli.Command {
	command := func(name, arguments, usage string, do func(*Command) error, its ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: name, ArgsUsage: arguments, Usage: usage, Flags: its,
			Action: func(c *cli.Context) error { return do(begin(c)) },
		}
	}
	output := own.Name("output", "write a new `FILE` instead of standard output")
	output.Aliases = []string{"o"}
	namespace := own.Text("namespace", "the `NAMESPACE` of the keys, if the mapping names one")
	return []*cli.Command{
		command("status", "", "what the checkpoint knows, and its last runs", (*Command).status),
		command("export", "", "list what the checkpoint knows, as CSV or JSONL on standard output", (*Command).export,
			own.Choice("format", "write %", "csv", "jsonl"), output,
			own.Text("created-by", "list only leads that `RUN` made and rows in doubt that it sent"),
			own.Text("state", "list only rows in this `STATE`: created, partial, rejected or in_doubt")),
		command("history", "KEY", "what was sent and confirmed for one lead, with times and runs", (*Command).history,
			namespace),
		command("resolve", "FILE.csv", "settle rows in doubt by what a person found in the console", (*Command).resolve,
			own.Bool("none-created", "settle all rows in doubt: no lead was made, they may be sent again"),
			own.Bool("yes", "with --none-created: do not ask"), namespace),
		command("adopt", "FILE.csv...", "take over leads that exist on the service already", (*Command).adopt,
			namespace),
		command("forget", "KEY...", "remove every trace of a person from the checkpoint", (*Command).forget,
			own.Bool("unblock", "remove the keyed hash too, so that the row may be sent again"), namespace),
		command("check", "", "check every page, record, index and count of the checkpoint", (*Command).check,
			own.Text("accept-older", "accept an older checkpoint, as incomplete: the `ID` that the refusal printed"),
			own.Bool("moved-here", "accept a file that was moved here from another machine, which no longer uses it"),
			own.Bool("accept-loss", "give up what is missing from an incomplete checkpoint"),
			own.Bool("yes", "with --accept-loss: do not ask")),
		command("repair", "OLD NEW", "make a new checkpoint of what can be read of a damaged one", (*Command).repair,
			&cli.StringSliceFlag{
				Name: "results", EnvVars: []string{flags.Variable("results")},
				Usage: "read the results `FILE` of a run that used the checkpoint; may be repeated",
			},
			own.Bool("dry-run", "print what could be repaired; write nothing")),
		command("copy", "FROM TO", "take a checkpoint to another place: from a file to PostgreSQL, or back",
			(*Command).copy),
		command("init", "ADDRESS", "prepare a PostgreSQL database to hold checkpoints", (*Command).prepare),
		command("workers", "", "which runs use a checkpoint in PostgreSQL, and what they hold", (*Command).workers),
	}
}

// with opens the checkpoint for f.
func (d *Command) with(readOnly bool, f func(ledger.Ledger) error) error {
	at, err := d.Existing()
	if err != nil {
		return err
	}
	db, err := at.Open(ledger.How{ReadOnly: readOnly})
	if err != nil {
		return err
	}
	if readOnly {
		return errors.Join(f(db), db.Close())
	}
	return errors.Join(d.Attested(context.Background(), db, false, func() error { return f(db) }), db.Close())
}

// files are the arguments, or values of a flag, with patterns spread out that no shell did.
func files(args []string) (paths []string, err error) {
	for _, arg := range args {
		found, _, err := inputs.Spread(arg)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// printf prints texts of others so that a terminal obeys nothing in them.
func (d *Command) printf(format string, args ...any) {
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = report.Escape(text)
		}
	}
	fmt.Fprintf(d.Out, format, args...)
}

func (d *Command) warn(warnings []string) {
	for _, text := range warnings {
		d.Warn(text)
	}
}

// figures is how wide a column of numbers is.
const figures = 11

func (d *Command) printCounts(counts map[checkpoint.State]int) {
	for _, s := range []checkpoint.State{
		checkpoint.InDoubt, checkpoint.Partial, checkpoint.Created, checkpoint.Rejected, checkpoint.NotMade,
		checkpoint.Forgotten,
	} {
		if s == checkpoint.Created || counts[s] > 0 {
			fmt.Fprintf(d.Out, "%-10s  %*s\n", s, figures, humanize.Comma(int64(counts[s])))
		}
	}
}

// counted is a number and what it counts.
type counted struct {
	n    int
	text string
}

// tellCounts prints those that are not 0.
func (d *Command) tellCounts(list []counted, number func(int) string) {
	for _, one := range list {
		if one.n > 0 {
			fmt.Fprintln(d.Out, number(one.n)+" "+one.text)
		}
	}
}
