package report

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/go-json-experiment/json"
)

// Checks are what a run that sends nothing (validate, --dry-run) says of the input and the mapping. Lists come by
// rows, most first; no cell's value is in the summary but IDs of organizations and locators.
type Checks struct {
	Rules       []Reason     `json:"rules"`
	Found       []Problem    `json:"found"` // beside what is wrong with single rows; without words of cells
	Quoting     []Problem    `json:"-"`     // words of cells, and rows beyond those that a note names
	Repeats     int          `json:"repeats"`
	LookAlikes  int          `json:"look_alikes"`     // rows whose key looks like that of an earlier one
	Strict      int          `json:"strict,omitzero"` // rows, columns and guesses that only --strict counts
	Assignments []Assignment `json:"assignments"`
	Projected   Projected    `json:"projected"`
	Tests       int          `json:"tests"` // that the mapping has
}

// Place is where a row starts.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Row  int    `json:"-"` // its number, where cells before it hold line breaks: spreadsheets count rows
}

// Problem is one thing that is wrong, with a row or, without Row, with a file. Rule is the check that a row fails, or
// the row's outcome where the service, or what is known of its lead, is in the way; or the rule of one of the kinds.
type Problem struct {
	File   string `csv:"file" json:"file"`
	Line   int    `csv:"line" json:"line,omitzero"`
	Row    int    `csv:"row" json:"row,omitzero"`
	Column string `csv:"column" json:"column,omitempty"` // or what the mapping calls the value
	Rule   string `csv:"rule" json:"rule"`
	Text   string `csv:"text" json:"text"`
	Value  string `csv:"value" json:"value,omitempty"` // what is in the columns, where Files.ProblemValues asks for it
	Hint   string `csv:"-" json:"hint,omitempty"`
	Rows   int    `csv:"-" json:"rows,omitzero"` // that it is about, where they are counted
}

// kinds are the problems beside single rows, with what to do about them.
var kinds = []struct {
	rule, title string // without a title a note says it
	top         int    // how many the text for people shows; 0: all
	quotes      bool   // words of cells: for the terminal alone
	strict      bool   // counts with --strict only
	step        string
}{
	{
		rule: "mapping", title: "What the mapping lacks to make leads",
		step: "Complete the mapping: only you can decide what it lacks.",
	},
	{
		rule: "test", title: "Tests of the mapping that fail", top: topChecks,
		step: "Correct the mapping, or what its tests expect.",
	},
	{
		rule: "map", title: "Texts that a map lacks", quotes: true,
		step: "Add the texts that a map lacks to it (statuses: to lead.status.map in the mapping) or to its table, " +
			"with what they become, or give the others a value with else.",
	},
	{rule: "else", title: "Texts that only else takes", top: topChecks, quotes: true, strict: true},
	{rule: "guess", title: "Guesses to confirm (delete only the ? if one is right)", strict: true},
	{rule: "unused", strict: true},
	{rule: "repeated", strict: true},
	{rule: "look_alike", strict: true},
}

// topChecks is how much of a list of a check the text for people shows.
const topChecks = 10

// of are the problems of one kind.
func (c *Checks) of(rule string) (list []Problem) {
	for _, p := range slices.Concat(c.Found, c.Quoting) {
		if p.Rule == rule {
			list = append(list, p)
		}
	}
	return list
}

// problems are all that count, as a file of problems has them.
func (c *Checks) problems() (list []Problem) {
	for _, kind := range kinds {
		if c == nil || kind.strict && c.Strict == 0 {
			continue
		}
		for _, p := range c.of(kind.rule) {
			if p.Rows > 0 {
				p.Text += " (" + english.Plural(p.Rows, "row", "") + ")"
			}
			if p.Hint != "" {
				p.Text += " (hint: " + p.Hint + ")"
			}
			p.Hint, p.Rows = "", 0
			list = append(list, p)
		}
	}
	return list
}

// faults are what needs attention beside rows.
func (c *Checks) faults() (faults []string) {
	if c == nil {
		return nil
	}
	if failed := len(c.of("test")); failed > 0 {
		faults = append(faults, fmt.Sprintf("%d of %s of the mapping %s", failed, english.Plural(c.Tests, "test", ""),
			english.PluralWord(failed, "fails", "fail")))
	}
	if len(c.of("mapping")) > 0 {
		faults = append(faults, "the mapping cannot make leads yet")
	}
	if c.Strict > 0 {
		faults = append(faults, "--strict counts what the notes and lists name")
	}
	return faults
}

// steps are what to do about the mapping and the files themselves.
func (c *Checks) steps(todo *steps) {
	if c == nil {
		return
	}
	for _, kind := range kinds {
		todo.add(kind.step != "" && len(c.of(kind.rule)) > 0, kind.step)
	}
	todo.add(c.Strict > 0, "Mend what the notes and lists above say of the file and the mapping, or "+
		"check without --strict, which counts it.")
}

func (c *Checks) sends() bool { return c.Projected.Create+c.Projected.Update > 0 }

// Assignment counts rows by whom they name: an organization, or a locator by an entry of assign, counted from 1. Others
// are those beyond the ones listed. With nothing at all the rows name nobody: the mapping has no assign.
type Assignment struct {
	OrganizationID string `json:"organization_id,omitempty"`
	LocatorID      string `json:"locator_id,omitempty"`
	Entry          int    `json:"entry,omitzero"`
	Others         bool   `json:"others,omitzero"`
	Rows           int    `json:"rows"`
}

// Projected are the lead requests that the run would send when all goes well.
type Projected struct {
	Create int `json:"create"`
	Update int `json:"update"`
}

// escape makes names of columns and texts fit to be shown, which may come from outside.
func (c *Checks) escape() {
	each(c.Rules, (*Reason).escape)
	each(c.Found, func(p *Problem) { p.Column, p.Text, p.Hint = Escape(p.Column), Escape(p.Text), Escape(p.Hint) })
}

func inColumn(column, text string) string {
	if column == "" {
		return text
	}
	return "column " + column + ": " + text
}

// String is how people and editors name the place.
func (at Place) String() string {
	switch {
	case at.Row > 0:
		return fmt.Sprintf("%s: row %d (line %d)", at.File, at.Row, at.Line)
	case at.Line == 0:
		return at.File
	}
	return at.File + ":" + strconv.Itoa(at.Line)
}

// Annotations, in place of the path of Files.Problems, are those of a workflow of GitHub, which read them from a
// command's output.
const Annotations = "github"

// maxAnnotations is how many are printed: GitHub shows ten of a step.
const maxAnnotations = 100

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
	if left := maxAnnotations; r.files.Problems == Annotations {
		r.problems = func(batch []Problem) error {
			batch = batch[:min(len(batch), left)]
			left -= len(batch)
			return writeEach(r.files.Annotate, batch, annotation)
		}
		return nil
	}
	out := r.create("", r.files.Problems)
	if out == nil {
		return r.err
	}
	if strings.EqualFold(filepath.Ext(out.path), ".jsonl") {
		r.problems = func(batch []Problem) error { return writeEach(out, batch, object) }
		return nil
	}
	r.problems = func(batch []Problem) error { return writeLines(r, out, batch, nil) }
	return beginLines[Problem](out, "value", r.files.ProblemValues)
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

// writeEach writes a line for each problem, made fit to be shown.
func writeEach(to io.Writer, batch []Problem, line func(Problem) ([]byte, error)) error {
	for _, p := range batch {
		p.File, p.Column, p.Text, p.Value = EscapeLine(p.File), Escape(p.Column), Escape(p.Text), Escape(p.Value)
		b, err := line(p)
		if err == nil {
			_, err = to.Write(append(b, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func object(p Problem) ([]byte, error) {
	b, err := json.Marshal(p)
	return EscapeJSON(b), err
}

// property writes what ends a value in a command of GitHub's workflows as such a command has it.
var property = strings.NewReplacer("%", "%25", ":", "%3A", ",", "%2C")

// annotation is a problem as a command of GitHub's workflows.
func annotation(p Problem) ([]byte, error) {
	at := "file=" + property.Replace(p.File) + ",title=" + property.Replace(p.Rule)
	if p.Line > 0 {
		at += ",line=" + strconv.Itoa(p.Line)
	}
	return fmt.Appendf(nil, "::error %s::%s", at, strings.ReplaceAll(inColumn(p.Column, p.Text), "%", "%25")), nil
}
