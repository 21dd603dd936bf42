package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// reserved begins the names of the columns that leadferry adds to rejects.
const reserved = "leadferry_"

const headerHint = "the first line must name the columns"

// begin takes the columns from the header line, or from the options where the
// file has none.
func (c *csvRows) begin(o Options) *OpenError {
	if o.NoHeader {
		return c.use(o.Columns, 0)
	}
	size, problem, err := c.record()
	line := c.in.number
	switch {
	case errors.Is(err, io.EOF):
		return &OpenError{Text: "is empty: it has no header", Hint: headerHint}
	case err != nil:
		return unreadable(err)
	case problem != nil:
		return &OpenError{Line: line, Text: "the header cannot be read: " + problem.Text, Hint: cmp.Or(c.in.hint(problem, size), headerHint)}
	}
	c.in.pass(size)
	return c.use(c.fields, line)
}

// use makes names the columns of the file.
func (c *csvRows) use(names []string, line int) (e *OpenError) {
	c.layout, e = newLayout(names, line)
	return e
}

// layout says which columns of a file are its rows' own. Those that a rejects
// file has added are not.
type layout struct {
	header   *Header
	line     int   // on which the header stands; 0: the file has none
	width    int   // columns of the file
	keep     []int // columns that are the rows' own
	nameless int   // columns behind the others that the header has no names for
	warnings []string
}

// newLayout checks the names of a header on this line, or of the options where
// line is 0.
//
// Names are taken without white space at their ends and must differ. A header
// may end with blank cells, as spreadsheets write them for columns that were
// used once: those are no columns, and a row that holds something there has a
// wrong number of cells. A blank name before another, or a name that stands
// twice, would leave it open what a row says, and so is refused. Names that
// differ in case or white space only are told apart, with a warning.
func newLayout(names []string, line int) (layout, *OpenError) {
	names = trimmed(names)
	of := layout{header: &Header{}, line: line}
	if line > 0 && used(names) > 0 {
		of.nameless = len(names) - used(names)
		names = names[:used(names)]
	}
	if e := checkNames(names, line); e != nil {
		return layout{}, e
	}
	of.width = len(names)
	for i, name := range names {
		if !strings.HasPrefix(name, reserved) {
			of.header.Names = append(of.header.Names, name)
			of.keep = append(of.keep, i)
		}
	}
	of.header.Own = len(of.keep)
	if of.nameless > 0 {
		of.warnings = append(of.warnings, fmt.Sprintf("the header ends with %s; a row that holds something there is not read", count(of.nameless, "blank cell")))
	}
	of.warnings = append(of.warnings, similarNames(names)...)
	return of, nil
}

func trimmed(cells []string) []string {
	cells = slices.Clone(cells)
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(cell)
	}
	return cells
}

// similarNames warns of columns that are easily taken for each other.
func similarNames(names []string) (warnings []string) {
	seen := make(map[string]int, len(names))
	for i, name := range names {
		plain := strings.ToLower(strings.Join(strings.Fields(name), " "))
		if first, twice := seen[plain]; twice {
			warnings = append(warnings, fmt.Sprintf("the names of columns %d and %d differ in case or white space only; the mapping must write them exactly", first+1, i+1))
			continue
		}
		seen[plain] = i
	}
	return warnings
}

// checkNames refuses names that could not be told apart. It tells no name: in
// a file without header it would be a cell.
func checkNames(names []string, line int) *OpenError {
	if len(names) == 0 {
		return &OpenError{Text: "the columns of a file without header have no names", Hint: "list them under source.columns of the mapping"}
	}
	if len(names) > maxColumns {
		return &OpenError{Line: line, Text: fmt.Sprintf("the header has %d columns, more than %d", len(names), maxColumns), Hint: "split the file, or take out the columns that are not needed"}
	}
	seen := make(map[string]int, len(names))
	for i, name := range names {
		if name == "" {
			return &OpenError{Line: line, Text: fmt.Sprintf("column %d has no name", i+1), Hint: "name the column or take it out of the file"}
		}
		if first, twice := seen[name]; twice {
			return &OpenError{Line: line, Text: fmt.Sprintf("columns %d and %d have the same name", first+1, i+1), Hint: "give each column a name of its own"}
		}
		seen[name] = i
	}
	return nil
}
