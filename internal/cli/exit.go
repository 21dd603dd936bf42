package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/crash"
	"leadferry/internal/disk"
)

// The exit codes, on which scripts rely:
//
//	0    nothing needs attention
//	1    some rows do
//	2    usage, mapping or input error: nothing was sent
//	3    stopped early: the same command goes on from there
//	4    the checkpoint is locked, missing, damaged or of another target
//	5    rows are in doubt: a person has to look
//	6    a newer worker of the fleet has this one's place
//	130  interrupted
//
// A run that has begun ends with one of importer's; this is the one of what ends before.
const codeUsage = 2

// exitError ends a command with a sentence, what to do about it, and an exit code.
type exitError struct {
	code       int
	text, hint string
}

func (e *exitError) Error() string { return e.text }

func usage(text, hint string) error { return &exitError{codeUsage, text, hint} }

func stopped(text, hint string) error { return &exitError{importer.CodeStopped, text, hint} }

func interrupted(text string) error { return &exitError{importer.CodeInterrupted, text, ""} }

// errInterrupted ends a command before it has sent anything.
var errInterrupted = interrupted("interrupted: nothing was sent")

// exitOf is the one table from errors to codes, sentences and hints. Errors that are not
// in it, such as those of mappings and inputs, bring their hints in lines of their own.
func exitOf(err error) exitError {
	var (
		fault  *crash.Error
		exit   *exitError
		ledger *checkpoint.OpenError
	)
	switch {
	case errors.As(err, &fault):
		return exitError{importer.CodeStopped, fault.Error(), "this is a fault of leadferry: report it with this line. What the checkpoint holds stands; the same command goes on from there"}
	case errors.As(err, &exit):
		return exitError{exit.code, err.Error(), exit.hint}
	case errors.As(err, new(*checkpoint.ServerError)):
		return exitError{importer.CodeStopped, err.Error(), "check its address, its network and its server; leadferry waits for it with --wait"}
	case errors.As(err, &ledger):
		return exitError{importer.CodeCheckpoint, ledger.Path + ": " + ledger.Text, explained(ledger)}
	}
	return exitError{codeUsage, err.Error(), ""}
}

// explained is the hint of a checkpoint that cannot be used, with the name of what says more:
// where leads may be made twice, a line is not enough.
func explained(e *checkpoint.OpenError) string {
	for name, kind := range map[string]error{"damaged": checkpoint.ErrDamaged, "rolled_back": checkpoint.ErrRolledBack, "gone": checkpoint.ErrGone} {
		if errors.Is(e, kind) && e.Hint != "" {
			return e.Hint + " (leadferry explain " + name + ")"
		}
	}
	return e.Hint
}

// sayingDiskErrors gives errors of the disk the exit code of a run that they stop.
func sayingDiskErrors(err error) error {
	if broken := (*checkpoint.FileError)(nil); errors.As(err, &broken) {
		return stopped(err.Error(), disk.WayOut(err))
	}
	return err
}

// sentence is what is wrong, in one line or more, and what to do about it.
type sentence struct {
	lines []string
	hint  string
}

// sentences parts an error's lines at the hints that stand among them.
func (e *exitError) sentences() (all []sentence) {
	var one sentence
	for line := range strings.Lines(e.text) {
		line = strings.TrimSuffix(line, "\n")
		if hint, ok := strings.CutPrefix(line, "hint: "); ok {
			one.hint = hint
			all, one = append(all, one), sentence{}
		} else {
			one.lines = append(one.lines, line)
		}
	}
	if one.hint = e.hint; len(one.lines) > 0 || e.hint != "" {
		all = append(all, one)
	}
	return all
}

// fail says why a command ended, for people or for programs, and returns its exit code.
func (p *program) fail(err error) int {
	exit := exitOf(err)
	exit.text = p.inOneLine(exit.text)
	p.refusal.Store(&exit)
	for _, one := range exit.sentences() {
		if p.json {
			p.failJSON(one, exit.code)
			continue
		}
		for _, line := range one.lines {
			fmt.Fprintf(p.Err, "leadferry: %s\n", report.Escape(line))
		}
		if one.hint != "" {
			fmt.Fprintf(p.Err, "hint: %s\n", report.Escape(one.hint))
		}
	}
	return exit.code
}

func (p *program) failJSON(one sentence, code int) {
	fields := []any{slog.Int("exit_code", code)}
	if one.hint != "" {
		fields = append(fields, slog.String("hint", report.Escape(one.hint)))
	}
	p.jsonLog().Error(report.Escape(strings.Join(one.lines, "; ")), fields...)
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

// joined is the error in one sentence with one hint.
func (e *exitError) joined() *exitError {
	var texts, hints []string
	for _, one := range e.sentences() {
		texts = append(texts, one.lines...)
		if one.hint != "" {
			hints = append(hints, one.hint)
		}
	}
	return &exitError{e.code, strings.Join(texts, "; "), strings.Join(hints, "; ")}
}
