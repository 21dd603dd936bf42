package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
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

// stateDir is leadferry's folder in the user's state directory, or among the user's own
// application data where there is none.
func stateDir() (string, error) {
	switch runtime.GOOS {
	case "darwin", "ios", "windows", "plan9":
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "leadferry", "state"), err
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leadferry"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "leadferry"), err
}

// checkpointPath is the checkpoint that is named, or the target's own.
func (p *program) checkpointPath(c *cli.Context) (string, error) {
	if path := c.String("checkpoint"); path != "" {
		return path, nil
	}
	t := p.target()
	if t.LeadsURL == "" || t.TrunkID == "" {
		return "", usage("no --leads-url and --trunk-id given, so the target is not known",
			"set them or their LEADFERRY_ variables, name a --checkpoint, or add --sandbox to try it out without an account")
	}
	return defaultCheckpoint(t)
}

// defaultCheckpoint is the one place where a target's checkpoint lies, whatever
// folder the program was started in.
func defaultCheckpoint(t checkpoint.Target) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", usage(fmt.Sprintf("the state directory is not known: %v", err), "name a file with --checkpoint")
	}
	if t == sandboxTarget {
		return filepath.Join(dir, "sandbox.db"), nil
	}
	u, err := url.Parse(t.LeadsURL)
	if err != nil || u.Hostname() == "" {
		return "", usage("--leads-url is not an address", "it looks like https://leads.example.com")
	}
	name := u.Hostname()
	if u.Port() != "" {
		name += "_" + u.Port()
	}
	return filepath.Join(dir, plainName(name+"-"+t.Canonical().TrunkID)+".db"), nil
}

// plainName keeps what may stand in a file name on every system.
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '_'
	}, s)
}

// makeStateDir makes the checkpoint's folder, for its owner alone.
func makeStateDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return usage(fmt.Sprintf("the checkpoint's folder cannot be made: %v", err), "name another file with --checkpoint")
	}
	return nil
}

// opening says how the checkpoint is opened that the flags name. A sandbox may always begin
// anew, for its leads are nobody's.
func opening(c *cli.Context) bolt.Options {
	return bolt.Options{
		Wait: c.Duration("wait"), AnyPlace: anyPlace(), Require: c.Bool("require-checkpoint"),
		Witnesses: witnesses(c), Named: c.String("checkpoint") != "", Anew: c.Bool("new-checkpoint") || c.Bool("sandbox"),
	}
}

// anyPlace tells whether the user takes responsibility for where the checkpoint lies.
func anyPlace() bool {
	yes, _ := strconv.ParseBool(os.Getenv("LEADFERRY_ANY_FILESYSTEM"))
	return yes
}

// existing is the checkpoint that the flags name, which must be there.
func (p *program) existing(c *cli.Context) (path string, o bolt.Options, t checkpoint.Target, err error) {
	if path, err = p.checkpointPath(c); err != nil {
		return path, o, t, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return path, o, t, usage("no checkpoint at "+path, "check --checkpoint, or the target's flags")
	}
	if t = p.target(); t.LeadsURL == "" || t.TrunkID == "" {
		t = checkpoint.Target{} // named by its path alone: whatever target it has
	}
	o = opening(c)
	o.Require = true
	return path, o, t, nil
}

// openCheckpoint opens one that must be there.
func (p *program) openCheckpoint(c *cli.Context, readOnly bool) (*bolt.Store, error) {
	path, o, target, err := p.existing(c)
	if err != nil {
		return nil, err
	}
	o.ReadOnly = readOnly
	return bolt.Open(path, target, o)
}

// withCheckpoint opens the checkpoint that is named, which must be there, as long as f takes.
func (p *program) withCheckpoint(c *cli.Context, readOnly bool, f func(*bolt.Store) error) error {
	db, err := p.openCheckpoint(c, readOnly)
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// mostFolders is how many run folders are asked for what they tell, the newest.
const mostFolders = 100

// witnesses are what the run folders at hand tell of checkpoints: those beside which this
// run's own will stand. The sandbox has none and is none: its leads are nobody's.
func witnesses(c *cli.Context) (all []checkpoint.Witness) {
	if c.Bool("sandbox") {
		return nil
	}
	for _, s := range report.Old(runParents(c), mostFolders) {
		if w := witnessOf(s); w.ID != "" && w.Target != sandboxTarget {
			all = append(all, w)
		}
	}
	return all
}

// runParents are the folders in which run folders stand.
func runParents(c *cli.Context) []string {
	parents := []string{runsFolder}
	out := c.String("out")
	if out == "" {
		out = os.Getenv("LEADFERRY_OUT") // of commands that have no run folder of their own
	}
	if out != "" && out != "none" {
		if whole, err := filepath.Abs(out); err == nil {
			out = whole
		}
		if parent := filepath.Dir(out); !slices.ContainsFunc(parents, func(p string) bool { return sameFile(p, parent) }) {
			parents = append(parents, parent)
		}
	}
	return parents
}

// witnessOf is what a summary tells of the checkpoint that its run used; nothing, if it used
// none.
func witnessOf(s *report.Summary) checkpoint.Witness {
	if s.Checkpoint.Path == "" || s.Checkpoint.ID == "" {
		return checkpoint.Witness{}
	}
	w := checkpoint.Witness{
		Source: s.SummaryPath, Path: s.Checkpoint.Path, ID: s.Checkpoint.ID, Sequence: s.Checkpoint.Sequence, Leads: s.Checkpoint.Leads,
		Ended: s.FinishedAt, Target: checkpoint.Target(s.Target),
	}
	if !s.DryRun && s.Requests.Create+s.Requests.Update > 0 {
		w.Run = s.RunID
		w.Made = min(s.Requests.Create, s.Rows.Created+s.Rows.Partial+s.Rows.InDoubt)
	}
	return w
}

// witnessIn is what the run whose files lie in a folder tells; nothing, if that says none.
func witnessIn(folder string) checkpoint.Witness {
	s, err := report.ReadOld(filepath.Join(folder, "summary.json"))
	if err != nil {
		return checkpoint.Witness{}
	}
	return witnessOf(s)
}
