package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// codeUsage is the exit code of what ends before a run begins; those of a run are importer's.
const codeUsage = 2

// usageErr is a command line that cannot be carried out.
type usageErr struct{ text, hint string }

func (e *usageErr) Error() string { return e.text }

func usage(text, hint string) error { return &usageErr{text, hint} }

// fail prints the error as a sentence with its hint and returns the exit code.
func (p *program) fail(err error) int {
	code, text, hint := judged(err)
	p.tell(code, text, hint)
	return code
}

// judged is the one table from errors to codes, sentences and hints.
func judged(err error) (code int, text, hint string) {
	code = codeUsage
	var (
		bad     *usageErr
		opening *source.OpenError
		ledger  *checkpoint.OpenError
		config  *leadapi.ConfigError
		fields  mapping.Errors
	)
	text = err.Error()
	switch {
	case errors.Is(err, errInterrupted):
		code = importer.CodeInterrupted
	case errors.As(err, &bad):
		hint = bad.hint
	case errors.As(err, &ledger):
		code, text, hint = importer.CodeCheckpoint, ledger.Path+": "+ledger.Text, ledger.Hint
	case errors.As(err, &config):
		text, hint = config.Text, config.Hint
	case errors.As(err, &fields): // carries its own hints
	case errors.As(err, &opening): // likewise
	}
	return code, text, hint
}

// tell says why a command ends with this code.
func (p *program) tell(code int, text, hint string) {
	text = p.inOneLine(text)
	p.refusal.Store(refusalOf(text, hint))
	if p.jsonErrors {
		p.failJSON(text, hint, code)
		return
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

// usageError is an error of the flag parser that reorder did not foresee.
func usageError(c *cli.Context, err error, _ bool) error {
	return usage(err.Error(), "see "+helpName(c)+" --help")
}

// helpName is the command as a person types it.
func helpName(c *cli.Context) string { return cmp.Or(c.Command.HelpName, c.App.Name) }

// inherit gives every command what the program has for itself: its own errors of the
// flag parser, no second command help, numbers that are decimal, and no defaults that
// say nothing.
func inherit(commands []*cli.Command, flags []cli.Flag) {
	for _, f := range flags {
		switch f := f.(type) {
		case *cli.BoolFlag:
			f.DisableDefaultText = true
		case *cli.IntFlag:
			f.Base = 10
		case *cli.DurationFlag:
			if f.Value == 0 && f.DefaultText == "" {
				f.DefaultText = "none"
			}
		}
	}
	for _, c := range commands {
		c.OnUsageError, c.HideHelpCommand = usageError, true
		inherit(c.Subcommands, c.Flags)
	}
}

func unknownCommand(commands []*cli.Command, of, name string) error {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return usage(fmt.Sprintf("there is no command %q", name), near("", name, names, "see "+of+" --help"))
}

// near asks whether the name that is nearest is meant; where none is near, it gives
// other.
func near(prefix, name string, names []string, other string) string {
	if n := mapping.Nearest(name, names); n != "" {
		return "did you mean " + prefix + n + "?"
	}
	return other
}
