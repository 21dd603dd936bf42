package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/go-json-experiment/json"

	"leadferry/internal/spelling"
)

// Checks are what a run that sends nothing (validate, --dry-run) found out about the input and the mapping. Lists are
// sorted by rows, most first. The only cells in the JSON are IDs of organizations and locators.
type Checks struct {
	Rules       []Reason       `json:"rules"`
	Found       []Problem      `json:"found"` // except problems of single rows; without words of cells
	Quoting     []Problem      `json:"-"`     // with words of cells; with --strict also repeated and similar keys
	Repeats     int            `json:"repeats"`
	LookAlikes  int            `json:"look_alikes"`     // rows whose key looks like the key of an earlier row
	Strict      int            `json:"strict,omitzero"` // rows, columns and guesses that count only with --strict
	Assignments []Organization `json:"assignments"`     // ID may be "locator ID"
	Projected   Projected      `json:"projected"`
	Tests       int            `json:"tests"` // how many the mapping has
}

// Place says where a row starts, and its number in the file.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Row  int    `json:"-"` // 0: not known, or not a row
}

// Problem is one thing that is wrong with a row or, without Row, with a file. Rule is the check that the row fails or a
// rule of problemKinds. If the service or the checkpoint is the reason, Rule is the row's outcome.
type Problem struct {
	File   string `csv:"file" json:"file"`
	Line   int    `csv:"line" json:"line,omitzero"`
	Row    int    `csv:"row" json:"row,omitzero"`
	Column string `csv:"column" json:"column,omitempty"` // or the mapping's name for the value
	Rule   string `csv:"rule" json:"rule"`
	Text   string `csv:"text" json:"text"`
	Value  string `csv:"value" json:"value,omitempty"` // what the columns hold, if Files.ProblemValues is set
	Hint   string `csv:"-" json:"hint,omitempty"`
	Rows   int    `csv:"-" json:"rows,omitzero"` // how many rows have the problem; 0: not counted
}

// problemKinds are the kinds of problems that are not about a single row.
var problemKinds = []struct {
	rule, title string // without a title, a note reports it
	top         int    // how many the text for people shows; 0: all
	quotes      bool   // holds words of cells: only for the terminal
	strict      bool   // counts only with --strict
	step        string // what to do about it
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
		step: "Add the missing texts and their values to the map (statuses: lead.status.map in the mapping) or to " +
			"its table, or give all other texts a value with else.",
	},
	{rule: "else", title: "Texts that only else takes", top: topChecks, quotes: true, strict: true},
	{rule: "guess", title: "Guesses to confirm (delete only the ? if one is right)", strict: true},
	{rule: "unused", strict: true},
	{rule: "repeated", strict: true},
	{rule: "look_alike", strict: true},
}

// topChecks is how many items of a check's list the text for people shows.
const topChecks = 10

func (c *Checks) of(rule string) (list []Problem) {
	for _, p := range slices.Concat(c.Found, c.Quoting) {
		if p.Rule == rule {
			list = append(list, p)
		}
	}
	return list
}

// problems returns all problems that count, in the form for a file of problems.
func (c *Checks) problems() (list []Problem) {
	for _, kind := range problemKinds {
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

// faults lists what needs attention, except rows.
func (c *Checks) faults() (faults spelling.Texts) {
	if c == nil {
		return nil
	}
	failed := len(c.of("test"))
	faults.Add(failed > 0, "%d of %s of the mapping %s", failed, english.Plural(c.Tests, "test", ""),
		english.PluralWord(failed, "fails", "fail"))
	faults.Add(len(c.of("mapping")) > 0, "the mapping cannot make leads yet")
	faults.Add(c.Strict > 0, "--strict counts what the notes and lists name")
	return faults
}

// steps adds what to do about the mapping and the files themselves.
func (c *Checks) steps(todo *steps) {
	if c == nil {
		return
	}
	for _, kind := range problemKinds {
		todo.add(kind.step != "" && len(c.of(kind.rule)) > 0, kind.step)
	}
	todo.add(c.Strict > 0, "Correct what is listed above, or check without --strict, which counts it.")
}

func (c *Checks) sends() bool { return c.Projected.Create+c.Projected.Update > 0 }

// Projected are the lead requests that the run would send if all goes well.
type Projected struct {
	Create int `json:"create"`
	Update int `json:"update"`
}

// escape makes names of columns and texts, which may come from outside, safe to show.
func (c *Checks) escape() {
	each(c.Rules, (*Reason).escape)
	each(c.Found, func(p *Problem) {
		p.Column, p.Text, p.Hint = spelling.Escape(p.Column), spelling.Escape(p.Text), spelling.Escape(p.Hint)
	})
}

func inColumn(column, text string) string {
	if column == "" {
		return text
	}
	return "column " + column + ": " + text
}

// String names the place as FILE:LINE, as editors do. If rows are not simply lines below a header, because of titles,
// blank lines or line breaks in cells, it also names the row: spreadsheets count rows.
func (at Place) String() string {
	switch below := at.Line - at.Row; {
	case at.Row > 0 && below != 0 && below != 1:
		return fmt.Sprintf("%s: row %d (line %d)", at.File, at.Row, at.Line)
	case at.Line == 0:
		return at.File
	}
	return at.File + ":" + strconv.Itoa(at.Line)
}

// Annotations as Files.Problems means annotations of a GitHub workflow. GitHub reads them from a command's output.
const Annotations = "github"

// maxAnnotations is how many annotations a run prints. GitHub shows ten for a step.
const maxAnnotations = 100

// openProblems opens the file of problems, if it is wanted: CSV if its name ends with .csv, otherwise JSONL.
func (r *Run) openProblems() {
	if path := r.files.Problems; path != Annotations {
		r.problems = r.create("", path)
		if strings.EqualFold(filepath.Ext(path), ".csv") {
			beginLines[Problem](r, r.problems)
		}
	}
}

// Problems writes a batch of problems, if they are wanted. It returns the first error of any file.
func (r *Run) Problems(batch []Problem) error {
	line, to := Problem.object, io.Writer(r.problems)
	switch {
	case r.files.Problems == Annotations:
		batch = batch[:min(len(batch), maxAnnotations-r.annotated)]
		r.annotated += len(batch)
		line, to = Problem.annotation, r.files.Annotate
	case r.problems == nil || r.problems.lines != nil:
		return writeLines(r, r.problems, batch, nil)
	}
	for _, p := range batch {
		p.File, p.Column, p.Text, p.Value = spelling.EscapeLine(p.File), spelling.Escape(p.Column), spelling.Escape(p.Text), spelling.Escape(p.Value)
		r.writeLine(to, line(p))
	}
	return r.err
}

func (r *Run) writeLine(to io.Writer, line []byte) {
	if r.err == nil {
		_, r.err = to.Write(append(line, '\n'))
	}
}

func (p Problem) object() []byte {
	b, _ := json.Marshal(p) // its texts are escaped, so nothing fails
	return spelling.EscapeJSON(b)
}

// property escapes a value in a command of a GitHub workflow.
var property = strings.NewReplacer("%", "%25", ":", "%3A", ",", "%2C")

// annotation returns a problem as a command of a GitHub workflow.
func (p Problem) annotation() []byte {
	at := "file=" + property.Replace(p.File) + ",title=" + property.Replace(p.Rule)
	if p.Line > 0 {
		at += ",line=" + strconv.Itoa(p.Line)
	}
	return fmt.Appendf(nil, "::error %s::%s", at, strings.ReplaceAll(inColumn(p.Column, p.Text), "%", "%25"))
}
