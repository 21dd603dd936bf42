package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer/report"
)

func (p *program) checkpointCommand() *cli.Command {
	commands := []*cli.Command{
		p.statusCommand(), p.exportCommand(), p.historyCommand(), p.resolveCommand(),
		p.adoptCommand(), p.forgetCommand(), p.checkCommand(), p.repairCommand(),
	}
	for _, c := range commands {
		if c.Name != "repair" { // which names its files
			c.Flags = append(c.Flags, checkpointFlags()...)
		}
		c.Flags = append(c.Flags, connectionFlags()...)
		action := c.Action
		c.Action = func(c *cli.Context) error { return sayingDiskErrors(action(c)) }
	}
	return &cli.Command{
		Name: "checkpoint", Usage: "look at what is known of the leads, and settle rows in doubt",
		Description: `The checkpoint is leadferry's only memory of the leads that it made: the service
cannot be asked. Without --checkpoint the one of the target is used.

Example:

   leadferry checkpoint export --state in_doubt --sandbox

Exit codes: 0 done; 2 usage error or no checkpoint at the path; 3 it could not be
written, or standard output is closed; 4 it is locked, damaged or of another target.`,
		Subcommands: commands,
		Action:      func(c *cli.Context) error { return cli.ShowSubcommandHelp(c) },
	}
}

func (p *program) statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "what the checkpoint knows, and its last runs",
		Description: `Shows how many rows are in each state, how many leads stand in each status, the
last runs with their counts, and decisions that something found since contradicts.
While a run goes on it shows what that run wrote down last, a second ago at most.

Example:

   leadferry checkpoint status --sandbox

Exit codes: 0 done; 2 no checkpoint; 4 damaged, or locked by another command.`,
		Action: func(c *cli.Context) error {
			path, o, target, err := p.existing(c)
			if err != nil {
				return err
			}
			s, err := bolt.ReadStatus(path, target, o)
			if err == nil {
				p.status(&s)
			}
			return err
		},
	}
}

func (p *program) status(s *checkpoint.Status) {
	fmt.Fprintf(p.Out, "checkpoint  %s\ntarget      %s, trunk %s\n", report.Escape(s.Path), report.Escape(s.Target.LeadsURL), report.Escape(s.Target.TrunkID))
	if s.Process != 0 {
		fmt.Fprintf(p.Out, "a run goes on (process %d); as of %s, rows in flight count as in doubt:\n", s.Process, s.At.Format(time.RFC3339))
	}
	p.printCounts(s.Keys)
	p.warn(s.Warnings)
	if len(s.Statuses) > 0 {
		fmt.Fprintln(p.Out, "\nleads by status last confirmed")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Statuses)) {
		fmt.Fprintf(p.Out, "%-22s  %d\n", report.Escape(cmp.Or(name, "not known")), s.Statuses[name])
	}
	if len(s.Runs) > 0 {
		fmt.Fprintln(p.Out, "\nlast runs")
	}
	for _, r := range s.Runs {
		fmt.Fprintf(p.Out, "%s  %s  %-8s  %-11s  %s\n", r.Started.UTC().Format(time.RFC3339), report.Escape(r.ID), report.Escape(r.Command), report.Escape(r.Outcome), report.Escape(countsText(r.Counts)))
	}
	p.followUp(s)
}

func (p *program) printCounts(counts map[checkpoint.State]int) {
	for _, s := range []checkpoint.State{checkpoint.Created, checkpoint.Partial, checkpoint.Rejected, checkpoint.InDoubt} {
		fmt.Fprintf(p.Out, "%-10s  %d\n", s, counts[s])
	}
	for _, s := range []checkpoint.State{checkpoint.NotMade, checkpoint.Forgotten} {
		if counts[s] > 0 {
			fmt.Fprintf(p.Out, "%-10s  %d\n", s, counts[s])
		}
	}
}

// counted is a number and what it counts.
type counted struct {
	n    int
	text string
}

// tellCounts prints those that are not 0.
func (p *program) tellCounts(list []counted, number func(int) string) {
	for _, one := range list {
		if one.n > 0 {
			fmt.Fprintln(p.Out, number(one.n)+" "+one.text)
		}
	}
}

func (p *program) warn(warnings []string) {
	for _, text := range warnings {
		fmt.Fprintf(p.Err, "warning: %s\n", report.Escape(text))
	}
}

// followUp says what a person has to look at.
func (p *program) followUp(s *checkpoint.Status) {
	at := " --checkpoint " + report.Quote(s.Path)
	if n := s.Keys[checkpoint.InDoubt]; n > 0 && s.Process == 0 {
		fmt.Fprintf(p.Out, "\n%d in doubt: list them with leadferry checkpoint export --state in_doubt%s, look each up in the console, write what you found into lead_id, and settle them with leadferry checkpoint resolve FILE.csv%s\n", n, at, at)
	}
	for _, x := range s.Contradictions {
		text := fmt.Sprintf("\ncontradicted: on %s a person decided about %s: %s; on %s: %s", day(x.Decided), report.Escape(x.Key), decisionText(x.Decision), day(x.Found), x.Text)
		if x.Other != "" {
			text += " (" + report.Escape(x.Other) + ")"
		}
		fmt.Fprintln(p.Out, text+": look both up in the console")
	}
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

func countsText(counts map[string]int) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			text += fmt.Sprintf(" %s %d", name, counts[name])
		}
	}
	if text == "" {
		return "nothing"
	}
	return text[1:]
}
