// Package propose writes a mapping file for an input from a sample of it, as leadferry init prints it.
//
// It writes the language of package mapping, lets mapping check the result, and reads no file itself:
//
//	Input ─▶ columns (cells measured) ─▶ draft (which column plays which part) ─▶ YAML ─▶ mapping.Parse ─▶ Proposal
//
// A column gets a part by its name and its cells. Cells that contradict the name win. To add a kind of cell or column,
// add a line and its names to dictionary.yaml.
//
// Promises: the same Input gives the same Proposal. The YAML is a mapping file that loads, and every sampled row is
// valid under it. If a person has to decide something or correct a row first, a comment and a note say so. A guess has
// a comment that begins with a question mark, and validate lists it. Comments and notes hold no cell of a row, except
// the words of a status column if they are few and short.
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

// Input is a sample of a file. Its Source says how the file was read. Source.Columns are the names in the first line,
// which may be a lead, or made up if there is no header. The rest of Source is what the mapping has to say: flags named
// it, or a reader cannot detect it.
type Input struct {
	mapping.Source
	File string // how people call the file; "-" is standard input

	Rows     [][]string // a cell for each column
	Complete bool       // Rows are all rows of the file
	Unread   Unread     // rows that could not be read; they are not in Rows
	Warnings []string   // of the reader, for the user
	Repeats  int        // rows that repeat the header; every reader skips them
}

// Unread is how many rows could not be read, the line of the first one, and why, in words without its cells.
type Unread struct {
	Rows, Line int
	Why        string
}

// Proposal is a mapping file of at most 1 MiB, and sentences about what was decided and what the user has to decide.
type Proposal struct {
	YAML  []byte
	Notes []string
}

// Propose writes a mapping file for the sampled input. It fails if no column is known, since the leads would name
// nobody, or if the file would not load.
func Propose(in Input) (Proposal, error) {
	d := newDraft(in)
	// One object of objects is a document. Several may keep all in objects, and the mapping names what is in them.
	nested := len(d.Objects) > 0 && len(in.Rows) > 1
	if len(in.Columns) > 0 && d.Key.Column == nil && d.Status == nil && len(d.Fields) == 0 && !nested {
		const hint = "if it is the right file, name the sheet with --sheet, the list of a JSON document with --list or " +
			"what separates the cells with --delimiter; or call its columns name, email and phone"
		text := strings.Join(append([]string{unknown}, in.Warnings...), "; ")
		return Proposal{}, mapping.Error{File: in.File, Text: text, Hint: hint}
	}
	text := []byte(d.yaml())
	if _, err := mapping.Parse("proposal", text, nil); err != nil {
		return Proposal{}, fmt.Errorf("the mapping that was made does not load: %w", err)
	}
	return Proposal{YAML: text, Notes: strings.Split(strings.TrimSpace(d.execute("notes")), "\n")}, nil
}

const unknown = "does not look like leads: no column is known by its name or its cells"

const nowhere = "imported" // the origin if the file's name says nothing

// draft is a table and the decisions about it, before they are written. proposal.tmpl uses the exported names.
type draft struct {
	In       Input
	Headless bool      // the first line was a lead, and the columns have made-up names
	columns  []*column // those that a mapping can name, in the input's order
	Null     []string  // cells that count as empty

	// Names of columns: Objects hold objects or lists; Nameless cannot be named in a mapping; Hidden should not be in a
	// lead; Empty hold nothing in the sample; rest sends Names and must leave out Except.
	Objects, Nameless, Hidden, Empty, Names, Except []string

	Origin       string // of the leads: words of the file's name
	Organization organizationChoice
	Status       *statusChoice // nil: there is no status column
	Key          keyChoice
	Fields       []field // the keys of the content that are written out
}

// newDraft decides the safest things first: a column that has a part does not get another one.
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

// proposal is parsed on first use: few runs propose anything.
var proposal = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"plural": english.Plural, "quoted": quoted, "scalar": scalar,
		"sayNames":  func(headers []string, most int) string { return spelling.List(headers, most, shown) },
		"fileShown": fileShown, "statuses": func() string { return strings.Join(mapping.Statuses(), ", ") },
		"fewest": func() int { return fewestRows }, "slug": slug,
		"capital": func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
	}).Parse(proposalText))
})

// slug joins words to a name for programs.
func slug(words string) string { return strings.ReplaceAll(words, " ", "-") }

// yaml turns // and tabs of the template into comments.
func (d *draft) yaml() string {
	text := proseForm().ReplaceAllString(d.execute("mapping"), "$1# ")
	text = strings.NewReplacer("\t\n", "\n", "\t", "  # ").Replace(text)
	return strings.TrimRight(text, "\n") + "\n"
}

func (d *draft) execute(name string) string {
	var b strings.Builder
	if err := proposal().ExecuteTemplate(&b, name, d); err != nil {
		panic(err) // the template does not fit the draft
	}
	return b.String()
}

// Source returns what a reader cannot detect by itself.
func (d *draft) Source() string { return d.execute("source") }

// From returns the text of the field's columns.
func (f field) From() string {
	var all []string
	for _, c := range f.columns {
		all = append(all, c.Placeholder())
	}
	return strings.Join(all, " ")
}

// shown returns a name for comments and notes: short, and always on one line.
func shown(name string) string {
	name = texts.Shortened(name, 40)
	if clearForm().MatchString(name) {
		return "{" + name + "}"
	}
	return quoted(name)
}

// Shown returns the column's name for comments and notes.
func (c *column) Shown() string { return shown(c.header) }

func fileShown(name string) string {
	if name == "" || name == "-" {
		return "standard input"
	}
	return strings.Trim(shown(baseName(name)), "{}")
}

var (
	proseForm = spelling.Form(`(?m)^( *)// `)

	// clearForm matches names made of letters, digits and harmless marks.
	clearForm = spelling.Form(`^[\p{L}\p{Nd}\p{Mn}_\-./()&?#+…:']+(?: +[\p{L}\p{Nd}\p{Mn}_\-./()&?#+…:']+)*$`)

	// plainForm matches words of letters, digits and a few marks that begin with a letter.
	plainForm = spelling.Form(`^[A-Za-zÀ-ÖØ-öø-ſ](?: ?[A-Za-zÀ-ÖØ-öø-ſ0-9_\-./()])*$`)
	yamlWord  = spelling.Form(`(?i)^(y|n|yes|no|on|off|true|false|null|nan|inf)$`)
)

// scalar writes s as a YAML text on one line, in quotes if YAML or a person could misread it.
func scalar(s string) string {
	if len(s) <= 60 && plainForm().MatchString(s) && !yamlWord().MatchString(s) {
		return s
	}
	return quoted(s)
}

// quoted writes s in double quotes; YAML reads them as Go does.
func quoted(s string) string { return strconv.Quote(s) }

// guess begins a remark that a person has to confirm. validate lists these lines.
const guess = "? "

// joinRemarks joins the remarks that are not empty. If one of them is a guess, the result is one.
func joinRemarks(remarks ...string) string {
	said := strings.Join(slices.DeleteFunc(remarks, func(r string) bool { return r == "" }), "; ")
	if plain := strings.ReplaceAll(said, guess, ""); plain != said {
		return guess + plain
	}
	return said
}

// Empties says in how many rows the columns are empty, or returns "".
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
