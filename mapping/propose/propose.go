// Package propose writes a mapping file for an input that it has seen a sample of, as leadferry init prints it.
//
// It uses mapping, whose language it writes and whose rules judge the outcome, and reads no file itself:
//
//	Input ─▶ columns (cells measured) ─▶ draft (which column plays which part) ─▶ YAML ─▶ mapping.Parse ─▶ Proposal
//
// A part is given to a column by its name and by its cells: both have a say, and cells that contradict the name win.
// A new kind of cell or column is a line and its names in dictionary.yaml.
//
// Promises: the same Input gives the same Proposal; the YAML is a mapping file that loads, and every sampled row is
// valid under it unless a person has to decide something or correct the row, which a comment and a note then say;
// what is guessed has a comment that begins with a question mark, as validate names it; no cell of a row is in
// comments or notes, except for words of a column of statuses that holds few and short ones.
package propose

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"leadferry/internal/spelling"
	"leadferry/mapping"
	"leadferry/mapping/texts"
)

// Input is a sample of a file. Its Source says how the file was read: the format and the columns of its first line
// (which may be a lead; where the source has no header they are made up), and what of the rest the mapping has to say,
// since flags named it or a reader does not find it out by itself.
type Input struct {
	mapping.Source
	File string // how people call the file; "-" is standard input

	Rows     [][]string // a cell for each column
	Complete bool       // Rows are all rows of the file
	Unread   Unread     // rows that could not be read, which are not in Rows
	Warnings []string   // of the reader, for people
	Repeats  int        // rows that are the header once more; they are passed over by any reading
}

// Unread is how many rows could not be read, the line of the first, and why, in words without its cells.
type Unread struct {
	Rows, Line int
	Why        string
}

// Proposal is a mapping file of at most 1 MiB, and sentences that say what was decided and what is left to people.
type Proposal struct {
	YAML  []byte
	Notes []string
}

// Propose writes a mapping file for the sampled input. Its error says that no column is known, so that each row would
// make a lead in which nobody can be found, or that the file would not load.
func Propose(in Input) (Proposal, error) {
	d := newDraft(in)
	// One object of objects is a document; several may have all in objects, which the mapping then names.
	nested := len(d.Objects) > 0 && len(in.Rows) > 1
	if len(in.Columns) > 0 && d.Key.Column == nil && d.Status == nil && len(d.Fields) == 0 && !nested {
		const hint = "if it is the right file, name the sheet with --sheet, the list of a JSON document with --list or " +
			"what parts the cells with --delimiter; or call its columns name, email and phone"
		text := strings.Join(append([]string{unknown}, in.Warnings...), "; ")
		return Proposal{}, mapping.Error{File: in.File, Text: text, Hint: hint}
	}
	text := []byte(d.yaml())
	if _, err := mapping.Parse("proposal", text, nil); err != nil {
		return Proposal{}, fmt.Errorf("the mapping that was made does not load: %w", err)
	}
	return Proposal{YAML: text, Notes: d.notes()}, nil
}

const unknown = "does not look like leads: no column is known by its name or its cells"

const nowhere = "imported" // from a file whose name says nothing

// draft is a table, and what was decided of it before that is written down. proposal.tmpl has the exported names.
type draft struct {
	In       Input
	Headless bool      // the first line was a lead, and the columns have made-up names
	columns  []*column // those that a mapping can name, in the input's order
	Null     []string  // cells that count as empty

	// Names of columns: Objects hold objects or lists, Nameless cannot be named in a mapping, no lead should carry
	// Hidden, Empty hold nothing in the sample, rest sends Names and has to leave Except out.
	Objects, Nameless, Hidden, Empty, Names, Except []string

	Origin       string // of the leads: words of the file's name
	Organization organizationChoice
	Status       *statusChoice // nil: no column is one
	Key          keyChoice
	Fields       []field // the keys of the content that are written out
}

// newDraft decides from the surest to the least sure: a column that plays one part is not looked at for the next.
func newDraft(in Input) *draft {
	d := &draft{In: in, Headless: in.NoHeader}
	d.read()
	d.Origin = cmp.Or(strings.Join(fileWords(in.File), " "), nowhere)
	if d.Status = d.chooseStatus(); d.Status != nil {
		d.Status.Column.part = "status"
	}
	d.assignParts()
	d.Organization = d.chooseOrganization()
	d.decideContent()
	d.Key = d.chooseKey()
	d.decideRest()
	return d
}

//go:embed proposal.tmpl
var proposalText string

// proposal is parsed when it is first needed: few runs propose anything.
var proposal = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"plural": english.Plural, "quoted": quoted, "scalar": scalar,
		"sayNames":  func(headers []string, most int) string { return spelling.List(headers, most, shown) },
		"fileShown": fileShown, "statuses": func() string { return strings.Join(mapping.Statuses(), ", ") },
		"fewest": func() int { return fewestRows }, "slug": slug,
		"capital": func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
	}).Parse(proposalText))
})

// slug is words as a name for programs.
func slug(words string) string { return strings.ReplaceAll(words, " ", "-") }

// yaml makes comments of what is behind // and tabs in the template.
func (d *draft) yaml() string {
	text := proseForm().ReplaceAllString(d.execute("mapping"), "$1# ")
	text = strings.NewReplacer("\t\n", "\n", "\t", "  # ").Replace(text)
	return strings.TrimRight(text, "\n") + "\n"
}

func (d *draft) notes() []string {
	return strings.Split(strings.TrimSpace(d.execute("notes")), "\n")
}

func (d *draft) execute(name string) string {
	var b strings.Builder
	if err := proposal().ExecuteTemplate(&b, name, d); err != nil {
		panic(err) // the template does not fit the draft
	}
	return b.String()
}

// Source is what a reader would not find out by itself.
func (d *draft) Source() string { return d.execute("source") }

// From is the text of the field's columns.
func (f field) From() string {
	var all []string
	for _, c := range f.columns {
		all = append(all, c.Placeholder())
	}
	return strings.Join(all, " ")
}

// shown is a name for comments and notes: short, and on one line whatever it holds.
func shown(name string) string {
	name = texts.Shortened(name, 40)
	if clearForm().MatchString(name) {
		return "{" + name + "}"
	}
	return quoted(name)
}

// Shown is the column's name for comments and notes.
func (c *column) Shown() string { return shown(c.header) }

func fileShown(name string) string {
	if name == "" || name == "-" {
		return "standard input"
	}
	return strings.Trim(shown(baseName(name)), "{}")
}

var (
	proseForm = spelling.Form(`(?m)^( *)// `)

	// clearForm is of names made of letters, digits and harmless marks.
	clearForm = spelling.Form(`^[\p{L}\p{Nd}\p{Mn}_\-./()&?#+…:']+(?: +[\p{L}\p{Nd}\p{Mn}_\-./()&?#+…:']+)*$`)

	// plainForm is of words of letters, digits and a few marks, which begin with a letter.
	plainForm = spelling.Form(`^[A-Za-zÀ-ÖØ-öø-ſ](?: ?[A-Za-zÀ-ÖØ-öø-ſ0-9_\-./()])*$`)
	yamlWord  = spelling.Form(`(?i)^(y|n|yes|no|on|off|true|false|null|nan|inf)$`)
)

// scalar writes s as one YAML text on one line, in quotes where YAML or a person would take it for something else.
func scalar(s string) string {
	if len(s) <= 60 && plainForm().MatchString(s) && !yamlWord().MatchString(s) {
		return s
	}
	return quoted(s)
}

// quoted writes s in double quotes, which YAML reads as Go does.
func quoted(s string) string { return strconv.Quote(s) }

// guess begins the remark on what a person has to confirm: validate names such lines.
const guess = "? "

// and joins remarks that hold something. One of them that is a guess makes all of them one.
func and(remarks ...string) string {
	said := strings.Join(slices.DeleteFunc(remarks, func(r string) bool { return r == "" }), "; ")
	if plain := strings.ReplaceAll(said, guess, ""); plain != said {
		return guess + plain
	}
	return said
}

// Empties says in how many rows the columns hold nothing, or "".
func (d *draft) Empties(columns ...*column) string {
	empty := 0
	for i := range d.In.Rows {
		if !slices.ContainsFunc(columns, func(c *column) bool { return c.cells[i] != "" }) {
			empty++
		}
	}
	if empty == 0 {
		return ""
	}
	return "empty in " + humanize.Comma(int64(empty)) + " of " + english.Plural(len(d.In.Rows), "row", "")
}
