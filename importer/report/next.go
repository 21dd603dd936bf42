package report

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// step is one thing to do after a run, with the commands that do it.
type step struct {
	text     string
	commands []string
}

// next tells what to do now, in the order in which to do it.
func (s *Summary) next(p *page) {
	p.heading("Next")
	steps := s.steps()
	if len(steps) == 0 {
		p.wrap("  ", "  ", "Nothing to do.")
	}
	for i, st := range steps {
		p.wrap(fmt.Sprintf("  %d. ", i+1), "     ", st.text)
		for _, c := range st.commands {
			p.verbatim("     " + c)
		}
	}
}

func (s *Summary) steps() []step {
	if s.DryRun {
		return s.afterCheck()
	}
	var steps []step
	add := func(wanted bool, text string, commands ...string) {
		if wanted {
			steps = append(steps, step{text, commands})
		}
	}
	n := s.Rows
	stopped := s.Outcome == "stopped" || s.Outcome == "interrupted"
	add(s.Hint != "", sentence(s.Hint))
	switch then := "un the same command again: it goes on where this run stopped, and sends nothing twice."; {
	case s.Same: // the hint says more
	case s.Hint != "":
		add(stopped, "Then r"+then)
	default:
		add(stopped, "R"+then)
	}
	if n.InDoubt > 0 {
		steps = append(steps, s.settle()...)
	}
	add(n.Invalid+n.Rejected > 0, s.correct(n.Invalid+n.Rejected, s.Command+" what you corrected"), s.again(s.Command)...)
	again := n.Failed + n.Partial + n.Pending
	add(!stopped && again > 0, fmt.Sprintf("Run the same command again for the %s that did not get through.", english.Plural(again, "row", "")))
	return append(steps, s.decisions()...)
}

// decisions are what only a person can decide.
func (s *Summary) decisions() []step {
	var steps []step
	add := func(wanted bool, text string) {
		if wanted {
			steps = append(steps, step{text: text})
		}
	}
	n := s.Rows
	add(n.Changed > 0, "Look at the rows that changed since: their leads stand as they were sent. --changed update sends what differs, --changed ignore counts such rows as unchanged.")
	add(n.Unmatched > 0, "Import the rows that have no lead yet, or take leads over that exist with `leadferry checkpoint adopt`. --missing ignore leaves such rows out.")
	add(n.Conflict > 0, "Decide on the rows in conflict: the results say why each was held. They are checked again by the next run.")
	return steps
}

// afterCheck is what follows a run that was not to send anything.
func (s *Summary) afterCheck() []step {
	var steps []step
	if s.Hint != "" {
		steps = append(steps, step{text: sentence(s.Hint)})
	}
	steps = append(steps, s.Checks.steps(s.Mapping.Path)...)
	steps = append(steps, s.decisions()...)
	bad := s.Rows.attention(true) - s.Rows.Changed - s.Rows.Unmatched - s.Rows.Conflict
	switch {
	case bad > 0:
		steps = append(steps, step{s.correct(bad, "check again"), s.again("validate")})
	case s.Outcome != "complete" && s.Outcome != "attention" || len(s.Checks.faults()) > 0:
	case s.Rows.Pending == 0 || s.Checks.fate() == "good":
	case s.Command == "validate":
		steps = append(steps, step{"Import the rows, with the same flags as in this check:", []string{s.command("import", s.paths()...) + flags(s.Flags)}})
	default:
		steps = append(steps, step{text: "Run the same command without --dry-run to send the rows."})
	}
	return steps
}

// settle are the steps to settle rows in doubt. Pasted as they stand, twice or in the
// wrong order, they decide nothing.
func (s *Summary) settle() []step {
	list := "in-doubt.csv"
	if s.RunID != "" {
		list = "in-doubt-" + s.RunID + ".csv"
	}
	return []step{
		{
			fmt.Sprintf("List the %s in doubt:", english.Plural(s.Rows.InDoubt, "row", "")),
			[]string{"leadferry checkpoint export --state in_doubt" + s.at() + " -o " + list}, // never over what a person has filled in
		},
		{
			"Look each up in the service's console and write into lead_id what you found: the lead's ID, or none where no lead was made, " +
				"or exists where there is one without a known ID. An empty lead_id decides nothing. Then settle them:",
			[]string{"leadferry checkpoint resolve " + list + s.at()},
		},
	}
}

// at names the run's checkpoint, wherever the command is started: with another one, rows
// that this one knows would be made again.
func (s *Summary) at() string {
	if s.Checkpoint.Path == "" {
		return ""
	}
	path, err := filepath.Abs(s.Checkpoint.Path)
	if err != nil {
		path = s.Checkpoint.Path
	}
	return " --checkpoint " + Quote(path)
}

// correct asks for corrections in the rejects files, or in the input without them.
func (s *Summary) correct(rows int, then string) string {
	if len(s.RejectsPaths) == 0 && rows == s.Rows.Invalid && s.Checks.byMapping() {
		return "Run the same command again."
	}
	if len(s.RejectsPaths) == 0 {
		return fmt.Sprintf("Correct the %s in the input and run the same command again.", english.Plural(rows, "row", ""))
	}
	return fmt.Sprintf("Correct the %s in the rejects file and %s, with the same flags as in this run:", english.Plural(rows, "row", ""), then)
}

func (s *Summary) again(command string) []string {
	var commands []string
	for _, path := range s.RejectsPaths {
		line := s.command(command, path)
		if s.fromWorkbook() && filepath.Ext(path) != ".jsonl" && filepath.Ext(path) != ".tsv" {
			line += " --format csv"
		}
		commands = append(commands, line)
	}
	return commands
}

// fromWorkbook reports whether a mapping or a flag may say that the inputs are
// workbooks, which the rejects are not.
func (s *Summary) fromWorkbook() bool {
	return slices.ContainsFunc(s.Inputs, func(in Input) bool { return in.Format == "xlsx" })
}

// command is a command line over files with this run's mapping.
func (s *Summary) command(name string, files ...string) string {
	words := []string{"leadferry", name, "-m", Quote(s.Mapping.Path)}
	for _, f := range files {
		words = append(words, Quote(f))
	}
	line := strings.Join(words, " ") + s.at()
	if s.Target.BaseURL == inSandbox {
		line += " --sandbox" // not a lead of a rehearsal goes to a real service
	}
	return line
}

// flags are words like --name=value of a command line.
func flags(words []string) (line string) {
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		line += " " + name + "=" + quote(value)
	}
	return line
}

// inSandbox is the address in the target of the built-in imitation.
const inSandbox = "sandbox"

func (s *Summary) paths() []string {
	var paths []string
	for _, in := range s.Inputs {
		paths = append(paths, in.Path)
	}
	return paths
}

// Quote makes a path one word of a shell's command line. What a terminal would act
// upon is escaped as bash, zsh and ksh read it.
func Quote(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path // no flag
	}
	return quote(path)
}

func quote(path string) string {
	odd := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-", r)
	}
	if path != "" && path[0] != '=' && strings.IndexFunc(path, odd) < 0 {
		return path
	}
	if escape(path, math.MaxInt) != path {
		return "$'" + escape(strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(path), math.MaxInt) + "'"
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	text = strings.TrimRight(text, ".")
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):] + "."
}
