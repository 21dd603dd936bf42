package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
	"leadferry/mapping"
	"leadferry/mapping/propose"
)

func (p *program) runInit(c *cli.Context) error {
	names, err := inputs.Names(c)
	if err != nil {
		return err
	}
	input, target := names[0], c.String("mapping")
	if target == "" { // in the folder that the command is run in, under the input's name
		base, _, _ := strings.Cut(strings.TrimLeft(filepath.Base(input), "."), ".")
		target = base + ".yaml"
	}
	switch {
	case len(names) > 1:
		return exit.Usage("init reads one file", "the mapping fits every file that has the same columns")
	case input == "-" && c.String("mapping") == "":
		return exit.Usage("standard input has no name for the mapping", "name it with -m FILE, or print it with -m -")
	case target != "-" && disk.Exists(target):
		return exit.Usage(target+" is there already and is not overwritten",
			"name another file with -m, or print it with -m -")
	}
	in, err := inputs.Sample(c, p.In, input)
	if err != nil {
		return err
	}
	proposal, err := propose.Propose(in)
	if err != nil {
		return err
	}
	notes := ""
	for _, note := range proposal.Notes {
		notes += "- " + report.Escape(note) + "\n"
	}
	if target == "-" {
		_, _ = io.WriteString(p.say(c), notes)
		return p.print(string(proposal.YAML))
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
	if input != "-" {
		input = shell.Path(input)
	}
	return p.print(fmt.Sprintf("Wrote %s. It is a guess: read it before anything is sent.\n%sNext: leadferry "+
		"validate -m %s %s\n",
		report.Escape(target), notes, shell.Path(target), input))
}

func (p *program) schema(*cli.Context) error { return p.print(string(mapping.Schema())) }
