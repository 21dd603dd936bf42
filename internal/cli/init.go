package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
	"leadferry/mapping"
	"leadferry/mapping/propose"
)

func (p *program) initCommand() *cli.Command {
	target := flags.Name(files, "mapping", "write the mapping to `FILE`; - is standard output (default: the input's name with .yaml)")
	target.Aliases = []string{"m"}
	return &cli.Command{
		Name: "init", Usage: "guess a mapping from a file's header and first rows", ArgsUsage: "FILE",
		Flags: append(sourceFlags(), target), Action: p.runInit,
	}
}

func (p *program) runInit(c *cli.Context) error {
	names, err := inputs.Names(c)
	if err != nil {
		return err
	}
	if len(names) > 1 {
		return exit.Usage("init reads one file", "the mapping fits every file that has the same columns")
	}
	target, err := mappingName(c.String("mapping"), names[0])
	if err != nil {
		return err
	}
	in, err := inputs.Sample(c, p.In, names[0])
	if err != nil {
		return err
	}
	proposal, err := propose.Propose(in)
	if err != nil {
		return err
	}
	if target == "-" {
		_, err := p.out.Write(proposal.YAML)
		tell(p.say(c), proposal.Notes)
		return err
	}
	err = disk.WriteNew(target, 0o644, func(w io.Writer) error {
		_, err := w.Write(proposal.YAML)
		return err
	})
	if err != nil {
		return exit.Usage(fmt.Sprintf("the mapping cannot be written: %v", err), "name another place with -m")
	}
	if c.Bool("quiet") {
		return nil
	}
	fmt.Fprintf(&p.out, "Wrote %s. It is a guess: read it before anything is sent.\n", report.Escape(target))
	tell(&p.out, proposal.Notes)
	input := names[0]
	if input != "-" {
		input = shell.Path(input)
	}
	fmt.Fprintf(&p.out, "Next: leadferry validate -m %s %s\n", shell.Path(target), input)
	return nil
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
		return "", exit.Usage("standard input has no name that the mapping could have", "name the mapping with -m FILE, or -m - to print it")
	case named == "":
		base := filepath.Base(input)
		for ext := filepath.Ext(base); ext != "" && ext != base; ext = filepath.Ext(base) {
			base = strings.TrimSuffix(base, ext)
		}
		named = base + ".yaml"
	}
	if named != "-" && disk.Exists(named) {
		return "", exit.Usage(named+" is there already and is not overwritten", "name another file with -m, or print the mapping with -m -")
	}
	return named, nil
}

func (p *program) schemaCommand() *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON Schema of the mapping file, for editors",
		Action: func(*cli.Context) error { return p.print(string(mapping.Schema())) },
	}
}
