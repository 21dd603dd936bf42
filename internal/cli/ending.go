package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
)

// ending is what a command that carries rows owes to those who watch it: figures, a
// summary, a last line in the log and the command of --on-finish, however it ends.
type ending struct {
	c        *cli.Context // nil: the command line could not be read
	run      string
	command  string
	metrics  *metrics // nil: none wanted
	onFinish string
	asJSON   bool                           // --summary -
	log      *slog.Logger                   // set with summary
	summary  atomic.Pointer[report.Summary] // nil: the run was refused
}

const badMetrics = "the metrics file is not right"

// refusal is why a command ended without a summary.
type refusal struct{ reason, hint string }

// refusalOf parts the hints that stand among the sentences of an error from these.
func refusalOf(text, hint string) *refusal {
	var reasons, hints []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if own, ok := strings.CutPrefix(line, "hint: "); ok {
			hints = append(hints, own)
		} else {
			reasons = append(reasons, line)
		}
	}
	if hint != "" {
		hints = append(hints, hint)
	}
	return &refusal{strings.Join(reasons, "; "), strings.Join(hints, "; ")}
}

// watch makes the commands that carry rows owe an ending from before anything of theirs
// can fail.
func (p *program) watch(commands []*cli.Command) {
	for _, c := range commands {
		if !carriesRows(c.Name) {
			continue
		}
		before := c.Before
		c.Before = func(c *cli.Context) error {
			p.ending.Store(p.endingOf(c))
			if before == nil {
				return nil
			}
			return before(c)
		}
	}
}

func carriesRows(command string) bool {
	return slices.Contains([]string{"import", "sync", "validate"}, command)
}

func (p *program) endingOf(c *cli.Context) *ending {
	e := &ending{c: c, run: newRunID(), command: c.Command.Name, onFinish: c.String("on-finish"), asJSON: c.String("summary") == "-"}
	if path := c.String("metrics"); path != "" && !c.Bool("dry-run") {
		e.metrics = &metrics{path: path}
	}
	return e
}

// unread is the ending of a command line that could not be read; nil where it is of no
// command that carries rows.
func (p *program) unread() *ending {
	i := slices.IndexFunc(p.args, carriesRows)
	if i < 0 || slices.ContainsFunc(p.args, func(a string) bool { return a == "--dry-run" }) {
		return nil
	}
	e := &ending{run: newRunID(), command: p.args[i], onFinish: argument(p.args, "on-finish"), asJSON: argument(p.args, "summary") == "-"}
	if path := argument(p.args, "metrics"); path != "" {
		e.metrics = &metrics{path: path}
	}
	return e
}

// attributes tell the lines of one run in a log from those of others.
func (e *ending) attributes() []any {
	fields := []any{"run", e.run, "command", e.command}
	if e.c == nil {
		return fields
	}
	s := settingsOf(e.c)
	if s == nil {
		return fields
	}
	if !s.sandbox {
		fields = append(fields, "profile", s.profile.value)
	}
	if t := e.target(); t.LeadsURL != "" {
		fields = append(fields, "target", t.String())
	}
	return fields
}

// target is the service, as far as it is known.
func (e *ending) target() report.Target {
	if e.c == nil || settingsOf(e.c) == nil {
		return report.Target{}
	}
	t := targetOf(e.c)
	return report.Target{BaseURL: t.BaseURL, LeadsURL: t.LeadsURL, TrunkID: t.TrunkID}
}

// finish does what is owed at the end of a command, of which nothing changes its exit code.
func (p *program) finish(ctx context.Context, code int) int {
	e, refused := p.ending.Load(), p.refusal.Load()
	if e == nil && refused != nil {
		e = p.unread()
	}
	if e == nil || e.summary.Load() == nil && refused == nil {
		return code
	}
	bad := e.endMetrics(code)
	if ctx.Err() != nil { // somebody wants to be gone, perhaps because a stream takes nothing more
		return code
	}
	p.warnOf(badMetrics, bad)
	p.warnOf("--keep-runs", e.prune())
	if e.onFinish != "" {
		p.warnOf("--on-finish", e.runOnFinish(ctx, p, code))
	}
	if s := e.summary.Load(); s == nil {
		e.tellRefusal(p, code, refused)
	} else if p.jsonErrors && !(e.c.Bool("quiet") && code == importer.CodeComplete) {
		logEnd(e.log, s)
	}
	return code
}

// prune removes the folders of old runs beyond --keep-runs.
func (e *ending) prune() error {
	s := e.summary.Load()
	if s == nil || s.DryRun || e.c.Int("keep-runs") <= 0 {
		return nil
	}
	_, err := report.Prune(runsFolder, e.c.Int("keep-runs"), s.Target)
	return err
}

// warnOf says on standard error what went wrong beside the command itself.
func (p *program) warnOf(what string, err error) {
	switch {
	case err == nil:
	case p.jsonErrors:
		p.attributed(slog.New(slog.NewJSONHandler(escaping{&p.log}, nil))).Warn(what, "error", report.Escape(err.Error()))
	default:
		fmt.Fprintf(&p.log, "warning: %s: %s\n", what, report.Escape(err.Error()))
	}
}

// tellRefusal says for programs why there is no summary.
func (e *ending) tellRefusal(p *program, code int, r *refusal) {
	if p.jsonErrors {
		fields := append(e.attributes(), "outcome", "refused", "exit_code", code, "reason", report.Escape(r.reason), "rows", report.RowCounts{})
		if r.hint != "" {
			fields = append(fields, "hint", report.Escape(r.hint))
		}
		slog.New(slog.NewJSONHandler(escaping{p.Err}, nil)).Error("the run ended", fields...)
	}
	if !e.asJSON {
		return
	}
	b, err := json.MarshalIndent(struct {
		ExitCode int    `json:"exit_code"`
		Reason   string `json:"reason"`
		Hint     string `json:"hint"`
	}{code, r.reason, r.hint}, "", "  ")
	if err == nil {
		_, err = p.Out.Write(append(report.EscapeJSON(b), '\n'))
	}
	p.warnOf("the reason could not be written to standard output", err)
}

// runOnFinish runs the command of --on-finish with the summary's path and the exit code.
func (e *ending) runOnFinish(ctx context.Context, p *program, code int) error {
	words, err := commandWords("on-finish", e.onFinish)
	if err != nil {
		return err
	}
	path := ""
	if s := e.summary.Load(); s != nil {
		path = s.SummaryPath
	}
	c, cancel := started(ctx, append(words, path, strconv.Itoa(code)))
	defer cancel()
	if !p.jsonErrors { // where all of standard error is JSON, its words have no place
		c.Stdout, c.Stderr = p.Err, p.Err
	}
	if err := c.Run(); err != nil {
		return fmt.Errorf("the command %s", ended(err))
	}
	return nil
}

// endMetrics writes how the command ended. What cannot be written is told: leads matter
// more than their figures, and a time of last success that stands still is an alarm of
// its own.
func (e *ending) endMetrics(code int) error {
	m := e.metrics
	switch {
	case m == nil:
		return nil
	case m.began.Load():
		return m.file.End(e.summary.Load(), code, time.Now())
	case e.c != nil && m.mayBeMade(e.c), report.IsMetrics(m.path):
		f, err := report.NewMetrics(m.path)
		if err != nil {
			return nil // that was the reason of the refusal
		}
		run := report.MetricsRun{Command: e.command, Version: Version, Target: e.target(), Started: time.Now()}
		if e.c != nil {
			run.Mapping = e.c.String("mapping")
		}
		return f.Refused(run, code)
	}
	return nil
}

// argument is the value of a flag on a command line that cannot be read, or of its
// variable.
func argument(args []string, flag string) string {
	value := os.Getenv(variableOf(flag))
	for i, a := range args {
		name, joined, ok := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case a == "--":
			return value
		case !strings.HasPrefix(a, "-") || name != flag:
		case ok:
			value = joined
		case i+1 < len(args):
			value = args[i+1]
		}
	}
	return value
}
