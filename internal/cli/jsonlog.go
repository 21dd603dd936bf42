package cli

import (
	"log/slog"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
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
