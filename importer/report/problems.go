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
	"github.com/gocarina/gocsv"
)

// Problem is one thing that is wrong, with a row or, without Line and Row, with a file. Rule is the check that a row
// fails, or the row's outcome where the service, or what is known of its lead, is in the way; or what else a file
// fails: map, test, mapping, guess, lost, repeated, look_alike, unused, dropped, else.
type Problem struct {
	File   string `csv:"file" json:"file"`
	Line   Number `csv:"line" json:"line,omitzero"`
	Row    Number `csv:"row" json:"row,omitzero"`
	Column string `csv:"column" json:"column,omitempty"`
	Rule   string `csv:"rule" json:"rule"`
	Text   string `csv:"text" json:"text"`
	Value  string `csv:"-" json:"value,omitempty"` // what is in the columns, where Files.ProblemValues asks for it
}

// valued is a line of problems with the value.
type valued struct {
	Problem
	Cell string `csv:"value"`
}

// Number counts from 1; 0 is an empty cell.
type Number int

// MarshalCSV gives the cell.
func (n Number) MarshalCSV() (string, error) {
	if n == 0 {
		return "", nil
	}
	return strconv.Itoa(int(n)), nil
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

// openProblems finds how problems are written, whose texts are fit to be shown already.
func (r *Run) openProblems() error {
	path := r.files.Problems
	if path == Annotations {
		r.problems = annotate(r.files.Annotate)
		return nil
	}
	out := r.create(path)
	if out == nil {
		return r.err
	}
	if strings.EqualFold(filepath.Ext(path), ".jsonl") {
		r.problems = func(batch []Problem) error { return writeObjects(out, batch) }
		return nil
	}
	lines := func(batch []Problem) any {
		if !r.files.ProblemValues {
			return batch
		}
		list := make([]valued, len(batch))
		for i, p := range batch {
			list[i] = valued{p, p.Value}
		}
		return list
	}
	r.problems = func(batch []Problem) error {
		each(batch, func(p *Problem) { p.Column, p.Text, p.Value = defuse(p.Column), defuse(p.Text), defuse(p.Value) })
		return gocsv.MarshalWithoutHeaders(lines(batch), out)
	}
	return gocsv.Marshal(lines(nil), out)
}

// Tells says whether problems are written at all.
func (r *Run) Tells() bool { return r.problems != nil }

// Problems writes what is wrong, with rows and, in the end, beside them. An error is the first that any of the run's
// files met.
func (r *Run) Problems(batch []Problem) error {
	if r.problems == nil || r.err != nil || len(batch) == 0 {
		return r.err
	}
	each(batch, func(p *Problem) {
		p.File, p.Column, p.Text, p.Value = EscapeLine(p.File), Escape(p.Column), Escape(p.Text), Escape(p.Value)
	})
	r.err = r.problems(batch)
	return r.err
}

// problems are what the checks found beside what is wrong with single rows.
func (c *Checks) problems(mapping string) (all []Problem) {
	if c == nil {
		return nil
	}
	faults := func(rule string, list []Fault) {
		for _, f := range list {
			text := f.Error
			if f.Hint != "" {
				text += " (hint: " + f.Hint + ")"
			}
			all = append(all, Problem{File: f.File, Line: Number(f.Line), Rule: rule, Text: text})
		}
	}
	for _, w := range c.Statuses {
		w.Value = "lead.status"
		all = append(all, w.problem("map", mapping))
	}
	for _, w := range c.Lacking {
		all = append(all, w.problem("map", mapping))
	}
	for _, f := range c.Tests.Failures {
		all = append(all, Problem{
			File: f.File, Line: Number(f.Line), Rule: "test",
			Text: strings.Join(f.Differences, "; "),
		})
	}
	faults("mapping", c.CannotCreate)
	faults("lost", c.LostFiles)
	return append(all, c.strictProblems(mapping)...)
}

func (w *Word) problem(rule, mapping string) Problem {
	return Problem{
		File: mapping, Column: w.Value, Rule: rule,
		Text: fmt.Sprintf("the map lacks %s: %s, first at %s", w.named(), english.Plural(w.Rows, "row", ""), w.Place),
	}
}

// strictProblems are those that count where a check is strict only.
func (c *Checks) strictProblems(mapping string) (all []Problem) {
	if !c.Strict {
		return nil
	}
	again := func(rule, text string, r *Repeats) {
		named := slices.Concat(r.Places, r.More)
		for _, one := range named {
			all = append(all, Problem{
				File: one.File, Line: Number(one.Line), Row: Number(one.Row), Rule: rule,
				Text: text + one.First.String(),
			})
		}
		if more := r.Rows - len(named); more > 0 {
			all = append(all, Problem{
				File: mapping, Rule: rule,
				Text: fmt.Sprintf("and %s more", english.Plural(more, "row", "")),
			})
		}
	}
	again("repeated", "the key is already at ", &c.Repeats)
	again("look_alike", "the key looks like the one at ", &c.LookAlikes)
	for _, g := range c.Unconfirmed {
		all = append(all, Problem{File: g.File, Line: Number(g.Line), Column: g.Of, Rule: "guess", Text: g.Why})
	}
	for _, w := range c.Caught {
		all = append(all, w.problem("else", mapping))
	}
	for _, name := range c.UnusedColumns {
		all = append(all, Problem{
			File: mapping, Column: name, Rule: "unused",
			Text: "no part of the mapping uses the column",
		})
	}
	return all
}

func writeObjects(out io.Writer, batch []Problem) error {
	for _, p := range batch {
		line, err := json.Marshal(p)
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
