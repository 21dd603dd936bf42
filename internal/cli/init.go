package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer/report"
	"leadferry/mapping/propose"
)

func (p *program) initCommand() *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "guess a mapping from a file's header and first rows", ArgsUsage: "FILE",
		Description: `Reads up to 10,000 rows of FILE and writes a mapping with a comment on every
guess: which columns are what, what makes a row the same row, which statuses the
file holds. What only a person can know, such as who gets the leads, is marked.
Nothing is overwritten; - for the mapping prints it instead.

Example:

   leadferry init leads.csv                  writes leads.yaml
   leadferry validate -m leads.yaml leads.csv

Exit codes: 0 the mapping was written; 2 the file cannot be read, or a mapping of
that name is there already.`,
		Flags: append(sourceFlags(),
			&cli.StringFlag{Name: "mapping", Aliases: []string{"m"}, EnvVars: []string{"LEADFERRY_MAPPING"}, Usage: "write the mapping to `FILE`; - is standard output (default: the input's name with .yaml)", Category: files},
		),
		Action: p.runInit,
	}
}

func (p *program) runInit(c *cli.Context) error {
	names, err := inputNames(c)
	if err != nil {
		return err
	}
	if len(names) > 1 {
		return usage("init reads one file", "the mapping fits every file that has the same columns")
	}
	target, err := mappingName(c.String("mapping"), names[0])
	if err != nil {
		return err
	}
	in, err := p.sample(c, names[0])
	if err != nil {
		return err
	}
	proposal := propose.Propose(in)
	if target == "-" {
		_, err := p.Out.Write(proposal.YAML)
		tell(p.say(c), proposal.Notes)
		return err
	}
	if err := writeNew(target, proposal.YAML); err != nil {
		return err
	}
	if c.Bool("quiet") {
		return nil
	}
	fmt.Fprintf(p.Out, "Wrote %s. It is a guess: read it before anything is sent.\n", report.Escape(target))
	tell(p.Out, proposal.Notes)
	_, err = fmt.Fprintf(p.Out, "Next: leadferry validate -m %s %s\n", report.Quote(target), report.Quote(names[0]))
	return err
}

func tell(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(w, "- %s\n", report.Escape(note))
	}
}

// mappingName is where the mapping goes: beside nothing, in the folder that the
// command is run in, under the input's name.
func mappingName(named, input string) (string, error) {
	switch {
	case named == "" && input == "-":
		return "", usage("standard input has no name that the mapping could have", "name the mapping with -m FILE, or -m - to print it")
	case named == "":
		base := filepath.Base(input)
		for ext := filepath.Ext(base); ext != "" && ext != base; ext = filepath.Ext(base) {
			base = strings.TrimSuffix(base, ext)
		}
		named = base + ".yaml"
	}
	if _, err := os.Lstat(named); err == nil && named != "-" {
		return "", taken(named)
	}
	return named, nil
}

func taken(name string) error {
	return usage(name+" is there already and is not overwritten", "name another file with -m, or print the mapping with -m -")
}

// writeNew writes a file that must not be there yet.
func writeNew(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return taken(name)
	}
	if err != nil {
		return usage(fmt.Sprintf("the mapping cannot be written: %v", err), "name another place with -m")
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(name) // half a mapping is worse than none
		return usage(fmt.Sprintf("the mapping cannot be written: %v", err), "name another place with -m")
	}
	return nil
}
