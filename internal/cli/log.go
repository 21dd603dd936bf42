package cli

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/terminal"
	"leadferry/leadapi"
)

// logger writes to standard error as --log-level and --log-format say.
func (p *program) logger(c *cli.Context) (*slog.Logger, error) {
	var o slog.HandlerOptions
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return nil, exit.Usage("--log-level: no such level", "use debug, info, warn or error")
	}
	o.Level = level
	if p.json {
		return p.attributed(slog.New(slog.NewJSONHandler(terminal.Escaping{To: &p.log}, &o))), nil
	}
	return slog.New(slog.NewTextHandler(&p.log, &o)), nil
}

// jsonLog is where a program reads errors and warnings, one JSON object a line.
func (p *program) jsonLog() *slog.Logger {
	return p.attributed(slog.New(slog.NewJSONHandler(terminal.Escaping{To: &p.log}, nil)))
}

// attributed is a log whose lines tell of which run they are.
func (p *program) attributed(log *slog.Logger) *slog.Logger {
	if p.ending == nil {
		return log
	}
	log = log.With("run", p.ending.run, "command", p.ending.command)
	s := p.settings.Load()
	if s == nil {
		return log
	}
	if !s.Sandbox {
		log = log.With("profile", s.Profile.Value)
	}
	if t := report.Target(s.Target()); t.LeadsURL != "" {
		log = log.With("target", t.String())
	}
	return log
}

// trace tells each call of the service at --log-level debug; nil where nobody wants to
// know. The service's own words are left out: they may quote a row.
func trace(log *slog.Logger) func(leadapi.Call) {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return func(c leadapi.Call) {
		d := c.Detail
		fields := []any{
			"method", c.Method, "kind", c.Kind, "status", c.Status, "host", d.Host, "path", d.Path, "began", c.Began.UTC().Format(time.RFC3339Nano),
			"took_ms", ms(c.Duration), "waited_ms", ms(c.Waited), "dns_ms", ms(d.DNS), "connect_ms", ms(d.Connect), "tls_ms", ms(d.Handshake), "first_byte_ms", ms(d.FirstByte),
			"sent", c.Sent, "received", c.Received, "reused", c.Reused,
		}
		for _, one := range []struct{ name, text string }{
			{"tls", d.TLS}, {"proxy", d.Proxy}, {"headers", report.Escape(strings.Join(d.Headers, ","))}, {"request_id", d.RequestID},
		} {
			if one.text != "" {
				fields = append(fields, one.name, one.text)
			}
		}
		if e := c.Fault; e != nil {
			fields = append(fields, "applied", e.Applied.String(), "reason", e.Reason)
			if e.Status == 0 {
				fields = append(fields, "message", report.Escape(e.Message))
			}
		}
		if d.Cause != "" {
			fields = append(fields, "cause", d.Cause)
		}
		log.Debug("call", fields...)
	}
}

// singleUse says that creates go on connections of their own from now on, which takes longer.
func singleUse(log *slog.Logger) func(host string) {
	return func(host string) {
		log.Warn(host + " closed a connection that was used again, or fell silent on it, without a word: from now on each create goes over a connection of its own")
	}
}

// logStart is announce for a program. Warnings are no sign that all goes well, so
// --quiet leaves them.
func logStart(log *slog.Logger, s *importer.Start, warnings, notes []string, quiet bool) {
	for _, text := range warnings {
		log.Warn(report.Escape(text))
	}
	if quiet {
		return
	}
	if s.Checkpoint != "" {
		log.Info("checkpoint", "path", s.Checkpoint, "new", s.New, "leads", s.Leads, "in_doubt", s.InDoubt)
	}
	for _, text := range notes {
		log.Info(report.Escape(text))
	}
}

// logEnd is the summary's text for a program: how the run ended and its rows.
func logEnd(log *slog.Logger, s *report.Summary) {
	fields := []any{"outcome", s.Outcome, "exit_code", s.ExitCode}
	for _, one := range []struct{ name, text string }{
		{"reason", report.Escape(s.StopReason)}, {"hint", report.Escape(s.Hint)}, {"summary", s.SummaryPath},
	} {
		if one.text != "" {
			fields = append(fields, one.name, one.text)
		}
	}
	fields = append(fields, slog.Float64("duration_s", s.DurationS), slog.Any("rows", s.Rows))
	if r := s.Reconciliation; r != nil {
		verdicts := map[string]int{}
		for _, v := range r.Verdicts {
			verdicts[v.Verdict] = v.Leads
		}
		if fields = append(fields, slog.Any("verdicts", verdicts)); r.Sample != nil {
			fields = append(fields, slog.Any("sample", r.Sample))
		}
	}
	level := slog.LevelError
	switch s.ExitCode {
	case importer.CodeComplete:
		level = slog.LevelInfo
	case importer.CodeAttention, importer.CodeInterrupted:
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, "the run ended", fields...)
}

// logRefusal says for a program why a run did not begin.
func logRefusal(log *slog.Logger, e *exit.Error) {
	fields := []any{"outcome", "refused", "exit_code", e.Code, "reason", report.Escape(e.Text), "rows", report.RowCounts{}}
	if e.Hint != "" {
		fields = append(fields, "hint", report.Escape(e.Hint))
	}
	log.Error("the run ended", fields...)
}
