package rows

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What leadferry adds to a rejects file: columns whose names begin with Reserved, or one member of that name
// without its last character to each object of JSON.
const (
	Reserved      = "leadferry_"
	TextColumn    = Reserved + "text"    // a row that could not be taken apart
	OutcomeColumn = Reserved + "outcome" // what became of a row
	AnswerColumn  = Reserved + "lead_id" // what a person found out about a row in doubt
)

// IsOfRejects says that a header is that of a rejects file, which names the columns that leadferry adds.
func IsOfRejects(header string) bool {
	return strings.Contains(header, Reserved+"line") && strings.Contains(header, OutcomeColumn) &&
		strings.Contains(header, Reserved+"error")
}

// HasLead says of an outcome in a rejects file that the row's lead exists, or may exist.
func HasLead(outcome string) bool {
	return outcome == "in_doubt" || outcome == "partial" || outcome == "changed"
}

// HeaderHint is what to do about a file without a header that can be read.
const HeaderHint = "the first line must name the columns"

// ByteOrderMark begins some texts in UTF-8.
const ByteOrderMark = "\uFEFF"

// Columns say which columns of a table are its rows' own. Those that a rejects file has added are not.
type Columns struct {
	Header   *Header
	Line     int   // on which the header stands; 0: the file has none
	Width    int   // columns of the file
	Keep     []int // columns that are the rows' own
	Nameless int   // columns behind the others that the header has blank names for
	Whole    bool  // all columns are the rows' own

	names   []string // of all columns
	text    int      // column TextColumn; -1: none
	outcome int      // column OutcomeColumn; -1: none
	answer  int      // column AnswerColumn; -1: none
	null    []string // cells that count as empty
	footer  *regexp.Regexp
	told    bool // that rows hold something behind the named columns
}

// NewColumns takes the names of a header on this line, or of the options where line is 0.
//
// Names are taken without white space and invisible characters at their ends. A header may end with blank cells, as
// spreadsheets write them for columns that were used once: rows need no cells there. What rows hold in columns without
// a name is never sent. A name that is blank or is there twice is for the mapping to refuse, which may not
// use it.
func NewColumns(names []string, line int, o Options, found *Found) (Columns, error) {
	names = Trimmed(names)
	c := Columns{Header: &Header{}, Line: line, text: -1, outcome: -1, answer: -1, null: o.Null, footer: o.Footer}
	if line > 0 && Used(names) > 0 {
		c.Nameless = len(names) - Used(names)
		names = names[:Used(names)]
	}
	if err := checkNames(names, line); err != nil {
		return c, err
	}
	c.names, c.Width = names, len(names)
	if i := slices.Index(names, ""); i >= 0 {
		found.Warn("column %d has no name in the header: what rows hold there is never sent", i+1)
	}
	for i, name := range names {
		switch {
		case name == TextColumn:
			c.text = i
		case name == OutcomeColumn:
			c.outcome, c.Header.Rejects = i, true
		case name == AnswerColumn:
			c.answer = i
		case !strings.HasPrefix(name, Reserved):
			c.Header.Names = append(c.Header.Names, name)
			c.Keep = append(c.Keep, i)
		}
	}
	c.Header.Own = len(c.Keep)
	c.Whole = len(c.Keep) == c.Width
	found.Header = c.Header
	return c, nil
}

func checkNames(names []string, line int) error {
	switch {
	case len(names) == 0:
		return Refuse("the columns of a file without header have no names",
			"list them under source.columns of the mapping")
	case Used(names) == 0:
		return &OpenError{Line: line, Text: "the header names no column", Hint: HeaderHint}
	case len(names) > MaxColumns:
		return &OpenError{Line: line, Text: fmt.Sprintf("the header has %d columns, more than %d", len(names),
			MaxColumns), Hint: "split the file, or take out the columns that are not needed"}
	}
	return nil
}

// Judge says why a record with these cells is no row, nil if it is one, and notes on r what else they tell. The misfit
// is what is wrong with their number.
func (c *Columns) Judge(fields []string, misfit *Problem, r *Row, found *Found) *Problem {
	r.Ends = c.footer != nil && c.beginsFooter(fields)
	if p := c.uncorrected(fields, r); p != nil {
		return p
	}
	if c.Nameless > 0 && !c.told && misfit == nil && Used(fields) > c.Width {
		c.told = true
		found.Warn("line %d holds something in a column that has no name in the header, which is never sent, and "+
			"others may, too", r.Line)
	}
	if holds(fields, c.answer) {
		c.answer = -1 // said once
		found.Warn("%s holds answers about rows in doubt, the first on line %d: they settle nothing here; run "+
			"leadferry checkpoint resolve with this file first", AnswerColumn, r.Line)
	}
	r.Repeats = c.isHeader(fields)
	return misfit
}

// beginsFooter says that the cells that hold something, with a blank between, begin what is behind the table.
func (c *Columns) beginsFooter(fields []string) bool {
	var held []string
	for _, cell := range fields {
		if cell = strings.TrimFunc(cell, unseen); cell != "" {
			held = append(held, cell)
		}
	}
	return len(held) > 0 && c.footer.MatchString(strings.Join(held, " "))
}

// uncorrected finds a row of a rejects file that could not be taken apart and is there as text still, which
// becomes the text of r, or whose text was taken away and nothing put in its place.
func (c *Columns) uncorrected(fields []string, r *Row) *Problem {
	r.HasLead = c.outcome >= 0 && c.outcome < len(fields) && HasLead(strings.TrimSpace(fields[c.outcome]))
	switch {
	case holds(fields, c.text):
		r.Text = fields[c.text]
		return NotCorrected(TextColumn)
	case holds(fields, c.outcome) && c.empty(fields):
		return &Problem{
			Code: "uncorrected", Text: "not corrected yet",
			Hint: "fill the row's columns, or take the row out",
		}
	}
	return nil
}

// NotCorrected is the problem of a row that is in a rejects file as it was written there.
func NotCorrected(column string) *Problem {
	return &Problem{Code: "uncorrected", Text: "not corrected yet", Hint: "fill the row's columns and empty " + column}
}

// Blank says that a row holds nothing, or is the line that sqlcmd draws under a header, and is none of a rejects file,
// for which a person was asked.
func (c *Columns) Blank(fields []string) bool {
	return (c.empty(fields) || areDashes(fields)) && !holds(fields, c.text) && !holds(fields, c.outcome)
}

// areDashes says that each cell of a row holds dashes and nothing else.
func areDashes(fields []string) bool {
	for _, cell := range fields {
		if cell = strings.TrimSpace(cell); strings.Trim(cell, "-") != "" || cell == "" {
			return false
		}
	}
	return len(fields) > 0
}

// empty says that no cell of a row holds anything, except what a rejects file has added.
func (c *Columns) empty(fields []string) bool {
	for i, cell := range fields {
		added := i < c.Width && strings.HasPrefix(c.names[i], Reserved)
		if !added && !IsBlank(cell, c.null) {
			return false
		}
	}
	return true
}

// holds says that a row has something in a column, which is -1 where there is none.
func holds(fields []string, column int) bool {
	return column >= 0 && column < len(fields) && strings.TrimSpace(fields[column]) != ""
}

// isHeader says that a row is the header once more, as in files that were put together from several exports: the
// same names in letters of any case, in any order. Any other row is data, whatever words it shares with the header.
func (c *Columns) isHeader(fields []string) bool {
	if len(fields) == 0 {
		return false
	}
	equal := strings.EqualFold
	if c.Width == 1 { // of a column called name, Name may be a name
		equal = func(a, b string) bool { return a == b }
	}
	first := strings.TrimFunc(fields[0], unseen)
	if !slices.ContainsFunc(c.names, func(name string) bool { return equal(name, first) }) {
		return false
	}
	row := Trimmed(fields[:min(len(fields), c.Width)])
	return slices.EqualFunc(inOrder(row), inOrder(c.names), equal)
}

func inOrder(names []string) []string {
	return slices.SortedFunc(slices.Values(names),
		func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
}

// Used counts the cells up to the last that holds something.
func Used(cells []string) int {
	n := len(cells)
	for n > 0 && cells[n-1] == "" {
		n--
	}
	return n
}

// Trimmed are cells without what nobody could see at their ends, and with line breaks as line feeds.
func Trimmed(cells []string) []string {
	cells = slices.Clone(cells)
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimFunc(cell, unseen), "\r\n", "\n")
	}
	return cells
}

// IsBlank says that a cell holds nothing that anybody could see, or a word that counts as empty.
func IsBlank(cell string, null []string) bool {
	switch {
	case cell == "":
		return true
	case len(null) == 0 && cell[0] > ' ' && cell[0] < utf8.RuneSelf:
		return false
	}
	cell = strings.TrimFunc(cell, unseen)
	return cell == "" || slices.Contains(null, cell)
}

// unseen says that nobody could see a character at the end of a text.
func unseen(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
