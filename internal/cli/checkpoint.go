package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

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
		p.statusCommand(), p.exportCommand(), p.historyCommand(), p.resolveCommand(), p.adoptCommand(),
		p.forgetCommand(),
		p.checkCommand(), p.repairCommand(), p.copyCommand(), p.initLedgerCommand(), p.workersCommand(),
	}
	for _, c := range commands {
		if slices.Contains([]string{"history", "resolve", "adopt", "forget"}, c.Name) {
			c.Flags = append(c.Flags, own.Text("namespace", "the `NAMESPACE` of the keys, if the mapping names one"))
		}
		if !slices.Contains([]string{"repair", "copy", "init"}, c.Name) { // which name theirs
			c.Flags = append(c.Flags, checkpointFlags()...)
		}
		c.Flags = append(c.Flags, connectionFlags()...)
	}
	return &cli.Command{
		Name: "checkpoint", Usage: "look at what is known of the leads, and settle rows in doubt",
		Subcommands: commands, Action: p.help,
	}
}

// desk is where the command works.
func (p *program) desk(c *cli.Context) *checkpointcmd.Command {
	return &checkpointcmd.Command{
		In: p.In, Out: &p.out, Say: p.say(c), Warn: p.warn, Ledger: p.ledger(c), Person: p.person(c), Hold: p.hold.Take,
		Namespace: c.String("namespace"),
	}
}

func (p *program) statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "what the checkpoint knows, and its last runs",
		Action: func(c *cli.Context) error { return p.desk(c).Status() },
	}
}

func (p *program) exportCommand() *cli.Command {
	output := own.Name("output", "write a new `FILE` instead of standard output")
	output.Aliases = []string{"o"}
	return &cli.Command{
		Name: "export", Usage: "list what the checkpoint knows, as CSV or JSONL on standard output",
		Flags: []cli.Flag{
			own.Choice("format", "write %", "csv", "jsonl"),
			output,
			own.Text("created-by", "list only leads that `RUN` made and rows in doubt that it sent"),
			own.Text("state", "list only rows in this `STATE`: created, partial, rejected or in_doubt"),
		},
		Action: p.export,
	}
}

// export tells what the checkpoint knows once that is closed: who reads it slowly, as less does, holds no lock.
func (p *program) export(c *cli.Context) error {
	to := c.String("output")
	if to == "-" {
		to = ""
	}
	if disk.Exists(to) {
		return exit.Usage(to+": exists already, and somebody may have filled it in",
			"name a file that is not there yet")
	}
	if to != "" {
		if err := p.keepApart(c, []place{placeAt(to, "-o")}, nil); err != nil {
			return err
		}
	}
	var told terminal.Spool
	err := p.desk(c).Export(c.Context, checkpointcmd.Export{
		State: c.String("state"), Run: c.String("created-by"), CSV: c.String("format") == "csv", Terminal: to == "" &&
			terminal.Is(p.Out),
	}, &told)
	switch {
	case err != nil && !told.Begun: // refused
		return err
	case to == "":
		unseen := told.Tell(&p.out) // of a damaged checkpoint, too
		return cmp.Or(err, unseen)
	}
	if broken := disk.WriteNew(to, 0o600, told.Tell); broken != nil && err == nil {
		return exit.Stopped(fmt.Sprintf("%s could not be written: %v", to, broken), disk.WayOut(broken))
	}
	return err
}

func (p *program) historyCommand() *cli.Command {
	return &cli.Command{
		Name: "history", Usage: "what was sent and confirmed for one lead, with times and runs", ArgsUsage: "KEY",
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
		Flags: []cli.Flag{
			own.Bool("none-created", "settle all rows in doubt: no lead was made, they may be sent again"),
			own.Bool("yes", "with --none-created: do not ask"),
		},
		Action: func(c *cli.Context) error {
			switch none := c.Bool("none-created"); {
			case c.NArg() > 1 || none == c.Args().Present():
				return exit.Usage("resolve takes one file, or --none-created",
					"leadferry checkpoint export --state in_doubt -o doubt.csv makes it")
			case none:
				return p.desk(c).ResolveNone(c.Context)
			}
			return p.desk(c).Resolve(c.Context, c.Args().First())
		},
	}
}

func (p *program) adoptCommand() *cli.Command {
	return &cli.Command{
		Name: "adopt", Usage: "take over leads that exist on the service already", ArgsUsage: "FILE.csv...",
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return exit.Usage("adopt takes a file",
					"CSV with the columns key and lead_id, such as the results.csv of a run")
			}
			paths, err := spread(c.Args().Slice())
			if err != nil {
				return err
			}
			return p.desk(c).Adopt(c.Context, paths)
		},
	}
}

// spread replaces patterns that no shell spread out by the files that they name.
func spread(args []string) (paths []string, err error) {
	for _, arg := range args {
		found, _, err := inputs.Spread(arg)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

func (p *program) forgetCommand() *cli.Command {
	return &cli.Command{
		Name: "forget", Usage: "remove every trace of a person from the checkpoint", ArgsUsage: "KEY...",
		Flags: []cli.Flag{own.Bool("unblock", "remove the keyed hash too, so that the row may be sent again")},
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
		Flags: []cli.Flag{
			own.Text("accept-older", "accept an older checkpoint, as incomplete: the `ID` that the refusal printed"),
			own.Bool("moved-here", "accept a file that was moved here from another machine, which no longer uses it"),
			own.Bool("accept-loss", "give up what is missing from an incomplete checkpoint"),
			own.Bool("yes", "with --accept-loss: do not ask"),
		},
		Action: func(c *cli.Context) error {
			return p.desk(c).Check(c.Context, checkpointcmd.Checks{
				Older: c.String("accept-older"), Loss: c.Bool("accept-loss"), MovedHere: c.Bool("moved-here"),
			})
		},
	}
}

func (p *program) repairCommand() *cli.Command {
	return &cli.Command{
		Name: "repair", Usage: "make a new checkpoint of what can be read of a damaged one", ArgsUsage: "OLD NEW",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{
				Name: "results", EnvVars: []string{flags.Variable("results")},
				Usage: "read the results `FILE` of a run that used the checkpoint; may be repeated",
			},
			own.Bool("dry-run", "print what could be repaired; write nothing"),
		},
		Action: p.repair,
	}
}

func (p *program) repair(c *cli.Context) error {
	names := c.Args().Slice()
	results, err := spread(c.StringSlice("results"))
	if err != nil {
		return err
	}
	if len(names) > 2 && len(results) > 0 { // a shell spread out a pattern of results
		names, results = names[:2], slices.Concat(results, names[2:])
	}
	if len(names) != 2 || disk.SameFile(names[0], names[1]) {
		return exit.Usage("repair takes two files: the damaged one, and a new one",
			"such as: checkpoint repair leads.db repaired.db")
	}
	from, to := names[0], names[1]
	if disk.Exists(to) {
		return exit.Usage(to+": exists already", "name a file that is not there yet")
	}
	if info, err := os.Stat(filepath.Dir(to)); err != nil || !info.IsDir() {
		return exit.Usage("there is no folder "+filepath.Dir(to), "make it first")
	}
	return p.desk(c).Repair(from, to, p.target(), results, c.Bool("dry-run"))
}
