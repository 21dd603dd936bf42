package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
)

// show prints the summary, for programs or for people. p.out notes if standard output is lost.
func (p *program) show(s *report.Summary) {
	silent := p.quiet && s.ExitCode == report.CodeComplete
	switch {
	case p.line.Given("summary").Value == "-":
		_ = s.WriteJSON(&p.out)
		if !silent && !p.json { // a reader of both streams as JSON lines gets nothing else
			_ = s.WriteText(p.Err, terminal.Width(p.Err), p.inkOf(p.Err))
		}
	case !silent && !(p.json && p.quiet):
		_ = s.WriteText(&p.out, terminal.Width(p.Out), p.inkOf(p.Out))
	}
}

// conclude takes over the run's exit code. If nobody reads standard output any more, all is recorded but nobody saw it:
// the exit code, the log and the metrics say so.
func (p *program) conclude(s *report.Summary, unseen error) {
	if unseen != nil {
		p.out.lost = nil // reported here
		why := cmp.Or(exit.OutputLost(unseen).Text, "standard output was closed")
		s.Stopped(why, "all is recorded: only what is printed was not seen")
		if !p.json {
			fmt.Fprintf(p.Err, "leadferry: %s; files and checkpoint are complete\n", why)
		}
	}
	p.code = s.ExitCode
}

// stopping tells a person who interrupts a run what it waits for.
func (p *program) stopping() {
	if p.ending != nil || p.line.Command.Name == "login" {
		p.tell(slog.LevelWarn, "",
			"stopping: nothing more is sent, answers under way are waited for (Ctrl-C again stops at once)")
	}
}

// screen shows a person what is important before a run begins, and asks.
type screen struct {
	*program
	c    *cli.Context
	o    *importer.Options
	asks bool // before it makes leads for good
	rows int  // the most that the run may read; 0: not known
}

// watch makes the run show its progress to a person until end is called.
func (p *program) watch(c *cli.Context, in *inputs.Files, o *importer.Options) (end func()) {
	v, live := &screen{program: p, c: c, o: o}, p.ending.live.Load()
	shows := !p.quiet && !c.Bool("no-progress")
	onTerminal := shows && terminal.Is(p.Err)
	v.asks = o.Command == "import" && !o.DryRun && !c.Bool("sandbox") && !c.Bool("yes") && p.person(c).CanAnswer()
	if onTerminal || v.asks || live != nil {
		parts := max(1, o.Shard.Of) // a shard has about its share of the rows
		v.rows = (in.Count(o.Limit) + parts - 1) / parts
	}
	var progress *report.Progress
	if shows || live != nil {
		o.Live = func(s *report.Summary) {
			if s.Total = v.rows; live != nil {
				live.Show(s)
			}
			if progress != nil {
				progress.Update(s)
			}
		}
	}
	o.Begin = v.begin
	if !shows {
		return func() {}
	}
	progress = report.NewProgress(report.ProgressOptions{
		Out: p.Err, Terminal: onTerminal, Width: func() int { return terminal.Width(p.Err) }, Log: o.Log, Total: v.rows,
	})
	if onTerminal {
		p.log.Redirect(progress)
	}
	return func() {
		progress.Stop()
		p.log.Redirect(p.Err)
	}
}

// begin announces the run, and asks if needed.
func (v *screen) begin(s *importer.Start) error {
	v.announce(s)
	if live := v.ending.live.Load(); live != nil { // also with --quiet: the user asked for the page
		v.tell(slog.LevelInfo, "", "page: "+live.URL())
	}
	err := v.checkWitnesses(s)
	if err == nil && v.asks {
		err = v.ask(s)
	}
	switch {
	case err != nil:
		return err
	case !v.hold.Take():
		return exit.ErrInterrupted
	}
	if v.ending.metrics != "" { // monitoring learns that the run really begins
		v.warnOf(badMetrics, report.WriteMetrics(v.ending.metrics, v.newSummary()))
	}
	return nil
}

// announce says which checkpoint the run uses: the same one makes nothing twice, a new one knows nothing yet.
func (v *screen) announce(s *importer.Start) {
	known := s.Checkpoint
	switch {
	case known.Path == "":
	case v.json && !v.quiet:
		v.o.Log.Info("checkpoint", "path", known.Path, "new", known.New, "leads", known.Leads, "in_doubt", known.InDoubt)
	case known.New:
		v.say("checkpoint: " + known.Path + " (new: no lead is known yet)")
	default:
		v.say(fmt.Sprintf("checkpoint: %s (knows %s, %s in doubt)", known.Path, leads(known.Leads),
			humanize.Comma(int64(known.InDoubt))))
	}
	to := v.o.Target
	v.warn(slices.Concat(s.Warnings, exposed(outputsOf(v.c, v.o.Files.Dir)),
		[]string{leadapi.MixedRegions(to.BaseURL, to.LeadsURL)})...)
	notes := s.Notes
	if known.Path != "" {
		notes = slices.Concat(notes, v.settings.RouteNotes())
	}
	for _, text := range notes {
		v.say("note: " + text)
	}
}

// checkWitnesses refuses a run if the judgement of the witnesses does, unless a person has answered: with
// --new-checkpoint and the ID that the refusal names, or at a terminal, where Enter means no. --yes is no answer.
func (v *screen) checkWitnesses(s *importer.Start) error {
	if s.Judgement == nil || v.o.DryRun {
		return nil
	}
	answer := v.o.Answer
	refused := s.Judgement.Refuse(answer)
	if errors.Is(refused, checkpoint.ErrAnswersNothing) {
		return exit.Usage("--new-checkpoint="+answer+" answers nothing: nothing speaks against this checkpoint",
			"leave it out")
	}
	person := v.person(v.c)
	if refused == nil || s.Judgement.Question() == "" || person.Yes || !person.CanAnswer() {
		return refused
	}
	err := person.Confirm(spelling.Escape(s.Checkpoint.Path)+": "+spelling.Escape(s.Judgement.Question())+".\nLeads "+
		"that were made there would be made a second time. Make leads with this checkpoint?", "nothing was sent", "")
	if err == nil || exit.Of(err).Code != exit.CodeUsage {
		return err
	}
	return refused // it names the ways out
}

// ask asks before the run makes leads for good.
func (v *screen) ask(s *importer.Start) error {
	state := "the checkpoint knows " + leads(s.Checkpoint.Leads)
	if s.Checkpoint.Leads == 0 && s.Checkpoint.InDoubt == 0 {
		state = "the checkpoint knows no lead yet: rows imported earlier from another checkpoint would be made again"
	}
	return v.person(v.c).Confirm(fmt.Sprintf("About to create %s for trunk %s at %s; %s.\nLeads cannot be deleted. "+
		"Go on?", v.howMany(), spelling.Escape(v.o.Target.TrunkID), v.o.Target.LeadsURL, state), "nothing was sent",
		"answer y, or add --yes")
}

// howMany says in words how many leads the run may make.
func (v *screen) howMany() string {
	switch {
	case v.rows == 0:
		return "an unknown number of leads"
	case v.o.Shard.Of > 1:
		return fmt.Sprintf("about %s, the rows of part %d/%d,", leads(v.rows), v.o.Shard.Index, v.o.Shard.Of)
	}
	return "up to " + leads(v.rows)
}

// leads returns a number of leads as people write it.
func leads(n int) string {
	return humanize.Comma(int64(n)) + " " + english.PluralWord(n, "lead", "")
}

// serveWeb serves a page if --web asks for one, and returns nil if not.
func serveWeb[Page any](c *cli.Context, serve func(addr string) (*Page, error)) (*Page, error) {
	addr := c.String("web")
	if wanted, err := strconv.ParseBool(addr); err == nil {
		addr = map[bool]string{true: "127.0.0.1:0"}[wanted]
	}
	if addr == "" {
		return nil, nil
	}
	page, err := serve(addr)
	if err != nil {
		return nil, exit.Usage(fmt.Sprintf("--web cannot be served: %v", err),
			"it takes an address of this machine alone with a free port, for example --web=127.0.0.1:8080")
	}
	return page, nil
}
