package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/go-json-experiment/json"
)

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
	words := func(rule, column string, list []Word) {
		for _, w := range list {
			all = append(all, Problem{
				File: mapping, Column: cmp.Or(column, w.Value), Rule: rule, Text: fmt.Sprintf(
					"the map lacks %s: %s, first at %s", w.named(), english.Plural(w.Rows, "row", ""), w.Place),
			})
		}
	}
	faults := func(rule string, list []Fault) {
		for _, f := range list {
			if f.Hint != "" {
				f.Error += " (hint: " + f.Hint + ")"
			}
			all = append(all, Problem{File: f.File, Line: f.Line, Rule: rule, Text: f.Error})
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
	words("map", "lead.status", c.Statuses)
	words("map", "", c.Lacking)
	for _, f := range c.Tests.Failures {
		text := strings.Join(f.Differences, "; ")
		all = append(all, Problem{File: f.File, Line: f.Line, Rule: "test", Text: text})
	}
	faults("mapping", c.CannotCreate)
	faults("lost", c.LostFiles)
	if !c.Strict {
		return all
	}
	again("repeated", "the key is already at ", &c.Repeats)
	again("look_alike", "the key looks like the one at ", &c.LookAlikes)
	for _, g := range c.Unconfirmed {
		all = append(all, Problem{File: g.File, Line: g.Line, Column: g.Of, Rule: "guess", Text: g.Why})
	}
	words("else", "", c.Caught)
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
