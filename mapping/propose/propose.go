// Package propose writes a mapping file for an input that it has seen a sample of, as leadferry init prints it.
//
// It uses mapping, whose language it writes and whose rules judge the outcome, and reads no file itself:
//
//	Input ─▶ table (cells measured) ─▶ draft (which column plays which part) ─▶ YAML ─▶ mapping.Parse ─▶ Proposal
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
	"fmt"
	"slices"
	"strings"

	"leadferry/mapping"
)

// Input is a sample of a file. Its Source says how the file was read: the format and the columns of its first line
// (which may be a lead; where the source has no header they are made up), and what of the rest the mapping has to say,
// since flags named it or a reader does not find it out by itself.
type Input struct {
	mapping.Source
	File string // how people call the file; "-" is standard input

	Rows     [][]string // a cell for each column
	Complete bool       // Rows are all rows of the file
	Bad      []Unread   // why rows could not be read, which are not in Rows
	Warnings []string   // of the reader, for people
	Repeats  int        // rows that are the header once more; they are passed over by any reading
}

// Unread is why rows could not be read, in words without their cells: how many, and the line of the first.
type Unread struct {
	Why        string
	Rows, Line int
}

// Proposal is a mapping file of at most 1 MiB, and sentences that say what was decided and what is left to people.
type Proposal struct {
	YAML  []byte
	Notes []string
}

// Propose writes a mapping file for the sampled input. Its error says that no column can go into a lead, or that the
// file would not load.
func Propose(in Input) (Proposal, error) {
	d := newDraft(newTable(in))
	goes := func(c *column) bool { return c.profile.filled > 0 || len(in.Rows) == 0 }
	if len(in.Columns) > 0 && d.Key.Column == nil && !slices.ContainsFunc(d.columns, goes) {
		const hint = "export the columns that a sales person needs, such as name, e-mail address and phone number, each " +
			"under a name of its own"
		return Proposal{}, mapping.Error{File: in.File, Text: noColumn, Hint: hint}
	}
	text := []byte(d.yaml())
	if _, err := mapping.Parse("proposal", text, nil); err != nil {
		return Proposal{}, fmt.Errorf("the mapping that was made does not load: %w", err)
	}
	return Proposal{YAML: text, Notes: d.notes()}, nil
}

const noColumn = "no column of it can go into a lead, except secrets and names that are there twice"

const nowhere = "imported" // from a file whose name says nothing

// draft is what was decided of a table, before it is written down.
type draft struct {
	*table
	Origin       string // of the leads: words of the file's name
	Organization organizationChoice
	Status       *statusChoice // nil: no column is one
	Key          keyChoice
	Fields       []field  // the keys of the content that are written out
	Names        []string // columns that rest sends
	Except       []string // and those that it has to leave out
	Empty        []string // columns without a cell in the sample

	parts map[part]*column
}

// newDraft decides from the surest to the least sure: a column that plays one part is not looked at for the next.
func newDraft(t *table) *draft {
	d := &draft{
		table: t, Origin: cmp.Or(strings.Join(fileWords(t.In.File), " "), nowhere), Status: t.chooseStatus(), Organization: t.chooseOrganization(),
		parts: map[part]*column{},
	}
	if d.Status != nil && d.Status.Live {
		d.Status.Column.part = "status"
	}
	if d.Organization.Live {
		d.Organization.Column.part = "organization"
	}
	d.assignParts()
	d.decideContent()
	d.Key = d.chooseKey()
	d.decideRest()
	return d
}
