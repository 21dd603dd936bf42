package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/go-json-experiment/json"
)

// Checks are what a run that sends nothing (validate, --dry-run) says of the input and the mapping. Lists come by
// rows, most first; no cell's value is in them but IDs of organizations and locators and, for the terminal alone,
// texts not mapped.
type Checks struct {
	Rules         []Rule   `json:"rules"`
	Lacking       []Word   `json:"-"`
	Repeats       Repeats  `json:"repeats"`
	LookAlikes    Repeats  `json:"look_alikes"`
	UnusedColumns []string `json:"unused_columns"`
	DroppedRows   int      `json:"-"` // that have values which were left out
	Caught        []Word   `json:"-"` // texts that maps lack and else takes
	CaughtRows    int      `json:"-"` // that have such
	// repeats, look-alikes, unused columns, what only else takes and dropped values count
	Strict       bool         `json:"strict,omitzero"`
	Assignments  []Assignment `json:"assignments"` // organizations, then locators
	Projected    Projected    `json:"projected"`
	Tests        Tests        `json:"tests"`
	CannotCreate []Fault      `json:"cannot_create"` // what the mapping lacks to make leads
	Unconfirmed  []Fault      `json:"unconfirmed"`   // guesses in the mapping that nobody has confirmed
	LostFiles    []Fault      `json:"lost_files"`    // that could not be read to their end
	Notes        []string     `json:"notes"`         // the remarks of the text for people
}

// Place is where a row starts.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Row  int    `json:"-"` // its number, where cells before it hold line breaks: spreadsheets count rows
}

// Rule is a check that rows fail, with how many and the first three of them. Column
// names the column or columns that the value comes from, if any.
type Rule struct {
	Rule   string  `json:"rule"`
	Column string  `json:"column"`
	Error  string  `json:"error"`
	Rows   int     `json:"rows"`
	Places []Place `json:"places"`
}

// Word is a text that the map of a value lacks, by what the mapping calls the value (lead.status among them), and where
// it is first. Where Hidden says why it is not shown, or that it is others, Text is empty and many may be counted.
type Word struct {
	Value, Text, Hidden string
	Rows                int
	Place
}

// named is the text in quotes, or what is said in its place.
func (w *Word) named() string { return cmp.Or(w.Hidden, `"`+w.Text+`"`) }

// Repeats counts rows whose key is in an earlier row, or looks like that of an earlier one, and names the first few.
type Repeats struct {
	Rows   int      `json:"rows"`
	Places []Repeat `json:"places"`
	More   []Repeat `json:"-"` // that the problems of a strict check name besides
}

// Repeat is one such row and the first of its key.
type Repeat struct {
	Place
	First Place `json:"first"`
	Row   int   `json:"-"` // its number
}

// Assignment counts rows by whom they name: an organization, or a locator by an entry of assign, counted from 1. Others
// are organizations or entries beyond those listed. With no ID at all the rows name nobody: the mapping has no assign.
type Assignment struct {
	OrganizationID string `json:"organization_id,omitempty"`
	LocatorID      string `json:"locator_id,omitempty"`
	Entry          int    `json:"entry,omitzero"`
	Others         string `json:"others,omitempty"` // "organizations" or "locators"
	Rows           int    `json:"rows"`
}

// Kind says whether it is organizations or locators.
func (a *Assignment) Kind() string {
	if a.OrganizationID != "" {
		return "organizations"
	}
	return cmp.Or(a.Others, "locators")
}

// Projected are the lead requests that the run would send when all goes well.
type Projected struct {
	Create int `json:"create"`
	Update int `json:"update"`
}

// Tests are those of the mapping file.
type Tests struct {
	Run      int     `json:"run"`
	Failed   int     `json:"failed"`
	Failures []Fault `json:"failures"`
}

// Fault is what is wrong with a place of a file, or in doubt. Line and Column are left out where it has none.
type Fault struct {
	File        string   `json:"file"`
	Line        int      `json:"line,omitzero"`
	Column      int      `json:"column,omitzero"`
	Error       string   `json:"error,omitempty"`
	Hint        string   `json:"hint,omitempty"`
	Differences []string `json:"differences,omitempty"` // of a test that fails, from what it expects
	Why         string   `json:"why,omitempty"`         // a guess was written so
	Of          string   `json:"-"`                     // what a guess says: it may be a word of the rows, for people only
}

// escape makes names of columns and texts fit to be shown, which may come from outside.
func (c *Checks) escape() {
	each(c.Rules, func(r *Rule) { r.Column, r.Error = Escape(r.Column), Escape(r.Error) })
	for _, faults := range [][]Fault{c.Tests.Failures, c.LostFiles, c.CannotCreate, c.Unconfirmed} {
		each(faults, func(f *Fault) {
			f.Error, f.Hint, f.Why, f.Of = Escape(f.Error), Escape(f.Hint), Escape(f.Why), Escape(f.Of)
			f.Differences = escaped(f.Differences)
		})
	}
	c.UnusedColumns, c.Notes = escaped(c.UnusedColumns), escaped(c.Notes)
}

// escaped is a list of its own.
func escaped(texts []string) []string {
	var list []string
	for _, text := range texts {
		list = append(list, Escape(text))
	}
	return list
}

func inColumn(column, text string) string {
	if column == "" {
		return text
	}
	return "column " + column + ": " + text
}

// String is how people and editors name the place.
func (at Place) String() string {
	if at.Row > 0 {
		return fmt.Sprintf("%s: row %d (line %d)", at.File, at.Row, at.Line)
	}
	return at.File + ":" + strconv.Itoa(at.Line)
}

// failed says how many of the tests, which are named so, fail.
func (t *Tests) failed(of string) string {
	return fmt.Sprintf("%s of %s %s", humanize.Comma(int64(t.Failed)), of,
		english.PluralWord(t.Failed, "fails", "fail"))
}

// at is where the fault is.
func (f *Fault) at() string {
	at := f.File
	for _, n := range []int{f.Line, f.Column} {
		if n > 0 {
			at += ":" + strconv.Itoa(n)
		}
	}
	return at
}

// faults are what needs attention beside rows.
func (c *Checks) faults() []string {
	if c == nil {
		return nil
	}
	var faults []string
	if c.Tests.Failed > 0 {
		faults = append(faults, c.Tests.failed(english.Plural(c.Tests.Run, "test", "")+" of the mapping"))
	}
	if len(c.CannotCreate) > 0 {
		faults = append(faults, "the mapping cannot make leads yet")
	}
	for _, f := range c.LostFiles {
		faults = append(faults, f.File+" could not be read to its end")
	}
	if c.tooStrict() {
		faults = append(faults, "--strict counts what the notes and lists name")
	}
	return faults
}

// tooStrict reports whether there is anything that counts where a check is strict only.
func (c *Checks) tooStrict() bool {
	rows := c.Repeats.Rows + c.LookAlikes.Rows + c.DroppedRows + c.CaughtRows
	return c.Strict && rows+len(c.UnusedColumns)+len(c.Unconfirmed) > 0
}

func (c *Checks) sends() bool { return c.Projected.Create+c.Projected.Update > 0 }

// steps are what to do about the mapping and the files themselves.
func (c *Checks) steps(todo *steps, mapping string) {
	todo.add(len(c.CannotCreate) > 0, "Complete "+mapping+": only you can decide what it lacks.")
	todo.add(c.Tests.Failed > 0, "Correct the mapping, or what its tests expect.")
	todo.add(len(c.Lacking) > 0, "Add the texts that a map lacks to it (statuses: to lead.status.map in "+mapping+
		") or to its table, with what they become, or give the others a value with else.")
	todo.add(c.tooStrict(), "Mend what the notes and lists above say of the file and the mapping, or "+
		"check without --strict, which counts it.")
	todo.add(len(c.LostFiles) > 0, "Mend the files that could not be read to their end, or get whole copies of them.")
}

// Problem is one thing that is wrong, with a row or, without Line and Row, with a file. Rule is the check that a row
// fails, or the row's outcome where the service, or what is known of its lead, is in the way; or what else a file
// fails: map, test, mapping, guess, lost, repeated, look_alike, unused, dropped, else.
type Problem struct {
	File   string `csv:"file" json:"file"`
	Line   int    `csv:"line" json:"line,omitzero"`
	Row    int    `csv:"row" json:"row,omitzero"`
	Column string `csv:"column" json:"column,omitempty"`
	Rule   string `csv:"rule" json:"rule"`
	Text   string `csv:"text" json:"text"`
	Value  string `csv:"value" json:"value,omitempty"` // what is in the columns, where Files.ProblemValues asks for it
}

// Annotations, in place of the path of Files.Problems, are those of a workflow of GitHub, which read them from a
// command's output.
const Annotations = "github"

// CheckProblems says whether problems can be written to a file of this name.
func CheckProblems(path string) error {
	if path == "" || path == Annotations || slices.Contains([]string{".csv", ".jsonl"},
		strings.ToLower(filepath.Ext(path))) {
		return nil
	}
	return errors.New("the name of the file of --problems ends neither with .csv nor with .jsonl")
}

// openProblems finds how problems are written.
func (r *Run) openProblems() error {
	if r.files.Problems == Annotations {
		r.problems = annotate(r.files.Annotate)
		return nil
	}
	out := r.create(r.files.Problems)
	if out == nil {
		return r.err
	}
	if strings.EqualFold(filepath.Ext(out.path), ".jsonl") {
		r.problems = func(batch []Problem) error { return writeObjects(out, batch) }
		return nil
	}
	columns := func(cells []string) []string {
		each(cells[1:3], func(n *string) { *n = strings.TrimPrefix(*n, "0") }) // line and row count from 1
		if !r.files.ProblemValues {
			cells = cells[:len(cells)-1]
		}
		return cells
	}
	r.problems = func(batch []Problem) error { return writeLines(r, out, batch, columns) }
	return beginLines[Problem](out, columns)
}

// Tells says whether problems are written at all.
func (r *Run) Tells() bool { return r.problems != nil }

// Problems writes what is wrong, with rows and, in the end, beside them. An error is the first that any of the run's
// files met.
func (r *Run) Problems(batch []Problem) error {
	if r.problems != nil && r.err == nil && len(batch) > 0 {
		r.err = r.problems(batch)
	}
	return r.err
}

// problems are what the checks found beside what is wrong with single rows.
func (c *Checks) problems(mapping string) (all []Problem) {
	if c == nil {
		return nil
	}
	words := func(rule string, list []Word) {
		for _, w := range list {
			all = append(all, Problem{
				File: mapping, Column: w.Value, Rule: rule, Text: fmt.Sprintf(
					"the map lacks %s: %s, first at %s", w.named(), english.Plural(w.Rows, "row", ""), w.Place),
			})
		}
	}
	faults := func(rule string, list []Fault) {
		for _, f := range list {
			text := cmp.Or(f.Error, f.Why, strings.Join(f.Differences, "; "))
			if f.Hint != "" {
				text += " (hint: " + f.Hint + ")"
			}
			all = append(all, Problem{File: f.File, Line: f.Line, Column: f.Of, Rule: rule, Text: text})
		}
	}
	again := func(rule, text string, r *Repeats) {
		named := slices.Concat(r.Places, r.More)
		for _, one := range named {
			all = append(all,
				Problem{File: one.File, Line: one.Line, Row: one.Row, Rule: rule, Text: text + one.First.String()})
		}
		if more := r.Rows - len(named); more > 0 {
			text := "and " + english.Plural(more, "row", "") + " more"
			all = append(all, Problem{File: mapping, Rule: rule, Text: text})
		}
	}
	words("map", c.Lacking)
	faults("test", c.Tests.Failures)
	faults("mapping", c.CannotCreate)
	faults("lost", c.LostFiles)
	if !c.Strict {
		return all
	}
	again("repeated", "the key is already at ", &c.Repeats)
	again("look_alike", "the key looks like the one at ", &c.LookAlikes)
	faults("guess", c.Unconfirmed)
	words("else", c.Caught)
	for _, name := range c.UnusedColumns {
		const text = "no part of the mapping uses the column"
		all = append(all, Problem{File: mapping, Column: name, Rule: "unused", Text: text})
	}
	return all
}

// escaped makes a problem fit to be shown.
func (p Problem) escaped() Problem {
	p.File, p.Column, p.Text, p.Value = EscapeLine(p.File), Escape(p.Column), Escape(p.Text), Escape(p.Value)
	return p
}

func writeObjects(out io.Writer, batch []Problem) error {
	for _, p := range batch {
		line, err := json.Marshal(p.escaped())
		if err == nil {
			_, err = out.Write(append(EscapeJSON(line), '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxAnnotations is how many are printed: GitHub shows ten of a step.
const maxAnnotations = 100

// What stands for itself in no command of GitHub's workflows, nor in a property of one.
var (
	commandText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// annotate writes the first problems as commands of GitHub's workflows.
func annotate(out io.Writer) func([]Problem) error {
	written := 0
	return func(batch []Problem) error {
		for _, p := range batch {
			if written++; written > maxAnnotations {
				return nil
			}
			p = p.escaped()
			properties := "title=" + commandProperty.Replace(p.Rule)
			if p.File != "" {
				properties = "file=" + commandProperty.Replace(p.File) + "," + properties
			}
			if p.Line > 0 {
				properties += fmt.Sprintf(",line=%d", p.Line)
			}
			text := commandText.Replace(inColumn(p.Column, p.Text))
			if written == maxAnnotations {
				text += " (the last one shown: --problems FILE writes all)"
			}
			if _, err := fmt.Fprintf(out, "::error %s::%s\n", properties, text); err != nil {
				return err
			}
		}
		return nil
	}
}
