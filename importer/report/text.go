package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/internal/spelling"
)

// WriteText writes the text for people about a run. No line is longer than width (0: 80), except paths and commands.
func (s *Summary) WriteText(w io.Writer, width int, ink Ink) error {
	s.escape()
	p := &printer{
		width: cmp.Or(max(width, 0), 80), figures: len(humanize.Comma(int64(s.Rows.Read))), ink: ink,
	}
	for i, sentence := range s.Headline() {
		for _, line := range spelling.Wrap("", "", sentence+".", p.width) {
			if i == 0 {
				line = ink.Bold(line)
			}
			p.WriteString(line + "\n")
		}
	}
	for _, of := range s.Sections() {
		p.section(of)
	}
	s.filesLeft(p)
	s.next(p)
	_, err := io.WriteString(w, p.String())
	return err
}

// Headline says how the run ended, or how far it is, in sentences without full stops. The first sentence sums it up.
func (s *Summary) Headline() (sentences []string) {
	add := func(text string) { sentences = append(sentences, text) }
	name, rows := s.activity(), english.Plural(s.Rows.Read, "row", "")
	need, faults := s.Attention(), append(s.Checks.faults(), s.changed()...)
	// A summary from a file lacks Wordless. Its outcome says that there is a fault, so it can only be this one.
	faults.Add(s.Outcome == "attention" && s.Checks == nil && need+len(faults) == 0, "the pull file lacks leads")
	asking := fmt.Sprintf("%s of %s %s attention", humanize.Comma(int64(need)), rows,
		english.PluralWord(need, "needs", "need")) + s.news()
	switch {
	case s.Outcome == Running && s.Rows.Ended() == 0:
		add(name + " is beginning")
	case s.Outcome == Running:
		add(name + " is going on: " + english.Plural(s.Rows.Ended(), "row", "") + " so far")
	case s.Outcome == "interrupted":
		add(name + " interrupted: " + s.progress())
	case s.Outcome == "stopped":
		add(name + " stopped early: " + strings.TrimRight(s.StopReason, "."))
		add("Until then, " + s.progress())
	case need > 0:
		add(name + " finished: " + strings.Join(append([]string{asking}, faults...), ", and "))
	case len(faults) > 0:
		add(name + " finished: no row needs attention, but " + strings.Join(faults, ", and "))
	case s.Rows.Read == 0:
		add(name + " complete: there were no rows")
	default:
		add(name + " complete: " + rows + ", nothing needs attention")
	}
	add(s.traffic())
	if in := s.inService(); in != "" {
		add(in)
	}
	return sentences
}

// changed lists the inputs that another program wrote to during the run.
func (s *Summary) changed() (faults spelling.Texts) {
	for _, in := range s.Inputs {
		faults.Add(in.Changed, "%s changed during the run, so some of its rows may be missing", in.Path)
	}
	return faults
}

// activity names the work as the subject of a sentence.
func (s *Summary) activity() string {
	switch {
	case s.Command == "validate":
		return "Validation"
	case s.DryRun:
		return "Dry run of the " + s.Command
	}
	return capital(cmp.Or(s.Command, "the run"))
}

func (s *Summary) progress() string {
	text := fmt.Sprintf("%s of %s read %s done", humanize.Comma(int64(s.Rows.Ended()-s.Attention())),
		english.Plural(s.Rows.Read, "row", ""), english.PluralWord(s.Rows.Read, "was", "were"))
	if slices.ContainsFunc(s.Inputs, func(in Input) bool { return in.Unread }) {
		text += ", and the input was not read to its end"
	}
	return text
}

func (s *Summary) traffic() string {
	took, sent := spelling.Duration(s.DurationS), requests(s.Requests.Create, s.Requests.Update)
	left := "Nothing was changed on the service."
	switch {
	case s.DryRun && s.Command == "validate":
		return "Nothing was sent: this was a check. It took " + took
	case s.DryRun:
		return "Nothing was sent: this was a dry run. It took " + took
	case s.Reconciliation != nil:
		if s.Reconciliation.Rewrites {
			left = "No Status and no Content was changed; the ExternalID that was last confirmed was written again."
		}
		return left + " Leads were read in " + took + ": " + english.Plural(s.Requests.Update, "request", "")
	case s.Fleet != "" && s.Shard == "":
		return "Sent in " + took + ": " + sent + ". What killed or replaced workers sent is not known"
	case s.Requests.Create+s.Requests.Update == 0:
		return "Nothing was sent to the service. The run took " + took
	}
	return "Sent in " + took + ": " + sent
}

func requests(creates, updates int) string {
	return english.Plural(creates, "create request", "") + " and " + english.Plural(updates, "update", "")
}

// reasonsToShow returns the reasons of rows that need attention. It leaves out pending rows, which the next run sends.
// In a run that sends nothing it leaves out invalid rows, too: Checks lists them by rule.
func (s *Summary) reasonsToShow() []Reason {
	return slices.DeleteFunc(slices.Clone(s.Errors), func(r Reason) bool {
		o, _ := OutcomeNamed(r.Outcome)
		return !o.Attention() || o == Invalid && s.Checks != nil
	})
}

// NamedFile is a file that a run left. Name is its kind, for example "rejects".
type NamedFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// noteFile adds a file to Files. The file of problems has no kind and is not added.
func (s *Summary) noteFile(o *output) {
	if o != nil && o.kind != "" {
		s.Files = append(s.Files, NamedFile{o.kind, o.path})
	}
}

// paths returns the paths of the files of this kind that the run left.
func (s *Summary) paths(name string) (paths []string) {
	for _, f := range s.Files {
		if f.Name == name {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

func (s *Summary) filesLeft(p *printer) {
	if len(s.Files) == 0 {
		return
	}
	p.heading("Files")
	width := slices.Max(checkpoint.Map(s.Files, func(f NamedFile) int { return len(f.Name) }))
	for _, f := range s.Files {
		p.verbatim(fmt.Sprintf("%-*s  %s", width, f.Name, f.Path))
	}
}

// printer collects the lines of the text for people. It escapes what a terminal would obey.
type printer struct {
	strings.Builder
	width   int
	figures int // width of the column of numbers
	ink     Ink
}

func (p *printer) heading(text string)  { p.WriteString("\n" + p.ink.Bold(text) + "\n") }
func (p *printer) verbatim(text string) { p.WriteString("  " + spelling.EscapeLine(text) + "\n") }
func (p *printer) indented(text string) { p.wrap("  ", "  ", text) }

func (p *printer) wrap(first, next, text string) {
	for _, line := range spelling.Wrap(first, next, text, p.width) {
		p.WriteString(line + "\n")
	}
}

// Ink says whether a text for people is coloured.
type Ink bool

func (k Ink) paint(code, text string) string {
	if !k || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold marks a headline, Dim what matters less, Red what went wrong.
func (k Ink) Bold(text string) string { return k.paint("1", text) }
func (k Ink) Dim(text string) string  { return k.paint("2", text) }
func (k Ink) Red(text string) string  { return k.paint("31", text) }

func capital(text string) string {
	first := min(1, len(text))
	return strings.ToUpper(text[:first]) + text[first:]
}

// defuse puts ' before a text that a spreadsheet would take for a formula. Spreadsheets take full-width signs, too.
func defuse(text string) string {
	if r, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@\t\r\n\x00＝＋－＠", r) {
		return "'" + text
	}
	return text
}

// Cell makes a text from outside safe for a CSV file that people open: escaped, cut and defused.
func Cell(text string) string { return spelling.Escape(defuse(text)) }
