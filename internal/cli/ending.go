package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer/report"
	runpage "leadferry/importer/report/page"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/external"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/disk"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
)

// logger returns the log on standard error, as --log-level and --log-format say: lines for people, or for programs a
// JSON object a line, with the run's ID. Errors are logged at every level. Empty texts are left out.
func (p *program) logger() *slog.Logger {
	withoutEmpty := func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Equal(slog.StringValue("")) {
			return slog.Attr{}
		}
		return a
	}
	options := &slog.HandlerOptions{Level: min(p.level, slog.LevelError), ReplaceAttr: withoutEmpty}
	if !p.json {
		return slog.New(slog.NewTextHandler(&p.log, options))
	}
	log := slog.New(slog.NewJSONHandler(terminal.Escaping{To: &p.log}, options))
	if p.ending == nil {
		return log
	}
	return log.With("run", p.run, "command", p.line.Command.Name, "profile", p.settings.Profile.Value,
		"target", strings.Trim(report.Target(p.settings.Target()).String(), "/"))
}

// trace returns a logger of calls for --log-level debug, else nil. It logs no text of the service: it may quote rows.
func trace(log *slog.Logger) func(leadapi.Call) {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return func(c leadapi.Call) {
		fields := []any{
			"method", c.Method, "kind", c.Kind, "status", c.Status, "url", c.URL,
			"began", c.Began.UTC().Format(time.RFC3339Nano), "took_ms", ms(c.Duration), "dialled_ms", ms(c.Dialled),
			"sent", c.Sent, "reused", c.Reused, "request_id", c.RequestID,
		}
		if e := c.Fault; e != nil {
			fields = append(fields, "applied", e.Applied.String(), "reason", e.Reason)
			if e.Status == 0 {
				fields = append(fields, "message", spelling.Escape(e.Message))
			}
		}
		log.Debug("call", append(fields, "cause", c.Cause)...)
	}
}

// logEnd logs how the run ended and its rows, for programs.
func logEnd(log *slog.Logger, s *report.Summary) {
	reason := s.StopReason
	if reason == "" && s.Wordless > 0 {
		reason = fmt.Sprintf("the pull file lacks %s: the CRM has no word for the status", leads(s.Wordless))
	}
	level := slog.LevelError
	switch s.ExitCode {
	case report.CodeComplete:
		level = slog.LevelInfo
	case report.CodeAttention, report.CodeInterrupted:
		level = slog.LevelWarn
	}
	fields := []any{
		"outcome", s.Outcome, "exit_code", s.ExitCode, "reason", spelling.Escape(reason),
		"hint", spelling.EscapeLine(s.Hint), "summary", s.SummaryPath, "duration_s", s.DurationS, "rows", s.Rows,
	}
	if r := s.Reconciliation; r != nil && r.Sample != nil {
		fields = append(fields, "sample", r.Sample)
	}
	log.Log(context.Background(), level, "the run ended", fields...)
}

// ending is what a command that handles rows must do at its end: figures, a summary, a last log line and --on-finish.
type ending struct {
	c        atomic.Pointer[cli.Context] // nil: the command line cannot be read
	onFinish external.Command            // nil: there is none, or it cannot be read
	mistake  error                       // in --on-finish
	metrics  string                      // "": none wanted
	began    time.Time
	summary  atomic.Pointer[report.Summary] // nil: the run was refused
	live     atomic.Pointer[runpage.Live]   // nil: there is none
}

// endingOf returns the ending of a command line; nil if its command does not handle rows.
func endingOf(l *flags.Line) *ending {
	if !slices.Contains([]string{"import", "sync", "reconcile", "validate"}, l.Command.Name) {
		return nil
	}
	e := &ending{began: time.Now()}
	if text := l.Typed["on-finish"]; text != "" {
		e.onFinish, e.mistake = external.Parse("on-finish", text)
	}
	if !l.Bool("dry-run") && flags.Named("metrics", l.Command.Flags) != nil {
		e.metrics = l.Given("metrics").Value
	}
	return e
}

// finish does what must be done at the end of a command, even of a refused one. It never changes the exit code.
func (p *program) finish(ctx context.Context, code int, refused *exit.Error) int {
	e := p.ending
	if e == nil || e.summary.Load() == nil && refused == nil {
		return code
	}
	s := e.summary.Load()
	if s == nil {
		s = p.newSummary()
		why := refused.Joined()
		s.Outcome, s.ExitCode, s.StopReason, s.Hint = report.Refused, why.Code, why.Text, why.Hint
	}
	bad := p.endMetrics(*s, code)
	if ctx.Err() != nil { // the user wants to leave, perhaps because a stream blocks
		return code
	}
	p.warnOf(badMetrics, bad)
	if live := e.live.Load(); live != nil {
		last := *s
		if last.Outcome == report.Refused {
			last.Outcome = "stopped"
		}
		p.warnOf("the live page did not end well", live.End(&last))
	}
	if s.Outcome == report.Refused {
		p.warnOf("the reason could not be written to standard output", p.printReason(refused))
	} else if keep := flags.Int(e.c.Load(), "keep-runs"); keep > 0 && !s.DryRun {
		p.warnOf("--keep-runs", s.Prune(report.RunsFolder, keep))
	}
	if e.onFinish != nil {
		p.warnOf("--on-finish", p.runOnFinish(ctx, s.SummaryPath, code))
	}
	if p.json && (code != report.CodeComplete || !p.quiet) {
		logEnd(p.logger(), s)
	}
	return code
}

// newSummary returns the summary of a command before its first row.
func (p *program) newSummary() *report.Summary {
	return &report.Summary{
		Outcome: report.Running, RunID: p.run, Command: p.line.Command.Name, Version: Version,
		StartedAt: p.ending.began, Target: report.Target(p.settings.Target()),
		Mapping: report.File{Path: p.line.Given("mapping").Value},
	}
}

// printReason says why there is no summary, for programs that asked for one.
func (p *program) printReason(why *exit.Error) error {
	if p.line.Given("summary").Value != "-" {
		return nil
	}
	b, err := json.MarshalIndent(why.Joined(), "", "  ")
	if err == nil {
		_, err = p.Out.Write(append(spelling.EscapeJSON(b), '\n'))
	}
	return err
}

// warnOf warns of an error in something beside the command itself.
func (p *program) warnOf(what string, err error) {
	if err != nil {
		text := what + ": " + err.Error() // a variable: the catalogue lists texts passed to warn
		p.warn(text)
	}
}

// runOnFinish runs --on-finish with the summary's path and the exit code. With --log-format json it drops its output.
func (p *program) runOnFinish(ctx context.Context, summary string, code int) error {
	to := io.Writer(p.Err)
	if p.json {
		to = nil
	}
	return append(p.ending.onFinish, summary, strconv.Itoa(code)).Run(ctx, to, to)
}

const badMetrics = "the metrics file is not right"

// endMetrics writes to --metrics how the command ended. It replaces a metrics file. It makes a new one only if nothing
// is there and no other file of the command has that path.
func (p *program) endMetrics(s report.Summary, code int) error {
	path, c := p.ending.metrics, p.ending.c.Load()
	if path == "" || report.CheckMetrics(path) != nil {
		return nil // the command was refused because this cannot be a metrics file
	}
	mayMake := c != nil && !disk.Exists(path) && p.keepOutputs(c, filesOf(c, ""), p.line.Files) == nil
	if !mayMake && !report.IsMetrics(path) {
		return nil
	}
	s.ExitCode = code // a signal may have changed it
	return report.WriteMetrics(path, &s)
}
