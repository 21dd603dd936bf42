package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Exit codes of what ends before a run begins; a run says its own.
const (
	codeUsage      = 2
	codeCheckpoint = 4
)

// usageErr is a command line that cannot be carried out.
type usageErr struct{ text, hint string }

func (e *usageErr) Error() string { return e.text }

func usage(text, hint string) error { return &usageErr{text, hint} }

// fail prints the error as a sentence with its hint and returns the exit code. It
// is the one table from errors to codes.
func (p *program) fail(err error) int {
	code, hint := codeUsage, ""
	var (
		bad     *usageErr
		opening *source.OpenError
		ledger  *checkpoint.OpenError
		config  *leadapi.ConfigError
		fields  mapping.Errors
	)
	text := err.Error()
	switch {
	case errors.As(err, &bad):
		hint = bad.hint
	case errors.As(err, &ledger):
		code, text, hint = codeCheckpoint, ledger.Path+": "+ledger.Text, ledger.Hint
	case errors.As(err, &config):
		text, hint = config.Text, config.Hint
	case errors.As(err, &fields): // carries its own hints
	case errors.As(err, &opening): // likewise
	}
	text = p.inOneLine(text)
	if p.jsonErrors {
		p.failJSON(text, hint, code)
		return code
	}
	for line := range strings.Lines(text) {
		line = report.Escape(strings.TrimSuffix(line, "\n"))
		if !strings.HasPrefix(line, "hint: ") {
			line = "leadferry: " + line
		}
		fmt.Fprintln(p.Err, line)
	}
	if hint != "" {
		fmt.Fprintf(p.Err, "hint: %s\n", report.Escape(hint))
	}
	return code
}

// inOneLine escapes the line breaks of names that the command line gave: lines of an
// error are sentences of ours.
func (p *program) inOneLine(text string) string {
	for _, a := range p.args {
		_, value, _ := strings.Cut(a, "=")
		for _, name := range []string{a, value} {
			if strings.ContainsAny(name, "\r\n") {
				text = strings.ReplaceAll(text, name, report.Escape(name))
			}
		}
	}
	return text
}

// ownErrors makes every command report flag errors by usageError.
func ownErrors(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usageError
		ownErrors(c.Subcommands)
	}
}

// usageError turns the flag parser's errors into ours.
func usageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		name = strings.TrimPrefix(name, "-")
		return usage("there is no flag --"+name, nearFlag(c, name))
	}
	return usage(text, "see leadferry "+c.Command.Name+" --help")
}

func nearFlag(c *cli.Context, name string) string {
	var names []string
	for _, f := range c.Command.Flags {
		names = append(names, f.Names()...)
	}
	for _, f := range c.App.Flags {
		names = append(names, f.Names()...)
	}
	if near := mapping.Nearest(name, names); near != "" {
		return "did you mean --" + near + "?"
	}
	return "see leadferry " + c.Command.Name + " --help"
}

func unknownCommand(commands []*cli.Command, name string) error {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	hint := "see leadferry --help"
	if near := mapping.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usage(fmt.Sprintf("there is no command %q", name), hint)
}
