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

	"github.com/dustin/go-humanize/english"
)

// reserved begins the names of the columns that leadferry adds to rejects.
const reserved = "leadferry_"

// textColumn holds the rows of a rejects file that could not be taken apart.
const textColumn = reserved + "text"

// outcomeColumn tells in every row of a rejects file what became of it.
const outcomeColumn = reserved + "outcome"

// inDoubt is what it tells of a row whose lead may exist.
const inDoubt = "in_doubt"

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
	case c.isJSON(size):
		return &OpenError{Line: line, Text: "begins with a JSON object instead of a header", Hint: "name its format: --format jsonl"}
	case problem != nil:
		return &OpenError{Line: line, Text: "the header cannot be read: " + problem.Text, Hint: cmp.Or(c.in.hint(problem, size), headerHint)}
	}
	c.pass(size)
	return c.use(c.fields, line, o)
}

// isJSON says that the record of this size, the first, is none but an object or a list of them.
func (c *csvRows) isJSON(size int) bool {
	first := c.in.bytes(size)
	return bytes.HasPrefix(first, []byte(`{"`)) || bytes.HasPrefix(first, []byte("[{"))
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
	outcome  int      // column in which a rejects file tells what became of a row; -1: none
	null     []string // cells that count as empty
	nameless int      // columns behind the others that the header has no names for
	blanks   int      // rows without any data, which were passed over
	warnings []string
}

// newLayout takes the names of a header on this line, or of the options where
// line is 0.
//
// Names are taken without white space and invisible characters at their ends. A header may end with blank
// cells, as spreadsheets write them for columns that were used once: those are no
// columns, and a row that holds something there has a wrong number of cells. A
// name that is blank or stands twice is for the mapping to refuse, which may not
// use it. Names that differ in case or white space only are told apart, with a
// warning.
func newLayout(names []string, line int, o Options) (layout, *OpenError) {
	names = trimmed(names)
	of := layout{header: &Header{}, line: line, text: -1, outcome: -1, null: o.Null}
	if line > 0 && used(names) > 0 {
		of.nameless = len(names) - used(names)
		names = names[:used(names)]
	}
	if e := checkNames(names, line); e != nil {
		return layout{}, e
	}
	of.names, of.width = names, len(names)
	for i, name := range names {
		switch name {
		case textColumn:
			of.text = i
		case outcomeColumn:
			of.outcome = i
		}
		if !strings.HasPrefix(name, reserved) {
			of.header.Names = append(of.header.Names, name)
			of.keep = append(of.keep, i)
		}
	}
	of.header.Own = len(of.keep)
	if of.nameless > 0 {
		of.warnings = append(of.warnings, fmt.Sprintf("the header ends with %s; a row that holds something there is not read", english.Plural(of.nameless, "blank cell", "")))
	}
	of.warnings = append(of.warnings, similarNames(names)...)
	return of, nil
}

// uncorrected finds a row of a rejects file that could not be taken apart and
// stands there as text still, which becomes the text of r, or whose text was taken
// away and nothing put in its place.
func (of *layout) uncorrected(fields []string, r *Row) *Problem {
	r.Doubted = of.outcome >= 0 && of.outcome < len(fields) && strings.TrimSpace(fields[of.outcome]) == inDoubt
	switch {
	case holds(fields, of.text):
		r.Text = fields[of.text]
		return notCorrected(textColumn)
	case holds(fields, of.outcome) && of.empty(fields):
		return &Problem{Code: "uncorrected", Text: "not corrected yet (hint: fill the row's columns, or take the row out)"}
	}
	return nil
}

// holds says that a row has something in a column, which is -1 where there is none.
func holds(fields []string, column int) bool {
	return column >= 0 && column < len(fields) && strings.TrimSpace(fields[column]) != ""
}

// blank says that a row holds nothing, and is none of a rejects file, for which a
// person was asked.
func (of *layout) blank(fields []string) bool {
	return of.empty(fields) && !holds(fields, of.text) && !holds(fields, of.outcome)
}

// empty says that no cell of a row holds anything, but for what a rejects file
// has added.
func (of *layout) empty(fields []string) bool {
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
	cell = strings.TrimFunc(cell, unseen)
	return cell == "" || len(null) > 0 && slices.Contains(null, cell)
}

// unseen says that nobody could see a character at the end of a text.
func unseen(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }

// again says that a row is the header once more, in letters of any case, as in files
// that were put together from several exports, each perhaps with its byte order mark. One that has the same
// columns in another order, or the first and most of the others, is the header of
// another table: what follows it is not what this file's header says.
func (of *layout) again(fields []string, line int) (repeats bool, lost error) {
	if len(fields) == 0 {
		return false, nil
	}
	equal := strings.EqualFold
	if of.width == 1 { // of a column called name, Name may be a name
		equal = func(a, b string) bool { return a == b }
	}
	first, marked := strings.CutPrefix(fields[0], byteOrderMark)
	if marked {
		first = strings.Trim(first, `"`)
	}
	first = strings.TrimFunc(first, unseen)
	if !slices.ContainsFunc(of.names, func(name string) bool { return equal(name, first) }) {
		return false, nil
	}
	row := trimmed(fields[:min(len(fields), of.width)])
	row[0] = first
	same := 0
	for i, field := range row {
		if equal(field, of.names[i]) {
			same++
		}
	}
	most := equal(first, of.names[0]) && same > 1 && 2*same >= of.width
	switch {
	case same == of.width:
		return true, nil
	case most, slices.EqualFunc(inOrder(row), inOrder(of.names), equal):
		return false, &LostError{
			Line: line, Text: "the header of another table stands here, with other columns or in another order: the rows behind it are not what this file's header says",
			Hint: "import each table as a file of its own",
		}
	}
	return false, nil
}

// inOrder gives names in an order in which case does not count.
func inOrder(names []string) []string {
	return slices.SortedFunc(slices.Values(names), func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
}

func trimmed(cells []string) []string {
	cells = slices.Clone(cells)
	for i, cell := range cells {
		cells[i] = strings.TrimFunc(cell, unseen)
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
