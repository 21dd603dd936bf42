package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
)

// conduct makes the one call of a run, shows its way to a person and turns its
// summary into the exit code.
func (p *program) conduct(c *cli.Context, in *inputs, o importer.Options, run func(context.Context, importer.Options) (*report.Summary, error)) error {
	end := p.ending.Load()
	if _, err := commandWords("on-finish", end.onFinish); end.onFinish != "" && err != nil {
		end.onFinish = ""
		return err
	}
	if err := oneOf(c, "results-columns", "own", "all"); err != nil {
		return err
	}
	o.OwnColumns = c.String("results-columns") == "all"
	if err := end.metrics.open(); err != nil {
		return err
	}
	named := outputsOf(o.Files, c.String("metrics"))
	o.Warnings = named.exposed()
	shown := &screen{program: p, c: c, log: o.Log, ended: make(chan struct{})}
	shown.watched = terminal(p.Err) && !c.Bool("quiet") && !c.Bool("no-progress")
	shown.asks = p.asks(c, o)
	if shown.watched || shown.asks {
		shown.rows = in.count(o.Limit)
	}
	o.Begin = func(s *importer.Start) error {
		if err := shown.begin(s, o.DryRun); err != nil {
			return err
		}
		if s.Checked != nil {
			<-s.Checked // nothing could be looked up meanwhile, and a signal still ends the wait
		}
		if !p.hold.take() {
			return errInterrupted
		}
		p.warnOf(badMetrics, end.metrics.begin(s, &o))
		return nil
	}
	o.Progress, o.LetGo = shown.update, in.letGo
	sends, ended := processors()
	defer ended()
	o.Sends = sends
	requests := new(spool) // told once the checkpoint is closed
	o.Request = func(r importer.Request) error { return printRequest(requests, r) }
	s, err := run(c.Context, o)
	shown.end()
	if err != nil {
		return err
	}
	err = requests.tell(p.Out)
	if err == nil {
		err = p.show(c, s, o)
	}
	p.conclude(c, s, err)
	end.log = o.Log
	end.summary.Store(s)
	return nil
}

// screen is what a person sees of a run on its way.
type screen struct {
	*program
	c             *cli.Context
	log           *slog.Logger
	watched, asks bool
	rows          int // 0: not known
	progress      *report.Progress
	ended         chan struct{}
	notice        sync.WaitGroup
}

// begin announces the run, asks where that is due, and shows the progress from then on.
func (v *screen) begin(s *importer.Start, dryRun bool) error {
	v.announce(v.c, s, v.log)
	if v.asks {
		if err := v.ask(s, v.rows); err != nil {
			return err
		}
	}
	v.notice.Go(func() { v.noticeStop(v.c, v.ended, v.log) })
	if v.c.Bool("quiet") || v.c.Bool("no-progress") {
		return nil
	}
	v.progress = report.NewProgress(report.ProgressOptions{
		Out: v.Err, Terminal: v.watched, Width: func() int { return width(v.Err) }, Log: v.log, Total: v.rows,
		DryRun: dryRun || v.c.Command.Name == "validate",
	})
	if v.watched {
		v.program.log.redirect(v.progress)
	}
	return nil
}

func (v *screen) update(t importer.Progress) {
	if v.progress != nil {
		v.progress.Update(report.Tick(t))
	}
}

func (v *screen) end() {
	close(v.ended)
	v.notice.Wait()
	if v.progress != nil {
		v.progress.Stop()
		v.program.log.redirect(v.Err)
	}
}

// noticeStop tells whoever interrupts the run what it is waiting for.
func (p *program) noticeStop(c *cli.Context, ended <-chan struct{}, log *slog.Logger) {
	select {
	case <-p.interrupt:
	case <-ended:
		return
	}
	select {
	case <-time.After(moment): // from here on, another signal is the second
	case <-ended:
		return
	}
	const notice = "stopping: nothing more is sent, answers under way are waited for"
	if jsonLog(c) {
		log.Warn(notice)
		return
	}
	fmt.Fprintln(&p.log, notice+" (Ctrl-C again stops at once)")
}

// announce says which checkpoint the run meets: the same one means that nothing is
// made twice, a new one that nothing is known yet.
func (p *program) announce(c *cli.Context, s *importer.Start, log *slog.Logger) {
	if jsonLog(c) {
		logStart(log, s, c.Bool("quiet"))
		return
	}
	w := p.say(c)
	switch {
	case s.Checkpoint == "":
	case s.New:
		fmt.Fprintf(w, "checkpoint: %s (new: no lead is known yet)\n", report.Escape(s.Checkpoint))
	default:
		fmt.Fprintf(w, "checkpoint: %s (knows %s, %d in doubt)\n", report.Escape(s.Checkpoint), english.Plural(s.Leads, "lead", ""), s.InDoubt)
	}
	for _, text := range s.Warnings {
		fmt.Fprintf(w, "warning: %s\n", report.Escape(text))
	}
	if text := mixedRegions(s.Target); text != "" {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
	for _, text := range s.Notes {
		fmt.Fprintf(w, "note: %s\n", report.Escape(text))
	}
}

// asks reports whether a person is asked before leads are made for good.
func (p *program) asks(c *cli.Context, o importer.Options) bool {
	return c.Command.Name == "import" && !o.DryRun && !c.Bool("sandbox") && !c.Bool("yes") &&
		terminal(p.In) && terminal(p.Err)
}

func (p *program) ask(s *importer.Start, rows int) error {
	state := fmt.Sprintf("the checkpoint knows %s", english.Plural(s.Leads, "lead", ""))
	if s.Leads == 0 && s.InDoubt == 0 {
		state = "the checkpoint knows no lead yet: rows imported earlier from another checkpoint would be made again"
	}
	if s.Anew != "" {
		state = "the checkpoint " + report.Escape(s.Anew) + ": a new one is begun, and these leads would be made again"
	}
	many := "an unknown number of leads"
	if rows > 0 {
		many = "up to " + english.Plural(rows, "lead", "")
	}
	yes, err := p.confirm(fmt.Sprintf("About to create %s for trunk %s at %s; %s.\nLeads cannot be deleted. Go on?",
		many, report.Escape(s.Target.TrunkID), s.Target.LeadsURL, state))
	if err != nil || yes {
		return err
	}
	return usage("nothing was sent", "answer y, or add --yes")
}

// confirm asks a person on the terminal. Anything but a yes is a no; an interruption is
// errInterrupted.
func (p *program) confirm(question string) (bool, error) {
	fmt.Fprint(p.Err, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(p.In).ReadString('\n') // no answer is a no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		return a == "y" || a == "yes", nil
	case <-p.interrupt:
		fmt.Fprintln(p.Err)
		return false, errInterrupted
	}
}

// printRequest shows one request exactly as it would be sent.
func printRequest(w io.Writer, r importer.Request) error {
	_, err := fmt.Fprintf(w, "# %s:%d\n%s %s\n%s\n\n", report.Escape(r.File), r.Line, r.Method, r.Path, report.EscapeJSON(r.Body))
	return err
}

// show prints the summary, for programs or for people. Its error is one of standard output.
func (p *program) show(c *cli.Context, s *report.Summary, o importer.Options) error {
	out := p.Out
	if o.Files.Summary == "-" {
		if err := s.WriteJSON(p.Out); err != nil {
			return err
		}
		out = p.Err
	}
	quiet := c.Bool("quiet")
	if quiet && s.ExitCode == importer.CodeComplete || jsonLog(c) && (quiet || out == p.Err) {
		return nil // who collects JSON lines from both streams gets nothing else
	}
	if err := s.WriteText(out, width(out)); err != nil && out == p.Out {
		return err
	}
	return nil
}

// conclude takes over the run's exit code. Where the reader of standard output has gone,
// all is recorded, but nobody saw it, and the summary says so.
func (p *program) conclude(c *cli.Context, s *report.Summary, unseen error) {
	const closed = "standard output was closed; the run's files and the checkpoint are complete"
	if unseen != nil {
		if s.ExitCode != importer.CodeStopped {
			s.Stopped("standard output was closed", "all is recorded: only what is printed was not seen")
		}
		if !jsonLog(c) {
			fmt.Fprintln(p.Err, "leadferry: "+closed)
		}
		p.warnOf("the summary does not say so", s.Amend())
	}
	p.code = s.ExitCode
}
