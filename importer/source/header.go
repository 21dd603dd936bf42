package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reserved begins the names of the columns that leadferry adds to rejects.
const reserved = "leadferry_"

// textColumn holds the rows of a rejects file that could not be taken apart.
const textColumn = reserved + "text"

const headerHint = "the first line must name the columns"

// begin takes the columns from the header line, or from the options where the
// file has none. Rejects always have one.
func (c *csvRows) begin(o Options) *OpenError {
	rejects := (c.plain || o.NoHeader) && c.in.beginsRejects()
	c.plain = c.plain && !rejects
	if o.NoHeader && !rejects {
		return c.use(o.Columns, 0, o)
	}
	size, problem, err := c.record()
	line := c.in.number
	var lost *LostError
	switch {
	case errors.As(err, &lost):
		return &OpenError{Line: lost.Line, Text: "the header cannot be read: " + lost.Text, Hint: lost.Hint}
	case errors.Is(err, io.EOF):
		return &OpenError{Text: "is empty: it has no header", Hint: headerHint}
	case err != nil:
		return unreadable(err)
	case problem != nil:
		return &OpenError{Line: line, Text: "the header cannot be read: " + problem.Text, Hint: cmp.Or(c.in.hint(problem, size), headerHint)}
	}
	c.pass(size)
	return c.use(c.fields, line, o)
}

// use makes names the columns of the file.
func (c *csvRows) use(names []string, line int, o Options) (e *OpenError) {
	c.layout, e = newLayout(names, line, o)
	return e
}

// beginsRejects says that the first line that is not blank is the header of a
// rejects file.
func (w *window) beginsRejects() bool {
	line, err := w.first()
	for _, name := range []string{"line", "outcome", "error"} {
		if err != nil || !bytes.Contains(line, []byte(reserved+name)) {
			return false
		}
	}
	return true
}

// rejectsDelimiter is what stands between the columns of a rejects file.
func (w *window) rejectsDelimiter() rune {
	line, _ := w.first() // as it begins rejects
	before := bytes.TrimRight(line[:bytes.Index(line, []byte(reserved+"outcome"))], `"`)
	delim, _ := utf8.DecodeLastRune(before)
	return delim
}

// layout says which columns of a file are its rows' own. Those that a rejects
// file has added are not.
type layout struct {
	header   *Header
	names    []string // of all columns
	line     int      // on which the header stands; 0: the file has none
	width    int      // columns of the file
	keep     []int    // columns that are the rows' own
	text     int      // column in which a rejects file has rows as text; -1: none
	null     []string // cells that count as empty
	nameless int      // columns behind the others that the header has no names for
	blanks   int      // rows without any data, which were passed over
	warnings []string
}

// newLayout takes the names of a header on this line, or of the options where
// line is 0.
//
// Names are taken without white space at their ends. A header may end with blank
// cells, as spreadsheets write them for columns that were used once: those are no
// columns, and a row that holds something there has a wrong number of cells. A
// name that is blank or stands twice is for the mapping to refuse, which may not
// use it. Names that differ in case or white space only are told apart, with a
// warning.
func newLayout(names []string, line int, o Options) (layout, *OpenError) {
	names = trimmed(names)
	of := layout{header: &Header{}, line: line, text: -1, null: o.Null}
	if line > 0 && used(names) > 0 {
		of.nameless = len(names) - used(names)
		names = names[:used(names)]
	}
	if e := checkNames(names, line); e != nil {
		return layout{}, e
	}
	of.names, of.width = names, len(names)
	for i, name := range names {
		if name == textColumn {
			of.text = i
		}
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

// uncorrected finds a row of a rejects file that could not be taken apart and
// stands there as text still, which becomes the text of r.
func (of *layout) uncorrected(fields []string, r *Row) *Problem {
	if of.text < 0 || of.text >= len(fields) || strings.TrimSpace(fields[of.text]) == "" {
		return nil
	}
	r.Text = fields[of.text]
	return notCorrected(textColumn)
}

// blank says that no cell of a row holds anything, but for what a rejects file
// has added.
func (of *layout) blank(fields []string) bool {
	for i, cell := range fields {
		added := i < of.width && strings.HasPrefix(of.names[i], reserved)
		if !added && !isBlank(cell, of.null) {
			return false
		}
	}
	return true
}

// isBlank says that a cell holds nothing that anybody could see, or a word that
// counts as empty.
func isBlank(cell string, null []string) bool {
	switch {
	case cell == "":
		return true
	case len(null) == 0 && cell[0] > ' ' && cell[0] < utf8.RuneSelf:
		return false
	}
	unseen := func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
	cell = strings.TrimFunc(cell, unseen)
	return cell == "" || len(null) > 0 && slices.Contains(null, cell)
}

// again says that a row is the header once more, as in files that were put together
// from several exports, each perhaps with its byte order mark. One that has the same
// columns in another order, or the first and most of the others, is the header of
// another table: what follows it is not what this file's header says.
func (of *layout) again(fields []string, line int) (repeats bool, lost error) {
	if len(fields) == 0 {
		return false, nil
	}
	first, marked := strings.CutPrefix(fields[0], byteOrderMark)
	if marked {
		first = strings.Trim(first, `"`)
	}
	if first = strings.TrimSpace(first); !slices.Contains(of.names, first) {
		return false, nil
	}
	row := trimmed(fields[:min(len(fields), of.width)])
	row[0] = first
	same := 0
	for i, field := range row {
		if field == of.names[i] {
			same++
		}
	}
	most := first == of.names[0] && same > 1 && 2*same >= of.width
	switch {
	case same == of.width:
		return true, nil
	case most, slices.Equal(slices.Sorted(slices.Values(row)), slices.Sorted(slices.Values(of.names))):
		return false, &LostError{
			Line: line, Text: "the header of another table stands here, with other columns or in another order: the rows behind it are not what this file's header says",
			Hint: "import each table as a file of its own",
		}
	}
	return false, nil
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
		if first, twice := seen[plain]; twice && names[first] == name {
			continue
		} else if twice {
			warnings = append(warnings, fmt.Sprintf("the names of columns %d and %d differ in case or white space only; the mapping must write them exactly", first+1, i+1))
			continue
		}
		seen[plain] = i
	}
	return warnings
}

// checkNames refuses headers that can be none.
func checkNames(names []string, line int) *OpenError {
	switch {
	case len(names) == 0:
		return &OpenError{Text: "the columns of a file without header have no names", Hint: "list them under source.columns of the mapping"}
	case used(names) == 0:
		return &OpenError{Line: line, Text: "the header names no column", Hint: headerHint}
	case len(names) > maxColumns:
		return &OpenError{Line: line, Text: fmt.Sprintf("the header has %d columns, more than %d", len(names), maxColumns), Hint: "split the file, or take out the columns that are not needed"}
	}
	return nil
}
