package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// WriteText writes what a person wants to know at the end of a run. Lines are at most width characters (0: 80), but
// for paths and commands that are longer.
func (s *Summary) WriteText(w io.Writer, width int, ink Ink) error {
	s.escape()
	p := &printer{
		width: cmp.Or(max(width, 0), 80), figures: len(humanize.Comma(int64(s.Rows.Read))), ink: ink,
	}
	for i, sentence := range s.Headline() {
		for _, line := range Wrap("", "", sentence+".", p.width) {
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

// Headline says how the run ended, or how far it is, in sentences without their full stops: the first says it all.
func (s *Summary) Headline() (sentences []string) {
	add := func(text string) { sentences = append(sentences, text) }
	name, rows := s.activity(), english.Plural(s.Rows.Read, "row", "")
	need, faults := s.Attention(), append(s.Checks.faults(), s.changed()...)
	// see Wordless, which is not read from files
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

// changed are the inputs that another program wrote to while they were read or sent.
func (s *Summary) changed() (faults Texts) {
	for _, in := range s.Inputs {
		faults.Add(in.Changed, "%s changed during the run, which may lack some of it", in.Path)
	}
	return faults
}

// activity names what was done, as the subject of a sentence.
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
	if slices.ContainsFunc(s.Inputs, func(in Input) bool { return in.Unread || in.SHA256 == "" }) {
		text += ", and the input was not read to its end"
	}
	return text
}

// traffic says what left for the service.
func (s *Summary) traffic() string {
	took, left := Duration(s.DurationS), "Nothing was changed on the service."
	switch {
	case s.DryRun && s.Command == "validate":
		return "Nothing was sent: this was a check. It took " + took
	case s.DryRun:
		return "Nothing was sent: this was a dry run. It took " + took
	case s.Reconciliation != nil:
		if s.Reconciliation.Rewrites {
			left = "No Status and no Content was changed; the ExternalID that was last confirmed was written again."
		}
		return fmt.Sprintf("%s Leads were read in %s: %s", left, took,
			english.Plural(s.Requests.Update, "request", ""))
	case s.Fleet != "" && s.Command == "":
		return "How much was sent is not known: no worker has ended in order"
	case s.Requests.Create+s.Requests.Update == 0:
		return "Nothing was sent to the service. The run took " + took
	}
	return fmt.Sprintf("Sent in %s: %s", took, requests(s.Requests.Create, s.Requests.Update))
}

func requests(creates, updates int) string {
	return english.Plural(creates, "create request", "") + " and " + english.Plural(updates, "update", "")
}

// asking are the reasons of rows that want a person's eye, except pending ones, which the next run sends. A run that
// sends nothing lists invalid ones check by check.
func (s *Summary) asking() []Reason {
	asks := map[string]bool{}
	for _, o := range s.Outcomes() {
		asks[o.Name] = o.Attention && !(o.Name == "invalid" && s.Checks != nil)
	}
	return slices.DeleteFunc(slices.Clone(s.Errors), func(r Reason) bool { return !asks[r.Outcome] })
}

// NamedFile is a file that a run left, by what it is.
type NamedFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// left notes a file that the run left; problems are of no kind, and not noted.
func (s *Summary) left(o *output) {
	if o != nil && o.kind != "" {
		s.Files = append(s.Files, NamedFile{o.kind, o.path})
	}
}

// paths are those of the files of this name that the run left.
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
	width := slices.Max(convert(s.Files, func(f NamedFile) int { return len(f.Name) }))
	for _, f := range s.Files {
		p.verbatim(fmt.Sprintf("%-*s  %s", width, f.Name, f.Path))
	}
}

// printer gathers lines of a given width, with nothing in them that a terminal obeys.
type printer struct {
	strings.Builder
	width   int
	figures int // width of the column of numbers
	ink     Ink
}

func (p *printer) heading(text string) { p.WriteString("\n" + p.ink.Bold(text) + "\n") }

func (p *printer) verbatim(text string) { p.WriteString("  " + EscapeLine(text) + "\n") }

func (p *printer) indented(text string) { p.wrap("  ", "  ", text) }

func (p *printer) wrap(first, next, text string) {
	for _, line := range Wrap(first, next, text, p.width) {
		p.WriteString(line + "\n")
	}
}

// Wrap breaks a text between words into lines of at most width characters, unless a word is longer. The first one
// begins with first, the others with next.
func Wrap(first, next, text string, width int) (all []string) {
	line, used := first, utf8.RuneCountInString(first)
	for i, word := range strings.Split(EscapeLine(text), " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > width:
			all = append(all, strings.TrimRight(line, " "))
			line, used = next, len(next)
		default:
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	return append(all, strings.TrimRight(line, " "))
}

// Ink says whether a text for people is coloured.
type Ink bool

func (k Ink) paint(code, text string) string {
	if !k || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold is a headline, Dim what matters less, Red what went wrong.
func (k Ink) Bold(text string) string { return k.paint("1", text) }
func (k Ink) Dim(text string) string  { return k.paint("2", text) }
func (k Ink) Red(text string) string  { return k.paint("31", text) }

// Duration is a time that something took, in seconds, as it is shown everywhere: about three digits of it.
func Duration(s float64) string {
	d, step := time.Duration(min(max(s, 0), 1e8)*float64(time.Second)), time.Microsecond
	for d >= 1000*step {
		step *= 10
	}
	return d.Round(step).String()
}

func sum[T any](items []T, count func(T) int) (n int) {
	for _, item := range items {
		n += count(item)
	}
	return n
}

// Texts are sentences for people.
type Texts []string

// Add adds a sentence, if it is wanted.
func (t *Texts) Add(wanted bool, format string, args ...any) {
	if wanted {
		*t = append(*t, fmt.Sprintf(format, args...))
	}
}

func capital(text string) string {
	first := min(1, len(text))
	return strings.ToUpper(text[:first]) + text[first:]
}

// maxText is how many characters of a text from outside are kept.
const maxText = 500

// Escape makes a text from outside safe to show: control characters, marks of direction, line ends and broken UTF-8 are
// written as in Go (\x1b, \u202e), and what goes beyond 500 characters is cut. Escaping twice changes nothing more.
func Escape(text string) string { return Shorten(text, maxText) }

// Shorten is Escape, but cuts what goes beyond so many characters.
func Shorten(text string, most int) string {
	hidden := func(r rune) bool { return r < ' ' || r > '~' }
	if len(text) <= most && !strings.ContainsFunc(text, hidden) {
		return text // as nearly all are
	}
	var b strings.Builder
	for shown := 0; text != ""; {
		r, size := utf8.DecodeRuneInString(text)
		piece := text[:size]
		if r == utf8.RuneError && size == 1 || !unicode.IsGraphic(r) {
			piece = strconv.QuoteToASCII(piece)
			piece = piece[1 : len(piece)-1]
		}
		text, shown = text[size:], shown+utf8.RuneCountInString(piece)
		if shown > most || shown == most && text != "" {
			return b.String() + "…"
		}
		b.WriteString(piece)
	}
	return b.String()
}

// EscapeJSON writes in a JSON text as \u202e what a terminal would act upon and JSON leaves as it is: DEL, the C1
// controls and marks of direction. The text means the same as before.
func EscapeJSON(text []byte) []byte {
	b := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r <= '~' || unicode.IsGraphic(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

// defuse puts ' before a text that a spreadsheet would take for a formula: one that
// begins with = + - @ or their full-width forms, a tab, a line end or NUL.
func defuse(text string) string {
	if r, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@\t\r\n\x00＝＋－＠", r) {
		return "'" + text
	}
	return text
}

// Cell is a text from outside as it is in a CSV file for people.
func Cell(text string) string { return Escape(defuse(text)) }

// EscapeLine is Escape for what is no use when it is cut: a name, a key or an ID is taken for what it is by anyone who
// looks it up.
func EscapeLine(text string) string { return Shorten(text, math.MaxInt) }
