package cli

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
)

func (p *program) validateCommand() *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "dry run: read, map and check every row; send nothing", ArgsUsage: "FILE...",
		Description: `Reads the whole of each FILE with the mapping, by the same code as import, and
says what is wrong: which checks rows fail and where, which statuses are not
mapped, which keys repeat, to whom rows would go and how many requests that takes.
It runs the tests of the mapping first. It needs no account, no network and no
checkpoint, and never stops early.

Example:

   leadferry validate -m leads.yaml leads.csv --show 3 --rate 10

Exit codes: 0 all is good; 1 some rows or a test of the mapping are not, the mapping
cannot make leads yet, or a file breaks off; 2 the mapping or a file cannot be used
at all; 130 interrupted.`,
		Flags: slices.Concat(inputFlags(), outputFlags(), []cli.Flag{
			&cli.IntFlag{Name: "show", Usage: "print the first `N` requests as they would be sent", Category: running},
			&cli.Float64Flag{Name: "rate", Usage: "say how long the requests take at `N` a second", Category: running},
			&cli.BoolFlag{Name: "no-repeats", Usage: "do not look for repeated keys (saves 16 bytes a row)", Category: running},
		}),
		Action: p.runValidate,
	}
}

func (p *program) runValidate(c *cli.Context) error {
	if err := positive(c); err != nil {
		return err
	}
	log, err := p.logger(c)
	if err != nil {
		return err
	}
	o := importer.Options{
		Command: c.Command.Name, Version: Version, RunID: p.ending.Load().run, Interrupt: p.interrupt, Log: log,
		Flags: readingFlags(c), Limit: c.Int("limit"), NoRepeats: c.Bool("no-repeats"), Show: c.Int("show"), Rate: c.Float64("rate"),
	}
	o.Files = filesOf(c, o.RunID, time.Now(), true)
	in, err := p.openInputs(c, &o)
	if err != nil {
		return err
	}
	defer in.close()
	return p.conduct(c, in, o, importer.Validate)
}
