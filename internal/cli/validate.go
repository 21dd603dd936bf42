package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/internal/cli/flags"
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

For machines: --problems FILE lists every problem of every row, --problems github
prints them as annotations of a workflow; --strict and --tolerate say what is a
problem, and how many may be; --summary - prints the figures as JSON on standard
output, and where nothing could be checked exit_code, reason and hint.

Exit codes: 0 all is good; 1 some rows or a test of the mapping are not, the mapping
cannot make leads yet, or a file breaks off; 2 the mapping or a file cannot be used
at all; 130 interrupted.`,
		Flags: slices.Concat(inputFlags(), outputFlags(), []cli.Flag{
			flags.Count(running, "show", 0, "print the first `N` requests as they would be sent"),
			rateFlag("say how long the requests take at `N` a second"),
			flags.Bool(running, "no-repeats", "do not look for repeated keys (saves 16 bytes a row)"),
			flags.Bool(running, "strict", "repeated keys, columns that nothing uses, words that only else takes, values that are left out and guesses that nobody confirmed count as problems"),
			flags.Text(running, "tolerate", "end with 0 when no more than `N|P%` rows are not good"),
		}),
		Action: p.validate,
	}
}

func (p *program) validate(c *cli.Context) error {
	o, err := p.runOptions(c)
	if err != nil {
		return err
	}
	o.Flags, o.Files = readingFlags(c), filesOf(c, o.RunID, time.Now(), true)
	o.Strict = c.Bool("strict")
	if o.Tolerate, err = share(c, "tolerate"); err != nil && c.IsSet("tolerate") {
		return err
	}
	in, err := p.openInputs(c, &o)
	if err != nil {
		return err
	}
	defer in.Close()
	return p.conduct(c, in, o, importer.Validate)
}

// readingFlags are those of the command line that say how the input is read, and how much
// of it: the import that follows has to repeat them.
func readingFlags(c *cli.Context) (words []string) {
	for _, name := range []string{"format", "delimiter", "encoding", "sheet", "limit"} {
		if c.IsSet(name) {
			words = append(words, "--"+name+"="+fmt.Sprint(c.Value(name)))
		}
	}
	if c.Bool("trust-encoding") {
		words = append(words, "--trust-encoding=true")
	}
	return words
}
