package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint/bolt"
	"leadferry/internal/cli/checkpointcmd"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/disk"
	"leadferry/leadapi/sandbox"
)

func (p *program) checkpointCommand() *cli.Command {
	commands := []*cli.Command{
		p.statusCommand(), p.exportCommand(), p.historyCommand(), p.resolveCommand(),
		p.adoptCommand(), p.forgetCommand(), p.checkCommand(), p.repairCommand(),
		p.copyCommand(), p.initLedgerCommand(), p.workersCommand(),
	}
	for _, c := range commands {
		if slices.Contains([]string{"history", "resolve", "adopt", "forget"}, c.Name) {
			c.Flags = append(c.Flags, flags.Text("", "namespace", "the `NAMESPACE` of the keys, if the mapping names one"))
		}
		if !slices.Contains([]string{"repair", "copy", "init"}, c.Name) { // which name theirs
			c.Flags = append(c.Flags, checkpointFlags()...)
		}
		c.Flags = append(c.Flags, connectionFlags()...)
		action := c.Action
		c.Action = func(c *cli.Context) error { return exit.OfDisk(action(c)) }
	}
	return &cli.Command{
		Name: "checkpoint", Usage: "look at what is known of the leads, and settle rows in doubt",
		Description: `The checkpoint is leadferry's only memory of the leads that it made: the service
cannot be asked. Without --checkpoint the one of the target is used.

Example:

   leadferry checkpoint export --state in_doubt --sandbox

Exit codes: 0 done; 2 usage error or no checkpoint at the path; 3 it could not be
written, or standard output is closed; 4 it is locked, damaged or of another target.`,
		Subcommands: commands,
		Action:      p.help,
	}
}

// desk is where the command works.
func (p *program) desk(c *cli.Context) *checkpointcmd.Desk {
	return &checkpointcmd.Desk{In: p.In, Out: &p.out, Say: p.say(c), Warn: p.warn, Ledger: p.ledger(c), Person: p.person(c), Hold: p.hold.Take, Namespace: c.String("namespace")}
}

func (p *program) statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "what the checkpoint knows, and its last runs",
		Description: `Shows how many rows are in each state, how many leads stand in each status, the
last runs with their counts, and decisions that something found since contradicts.
While a run goes on it shows who runs, since when, and its folder and page.

Example:

   leadferry checkpoint status --sandbox

Exit codes: 0 done; 2 no checkpoint; 4 damaged, or locked by another command.`,
		Action: func(c *cli.Context) error { return p.desk(c).Status() },
	}
}

func (p *program) exportCommand() *cli.Command {
	output := flags.Name("", "output", "write a new `FILE` instead of standard output")
	output.Aliases = []string{"o"}
	return &cli.Command{
		Name: "export", Usage: "list what the checkpoint knows, as CSV or JSONL on standard output",
		Description: `An export is what a person needs to find rows in doubt in the console: input file
and line, the time sent, organization or locator, and the reason. resolve takes it
back with lead IDs filled in, adopt takes it into another checkpoint. Of a damaged
checkpoint it holds what can still be read; the exit code is 4 all the same. -o never
writes over a file that is there: somebody may have filled it in.

Example:

   leadferry checkpoint export --state in_doubt --sandbox -o doubt.csv

Exit codes: 0 done; 2 no checkpoint, or a file in the way; 3 it could not be written; 4 locked or damaged.`,
		Flags: []cli.Flag{
			flags.Choice("", "format", "write %", "csv", "jsonl"),
			output,
			flags.Text("", "created-by", "list only leads that `RUN` made and rows in doubt that it sent"),
			flags.Text("", "state", "list only rows in this `STATE`: created, partial, rejected or in_doubt"),
		},
		Action: p.export,
	}
}

// export tells what the checkpoint knows once that is closed: who reads it slowly, as less
// does, holds no lock.
func (p *program) export(c *cli.Context) error {
	to := c.String("output")
	if to == "-" {
		to = ""
	}
	path, err := p.ledger(c).Path()
	if err == nil {
		err = newExport(to, path)
	}
	if err != nil {
		return err
	}
	x := checkpointcmd.Export{
		State: c.String("state"), Run: c.String("created-by"), CSV: c.String("format") == "csv", Terminal: to == "" && terminal.Is(p.Out),
	}
	var told terminal.Spool
	if err = p.desk(c).Export(c.Context, x, &told); err != nil && !told.Begun {
		return err // refused
	}
	if to == "" {
		if unseen := told.Tell(&p.out); unseen != nil {
			return cmp.Or(err, exit.Unseen(unseen, false))
		}
		return err
	}
	if broken := disk.WriteNew(to, 0o600, told.Tell); broken != nil && err == nil {
		return exit.Stopped(fmt.Sprintf("%s could not be written: %v", to, broken), disk.WayOut(broken))
	}
	return err
}

// newExport refuses a name that is taken, or will be by the checkpoint.
func newExport(to, checkpointPath string) error {
	if to == "" {
		return nil
	}
	named := placeAt(to, "-o")
	for _, path := range bolt.Companions(checkpointPath) { // the next run would remove it
		if q := placeAt(path, ""); named.is(&q) {
			return exit.Usage("-o "+to+" would take the place of "+path+", which is a part of the checkpoint", "name another place")
		}
	}
	if disk.Exists(to) {
		return exit.Usage(to+": exists already, and somebody may have filled it in", "name a file that is not there yet, or move that one away")
	}
	return nil
}

func (p *program) historyCommand() *cli.Command {
	return &cli.Command{
		Name: "history", Usage: "what was sent and confirmed for one lead, with times and runs", ArgsUsage: "KEY",
		Description: `Lists what was done with the row of this KEY, what a person decided about it, and
what was found since that does not fit the decision. Of long histories the first
event and the last ones are kept.

Example:

   leadferry checkpoint history L-104204 --sandbox

Exit codes: 0 done; 2 no checkpoint, or it does not know the key; 4 locked or
damaged.`,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return exit.Usage("history takes one key", "leadferry checkpoint export lists all keys")
			}
			return p.desk(c).History(c.Context, c.Args().First())
		},
	}
}

func (p *program) resolveCommand() *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "settle rows in doubt by what a person found in the console", ArgsUsage: "FILE.csv",
		Description: `FILE.csv has the columns key and lead_id; - is standard input. In lead_id, the ID of
the lead that was found settles the row; the word exists says that the lead was made
but its ID is not known, so that it is never sent again; the word none says that it
was not made and may be sent. An empty lead_id decides nothing: the row stays in doubt.

Each decision is kept with its time: leadferry checkpoint history KEY shows it, and
status shows whether anything that was found since contradicts it. A wrong one is
corrected by another file, as long as its row was not sent again since.

Example:

   leadferry checkpoint export --state in_doubt --sandbox -o doubt.csv
   # look each row up in the console and write what you found into lead_id
   leadferry checkpoint resolve doubt.csv --sandbox

Exit codes: 0 done; 2 the file was refused or decides nothing, nothing was settled, or
no checkpoint; 3 the disk refused it; 4 locked or damaged; 130 interrupted.`,
		Flags: []cli.Flag{
			flags.Bool("", "none-created", "settle all rows in doubt: no lead was made, they may be sent again"),
			flags.Bool("", "yes", "with --none-created: do not ask"),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 || c.Bool("none-created") == c.Args().Present() {
				return exit.Usage("resolve takes one file, or --none-created", "leadferry checkpoint export --state in_doubt -o doubt.csv writes a file to fill in")
			}
			if c.Bool("none-created") {
				return p.desk(c).ResolveNone(c.Context)
			}
			return p.desk(c).Resolve(c.Context, c.Args().First())
		},
	}
}

func (p *program) adoptCommand() *cli.Command {
	return &cli.Command{
		Name: "adopt", Usage: "take over leads that exist on the service already", ArgsUsage: "FILE.csv...",
		Description: `FILE.csv has the columns key and lead_id and, where known, external_id, status and
organization_id; - is standard input. A key is that of the mapping; its namespace is a
column namespace, or --namespace. The leads count as made from then on: no
import makes them again, and a sync finds them and sends them all their content at
first. The file is taken as a whole or not at all; the same file again does no harm.
A lead ID that came from a list or a decision before is corrected.

The export of another checkpoint and the results of runs (several at once,
and the results.csv.partial of killed ones) can be given as they are: rows in doubt stay in doubt, partial ones wait for their link, and
rows that are known to have a lead, but not which, are never made again. Rows without a
lead are left out. Where there is no checkpoint yet, one is made for the target that
the flags name.

Example:

   leadferry checkpoint adopt leads-of-the-console.csv --sandbox

Exit codes: 0 done; 2 the file was refused, nothing was taken over, or no
checkpoint; 3 the disk refused it; 4 locked or damaged.`,
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return exit.Usage("adopt takes a file", "a CSV file with the columns key and lead_id, such as the results.csv of a run")
			}
			var paths []string
			for _, arg := range c.Args().Slice() { // a pattern that no shell spread out
				found, _, err := inputs.Spread(arg)
				if err != nil {
					return err
				}
				paths = append(paths, found...)
			}
			return p.desk(c).Adopt(c.Context, paths)
		},
	}
}

func (p *program) forgetCommand() *cli.Command {
	return &cli.Command{
		Name: "forget", Usage: "remove every trace of a person from the checkpoint", ArgsUsage: "KEY...",
		Description: `Removes what the checkpoint holds under each KEY, also from the unused parts of its
file, and keeps only a keyed hash, so that the next file does not make the lead
again: such rows are skipped. KEY - reads keys from standard input, one a line, so
that they show in no process list. --unblock removes the hash too: the row counts
as new. The lead on the service stays: delete it in the console; that of the sandbox
goes.

Example:

   leadferry checkpoint forget L-104204 --sandbox

Run folders, exports and copies of the checkpoint that hold the person are yours to
remove.

Exit codes: 0 done; 2 usage error or no checkpoint; 3 the disk refused it, or has no
room for the compacted copy; 4 locked or damaged.`,
		Flags: []cli.Flag{
			flags.Bool("", "unblock", "remove the keyed hash too, so that the row may be sent again"),
		},
		Action: func(c *cli.Context) error {
			imitation := func(checkpointPath string, leadIDs []string) (int, error) {
				return sandbox.Forget(sandboxData(checkpointPath), leadIDs)
			}
			return p.desk(c).Forget(c.Context, c.Args().Slice(), c.Bool("unblock"), imitation)
		},
	}
}

func (p *program) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "check every page, record, index and count of the checkpoint",
		Description: `Reads the whole file and says whether it can be relied on, and if not, what to do.
Nothing is changed without one of these. --accept-older=ID takes a copy that is older
than known, such as a restored backup; the refusal prints the ID. It is incomplete then: a row that it does not know may have been sent after the copy was made, so it is
held in doubt, not sent, until leadferry checkpoint resolve settles it. --accept-loss
gives up what is missing from an incomplete checkpoint: the rows that were held, and
all that come, are sent. It asks first. --moved-here says that a checkpoint file was moved
from another machine to this one, and is not used there any more.

Example:

   leadferry checkpoint check --sandbox

Exit codes: 0 in order; 2 no checkpoint, or nobody said yes; 4 damaged, older than
what is known, locked or of another target; 130 interrupted.`,
		Flags: []cli.Flag{
			flags.Text("", "accept-older", "accept a checkpoint that is older than known, as incomplete: the `ID` that the refusal printed"),
			flags.Bool("", "moved-here", "accept a checkpoint file that was moved here from another machine, which no longer uses it"),
			flags.Bool("", "accept-loss", "give up what is missing from an incomplete checkpoint"),
			flags.Bool("", "yes", "with --accept-loss: do not ask"),
		},
		Action: func(c *cli.Context) error {
			return p.desk(c).Check(c.Context, checkpointcmd.Checks{Older: c.String("accept-older"), Loss: c.Bool("accept-loss"), MovedHere: c.Bool("moved-here")})
		},
	}
}

func (p *program) repairCommand() *cli.Command {
	return &cli.Command{
		Name: "repair", Usage: "make a new checkpoint of what can be read of a damaged one", ArgsUsage: "OLD NEW",
		Description: `Brings everything that the checksums of the damaged file OLD vouch for into the new
file NEW, and what results of earlier runs know besides. OLD is only read.

NEW is always incomplete: nobody knows which leads a damaged file has lost. A row that
it does not know may be one of them, so it is held in doubt, not sent, until
leadferry checkpoint resolve settles it, or leadferry checkpoint check --accept-loss
gives up what is missing.

Example:

   leadferry checkpoint repair leads.db repaired.db \
      --results leadferry-runs/*/results.csv

Exit codes: 0 done; 2 usage error, no checkpoint, or it is in order; 3 the disk refused
it; 4 locked, of another format version, or of another checkpoint than the results.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "results", EnvVars: []string{"LEADFERRY_RESULTS"}, Usage: "read the results `FILE` of a run that used the checkpoint; may be repeated"},
			flags.Bool("", "dry-run", "print what could be repaired; write nothing"),
		},
		Action: func(c *cli.Context) error {
			from, to, results, err := repairNames(c)
			if err != nil {
				return err
			}
			return p.desk(c).Repair(from, to, p.target(), results, c.Bool("dry-run"))
		},
	}
}

// repairNames are the files that the command line names. A pattern that a shell spread out
// leaves further results behind the two names; one that it did not is spread out here.
func repairNames(c *cli.Context) (from, to string, results []string, err error) {
	names := c.Args().Slice()
	for _, arg := range c.StringSlice("results") {
		found, _, err := inputs.Spread(arg)
		if err != nil {
			return "", "", nil, err
		}
		results = append(results, found...)
	}
	if len(names) > 2 && len(results) > 0 {
		names, results = names[:2], slices.Concat(results, names[2:])
	}
	if len(names) != 2 || disk.SameFile(names[0], names[1]) {
		return "", "", nil, exit.Usage("repair takes two files: the damaged one, and one that is not there yet", "for example leadferry checkpoint repair leads.db repaired.db")
	}
	if _, err := os.Lstat(names[1]); !errors.Is(err, fs.ErrNotExist) {
		return "", "", nil, exit.Usage(names[1]+": exists already", "name a file that is not there yet")
	}
	dir := filepath.Dir(names[1])
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", "", nil, exit.Usage("there is no folder "+dir, "make it first")
	}
	return names[0], names[1], results, nil
}
