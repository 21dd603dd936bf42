package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/gocarina/gocsv"

	"leadferry/checkpoint"
	"leadferry/internal/shell"
)

// Step is one thing to do after a run, with the commands that do it.
type Step struct {
	Text     string   `json:"text"`
	Commands []string `json:"commands,omitempty"`
}

type steps []Step

func (l *steps) add(wanted bool, text string, commands ...string) {
	if wanted {
		*l = append(*l, Step{Text: text, Commands: commands})
	}
}

// Steps returns what to do now, first things first.
func (s *Summary) Steps() []Step {
	if s.read {
		return s.Next
	}
	var todo steps
	todo.add(s.Hint != "", capital(strings.TrimRight(s.Hint, "."))+".")
	if s.Outcome != Running && !(s.DryRun && s.Checks == nil) {
		s.afterwards(&todo)
	}
	for i := range todo {
		todo[i].Text = s.Holding(todo[i].Text)
		if s.Fleet != "" { // all workers have the first one's mapping and input: other ones need a new fleet
			todo[i].Text = strings.Replace(todo[i].Text, "run the same command again",
				"start all workers with another --fleet name", 1)
		}
	}
	return todo
}

// Holding adds --in-doubt hold to a text that asks for the same command or flags, if this run sent rows in doubt again.
// Without it, the next run would send them a third time.
func (s *Summary) Holding(text string) string {
	if !s.Resent || strings.Contains(text, "--in-doubt hold") {
		return text
	}
	return strings.NewReplacer("he same command", "he same command with --in-doubt hold",
		"flags of this run", "flags of this run, but with --in-doubt hold").Replace(text)
}

func (s *Summary) next(p *printer) {
	todo := s.Steps()
	p.heading("Next")
	if len(todo) == 0 {
		p.indented("Nothing to do.")
	}
	for i, st := range todo {
		p.wrap(fmt.Sprintf("  %d. ", i+1), "     ", st.Text)
		for _, c := range st.Commands {
			p.verbatim("     " + c)
		}
	}
}

// afterwards adds the steps after a run that ended, complete or not.
func (s *Summary) afterwards(todo *steps) {
	n := s.Rows
	s.keepIDs(todo)
	again := "Run the same command again: it goes on where this run stopped, and sends nothing twice."
	switch {
	case s.Reconciliation != nil || s.DryRun:
		again = "Run the same command again."
	case s.Fleet != "":
		again = "Start the ended workers again with the same commands: each goes on where it stopped and " +
			"sends nothing twice. If a limit of the fleet ended them, start all workers with another --fleet name: " +
			"with this one they would stop at once."
	}
	switch {
	case s.settled:
		todo.add(n.InDoubt > 0 && !s.halted(), "The rows in doubt have been settled since then. Start the workers "+
			"again with the same commands: they send and link what is left, and nothing twice.")
	case max(n.InDoubt, s.Standing) > len(s.Unkept):
		s.inDoubt(todo)
	}
	todo.add(s.halted() && !s.Same, again)
	s.Checks.steps(todo)
	if s.Reconciliation != nil {
		s.afterReconciling(todo)
	} else if n.Invalid+n.Rejected > 0 {
		s.correct(todo)
	}
	unsent := n.Failed + n.Partial
	if !s.DryRun {
		unsent += n.Pending
	}
	same := "Run the same command again"
	if s.Fleet != "" {
		same = "Start the workers again with the same commands"
	}
	todo.add(!s.halted() && unsent > 0, fmt.Sprintf("%s for the %s that did not get through.", same,
		english.Plural(unsent, "row", "")))
	todo.add(s.Pulled > 0 && len(s.paths("pull")) > 0, fmt.Sprintf("Load %s (%s) into the CRM.",
		strings.Join(s.paths("pull"), ""), english.Plural(s.Pulled, "lead", "")))
	todo.add(s.Wordless > 0, "In the mapping's lead.status.pull, add the CRM's words for the statuses in the notes, "+
		`or "" to leave their leads out of the pull file.`)
	todo.add(len(s.changed()) > 0, "Run the command again when nothing writes to the input any more: this run may "+
		"lack some of its rows.")
	s.decisions(todo)
	rest := !s.DryRun && !s.halted() && slices.ContainsFunc(s.Inputs, func(in Input) bool { return in.Unread })
	todo.add(rest, "Run the same command again without --limit for the rows that this run did not read: nothing is "+
		"sent twice.")
	s.send(todo)
}

// afterReconciling adds the steps after a run that only compared.
func (s *Summary) afterReconciling(todo *steps) {
	list := append(s.paths("reconciliation"), "the reconciliation")[0]
	todo.add(s.Rows.Conflict > 0, "Look at the "+
		english.Plural(s.Rows.Conflict, "row that differs", "rows that differ")+": "+list+
		" says who changed what. A sync sends what the file changed; its --conflict decides where the service changed.")
	todo.add(s.Rows.Invalid > 0, "Correct "+english.Plural(s.Rows.Invalid, "row", "")+
		" where the file comes from: a sync does not send an invalid row.")
	for _, v := range s.Reconciliation.Verdicts {
		todo.add(v.Verdict == "absent" && v.Leads > 0, "Find out why the file lacks "+
			english.Plural(v.Leads, "known lead", "")+": "+list+" lists them as absent.")
	}
}

func (s *Summary) halted() bool { return s.Outcome == "stopped" || s.Outcome == "interrupted" }

// decisions adds the steps that only a person can decide.
func (s *Summary) decisions(todo *steps) {
	n := s.Rows
	todo.add(n.Changed > 0,
		"Look at the rows that changed since their leads were made, or that have the key of another row. --changed "+
			"update sends what differs; --changed ignore counts these rows as unchanged.")
	todo.add(n.Unmatched > 0, "Compare keys and ExternalIDs of the unmatched rows with those of the import (zeros, "+
		"blanks, letters). Import those that have no lead; `leadferry checkpoint adopt` takes over leads that exist.")
	todo.add(n.Conflict > 0 && s.Reconciliation == nil,
		"Decide on the rows in conflict: the results say why each was held. They are checked again by the next run.")
	todo.add(n.Conflict > 0 && s.Command == "sync", "If the file's values are right in some of them, leave only these in "+
		"the rejects file, and sync that file with --conflict file (a closed lead also needs --reopen allow).")
}

// send adds the step that sends the rows, after a check that found nothing to correct.
func (s *Summary) send(todo *steps) {
	n := s.Rows
	if !s.DryRun || s.halted() || n.Invalid+n.Rejected+n.Failed+n.Partial+len(s.Checks.faults())+len(s.changed()) > 0 ||
		n.Pending == 0 || !s.Checks.sends() {
		return
	}
	todo.add(s.Command != "validate", "Run the same command without --dry-run to send the rows.")
	todo.add(s.Command == "validate", english.Plural(n.Pending, "row", "")+" would be sent. Import with the same "+
		"flags as in this check (--sandbox --limit 10 tries it without an account):",
		s.command("import", checkpoint.Map(s.Inputs, func(in Input) string { return in.Path })...)+flags(s.Flags))
}

// Unkept is a lead whose ID the checkpoint could not keep, in the form for `leadferry checkpoint resolve`.
type Unkept struct {
	Key       string `csv:"key"`
	Namespace string `csv:"namespace"`
	LeadID    string `csv:"lead_id"`
	RunID     string `csv:"run_id"`
}

// keptInResults reports whether the results hold the lead IDs that the checkpoint lacks, in a folder with the witness.
func (s *Summary) keptInResults() bool { return s.witnessed && s.Target.BaseURL != inSandbox }

// WriteUnkept writes the lead IDs that neither the checkpoint nor the results hold.
func (s *Summary) WriteUnkept(w io.Writer) error {
	if len(s.Unkept) == 0 || s.keptInResults() {
		return nil
	}
	return gocsv.Marshal(s.Unkept, w)
}

// keepIDs adds the step that brings lead IDs into the checkpoint, if the run could not write them there.
func (s *Summary) keepIDs(todo *steps) {
	made, results := english.Plural(len(s.Unkept), "lead was made", "leads were made"), s.paths("results")
	switch {
	case len(s.Unkept) == 0:
	case s.keptInResults():
		todo.add(true, made+", and the checkpoint could not keep the IDs. The results have "+
			"them:", "leadferry checkpoint adopt "+shell.Path(results[0])+s.at())
	default:
		todo.add(true, made+", and no file could keep the IDs. Save standard error, without log lines, from "+
			"its line key,namespace,lead_id,run_id on as ids.csv:", "leadferry checkpoint resolve ids.csv"+s.at())
	}
}

// inDoubt adds the steps to settle rows in doubt. A person fills in the rejects, if one file holds all these rows, else
// an exported list. The commands alone decide nothing, even if they are run twice or in the wrong order.
func (s *Summary) inDoubt(todo *steps) {
	list, cell, rejects := "in-doubt-"+s.RunID+".csv", "lead_id", s.paths("rejects")
	inRejects := len(rejects) == 1 && s.Standing == 0 && s.Rows.InDoubt > 0 && s.Fleet == "" &&
		filepath.Ext(rejects[0]) != ".jsonl" // resolve takes no JSONL
	if inRejects {
		list, cell = shell.Path(rejects[0]), "leadferry_lead_id"
	}
	rows := english.Plural(max(s.Rows.InDoubt, s.Standing)-len(s.Unkept), "row", "")
	export := "leadferry checkpoint export --state in_doubt" + s.at() + " -o " + list
	todo.add(!inRejects, "List the "+rows+" in doubt:", export)
	todo.add(true, "Look up the "+rows+" in doubt in the service's console (leadferry explain in_doubt says more), "+
		"and write into "+cell+" what you found: the lead's ID, or none if no lead was made, or exists if you cannot "+
		"find its ID. An empty cell decides nothing. Then settle them:", "leadferry checkpoint resolve "+list+s.at())
	correct := s.Rows.Invalid+s.Rows.Rejected > 0 // correct asks for the same command
	todo.add(inRejects && !correct && !s.halted(), "Then "+s.Command+" this file. Add the other flags of this run:",
		s.again(s.Command)...)
}

// at returns the flag for the run's checkpoint, with an absolute path, so that a command works in any folder. With
// another checkpoint, the command would make leads a second time.
func (s *Summary) at() string {
	path := s.Checkpoint.Path
	if path == "" {
		return ""
	}
	if whole, err := filepath.Abs(path); err == nil && !checkpoint.IsAddress(path) {
		path = whole
	}
	return " --checkpoint " + shell.Path(path)
}

// correct asks for corrections in the rejects files or, if there are none, in the input.
func (s *Summary) correct(todo *steps) {
	text := "Correct the " + english.Plural(s.Rows.Invalid+s.Rows.Rejected, "row", "") + " in the "
	if len(s.paths("rejects")) == 0 {
		todo.add(true, text+"input, or the mapping, and run the same command again.")
		return
	}
	name := s.Command
	if s.DryRun {
		name = "validate"
	}
	todo.add(true, text+"rejects file and "+name+" what you corrected. Add the other flags of this run:",
		s.again(name)...)
}

// again returns the commands for the rejects files. Those of a workbook are CSV: --format csv overrides other settings.
func (s *Summary) again(command string) []string {
	workbooks := slices.ContainsFunc(s.Inputs, func(in Input) bool { return in.Format == "xlsx" })
	var commands []string
	for _, path := range s.paths("rejects") {
		line := s.command(command, path)
		if workbooks && filepath.Ext(path) != ".jsonl" && filepath.Ext(path) != ".tsv" {
			line += " --format csv"
		}
		commands = append(commands, line)
	}
	return commands
}

// command returns the command line for files, with this run's mapping, checkpoint and flags.
func (s *Summary) command(name string, files ...string) string {
	line := "leadferry " + name + " -m " + shell.Path(s.Mapping.Path)
	for _, f := range files {
		if f != "-" { // standard input, not a file of this name
			f = shell.Path(f)
		}
		line += " " + f
	}
	if line += s.at(); s.Target.BaseURL == inSandbox {
		line += " --sandbox" // a trial must not become a real import
	}
	if !s.DryRun {
		line += flags(s.Flags) // a check's flags say how to read its input, not its rejects
	}
	return line
}

// flags quotes words like --name=value for a command line.
func flags(words []string) (line string) {
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		line += " " + name + "=" + shell.Word(value)
	}
	return line
}

// inSandbox is the base URL of a run in the built-in sandbox.
const inSandbox = "sandbox"
