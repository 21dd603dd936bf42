package cli

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/leadapi"
)

// jsonLog reports whether standard error is read by a program, so that whatever goes
// there has to be one JSON object a line.
func jsonLog(c *cli.Context) bool { return c.String("log-format") == "json" }

// wantsJSON finds --log-format json on a command line that may not be readable: its
// errors go where the log goes.
func wantsJSON(args []string) bool { return argument(args, "log-format") == "json" }

// attributed is a log whose lines tell of which run they are.
func (p *program) attributed(log *slog.Logger) *slog.Logger {
	if e := p.ending.Load(); e != nil {
		return log.With(e.attributes()...)
	}
	return log
}

// failJSON is fail's sentences for a program, one object an error.
func (p *program) failJSON(text, hint string, code int) {
	log := p.attributed(slog.New(slog.NewJSONHandler(p.Err, nil)))
	var told []string
	end := func(hint string) {
		if len(told) == 0 {
			return
		}
		fields := []any{"exit_code", code}
		if hint != "" {
			fields = append(fields, "hint", report.Escape(hint))
		}
		log.Error(report.Escape(strings.Join(told, "; ")), fields...)
		told = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if own, ok := strings.CutPrefix(line, "hint: "); ok {
			end(own)
		} else {
			told = append(told, line)
		}
	}
	end(hint)
}

// trace tells each call of the service at --log-level debug; nil where nobody wants to
// know. The service's own words are left out: they may quote a row.
func trace(log *slog.Logger) func(leadapi.Call) {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	return func(c leadapi.Call) {
		fields := []any{
			"method", c.Method, "kind", c.Kind, "status", c.Status, "began", c.Began.UTC().Format(time.RFC3339Nano),
			"took_ms", c.Duration.Microseconds() / 1000, "waited_ms", c.Waited.Microseconds() / 1000,
			"sent", c.Sent, "received", c.Received, "reused", c.Reused,
		}
		if e := c.Fault; e != nil {
			fields = append(fields, "applied", e.Applied.String(), "reason", e.Reason)
			if e.Status == 0 {
				fields = append(fields, "cause", report.Escape(e.Message))
			}
		}
		log.Debug("call", fields...)
	}
}

// logStart is announce for a program. Warnings are no sign that all goes well, so
// --quiet leaves them.
func logStart(log *slog.Logger, s *importer.Start, quiet bool) {
	warnings := s.Warnings
	if text := mixedRegions(s.Target); text != "" {
		warnings = append(warnings[:len(warnings):len(warnings)], text)
	}
	for _, text := range warnings {
		log.Warn(report.Escape(text))
	}
	if quiet {
		return
	}
	if s.Checkpoint != "" {
		log.Info("checkpoint", "path", s.Checkpoint, "new", s.New, "leads", s.Leads, "in_doubt", s.InDoubt)
	}
	for _, text := range s.Notes {
		log.Info(report.Escape(text))
	}
}

// logEnd is the summary's text for a program: how the run ended and its rows.
func logEnd(log *slog.Logger, s *report.Summary) {
	fields := []any{"outcome", s.Outcome, "exit_code", s.ExitCode}
	if s.StopReason != "" {
		fields = append(fields, "reason", report.Escape(s.StopReason))
	}
	if s.Hint != "" {
		fields = append(fields, "hint", report.Escape(s.Hint))
	}
	if s.SummaryPath != "" {
		fields = append(fields, "summary", s.SummaryPath)
	}
	fields = append(fields, slog.Float64("duration_s", s.DurationS), slog.Any("rows", s.Rows))
	switch s.ExitCode {
	case importer.CodeComplete:
		log.Info("the run ended", fields...)
	case importer.CodeAttention, importer.CodeInterrupted:
		log.Warn("the run ended", fields...)
	default:
		log.Error("the run ended", fields...)
	}
}
