package rows

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"leadferry/internal/rowkey"
)

// Reserved begins the columns that leadferry adds to a rejects file. In JSON it adds one member, "leadferry", instead.
const Reserved = "leadferry_"

// IsOfRejects reports whether a header has the columns that leadferry adds to rejects.
func IsOfRejects(header string) bool {
	return strings.Contains(header, Reserved+"line") && strings.Contains(header, Reserved+"outcome") &&
		strings.Contains(header, Reserved+"error")
}

// Note sets Outcome, Answered, Key and FormerKey from a rejects file. of returns the row's cell in Reserved + name.
func (r *Row) Note(of func(name string) string) {
	outcome := strings.ToLower(strings.TrimSpace(of("outcome")))
	switch outcome {
	case "", "invalid", "rejected", "failed", "skipped", "pending", "unmatched", "conflict":
	case "created", "updated", "unchanged", "changed", "partial":
		r.Outcome = outcome
	default: // an unknown word may mean that there is a lead
		r.Outcome = "in_doubt"
	}
	r.Answered, r.Key = of("lead_id") != "", rowkey.Effective(of("namespace"), of("key"))
	if outcome != "" {
		r.FormerKey = r.Key
	}
}

// HeaderHint is the hint for a header that cannot be read.
const HeaderHint = "the first line must name the columns; source.skip_rows leaves out the lines above it"

// ByteOrderMark begins some UTF-8 texts.
const ByteOrderMark = "\uFEFF"

// Columns are the columns of a table. The columns that a rejects file adds are not the rows' own.
type Columns struct {
	Header   *Header
	Line     int   // of the header; 0: the file has none
	Width    int   // how many columns the file has, without Nameless
	Keep     []int // indexes of the rows' own columns
	Nameless int   // how many columns with blank names follow at the end
	Whole    bool  // all columns are the rows' own

	names  []string       // of all columns, in the order of the last header
	notes  map[string]int // indexes of the columns that a rejects file adds, by name without Reserved
	null   []string       // texts of cells that count as empty
	footer *regexp.Regexp
	warned bool // a warning said that a row has a cell in a column without a name
}

// NewColumns returns the columns with these names. line is that of the header; 0: the options named the columns.
//
// It removes white space and invisible characters at the ends of names. A header may end with blank cells, which
// spreadsheets write for columns that were once used; rows need no cells there. A column without a name is never sent.
// The mapping refuses blank and repeated names if it uses them.
func NewColumns(names []string, line int, o Options, found *Found) (Columns, error) {
	names = Trimmed(names)
	c := Columns{Header: &Header{}, Line: line, notes: map[string]int{}, null: o.Null, footer: o.Footer}
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
		if note, added := strings.CutPrefix(name, Reserved); added {
			c.notes[note] = i
			continue
		}
		c.Header.Names = append(c.Header.Names, name)
		c.Keep = append(c.Keep, i)
	}
	_, c.Header.Rejects = c.notes["outcome"]
	c.Header.Own = len(c.Keep)
	c.Whole = len(c.Keep) == c.Width
	found.Header, found.Frame = c.Header, o.Frame
	return c, nil
}

func checkNames(names []string, line int) error {
	switch {
	case len(names) == 0:
		return Refuse("the columns of a file without header have no names",
			"list them under source.columns of the mapping")
	case Used(names) == 0:
		return RefuseAt(line, "the header names no column", HeaderHint)
	case len(names) > MaxColumns:
		return RefuseAt(line, fmt.Sprintf("the header has %d columns, more than %d", len(names), MaxColumns),
			"split the file, or take out the columns that are not needed")
	}
	return nil
}

// Judge returns why a record with these cells is not a usable row, or nil. It notes on r what else the cells show.
// A repeated header sets the order of the next rows. misfit is the problem with the number of cells, or nil.
func (c *Columns) Judge(fields []string, misfit *Problem, r *Row, found *Found) *Problem {
	r.Ends = c.footer != nil && c.beginsFooter(fields)
	if r.Repeats = c.takeHeader(fields); r.Repeats {
		return misfit
	}
	if p := c.uncorrected(fields, r); p != nil {
		return p
	}
	if c.Nameless > 0 && !c.warned && misfit == nil && Used(fields) > c.Width {
		c.warned = true
		found.Warn("line %d has a cell in a column without a name in the header. Cells there are never sent; other "+
			"rows may have some, too", r.Line)
	}
	return misfit
}

// beginsFooter reports whether the cells that are not blank, joined by blanks, match the footer.
func (c *Columns) beginsFooter(fields []string) bool {
	var held []string
	for _, cell := range fields {
		if cell = strings.TrimFunc(cell, isInvisible); cell != "" {
			held = append(held, cell)
		}
	}
	return len(held) > 0 && c.footer.MatchString(strings.Join(held, " "))
}

// uncorrected returns the problem of a reject that nobody corrected: its text is still there, or its cells are empty.
func (c *Columns) uncorrected(fields []string, r *Row) *Problem {
	if len(c.notes) == 0 {
		return nil
	}
	r.Note(func(name string) string { return c.note(fields, name) })
	switch {
	case c.note(fields, "text") != "":
		r.Text = fields[c.notes["text"]]
		return NotCorrected(Reserved + "text")
	case c.note(fields, "outcome") != "" && c.empty(fields):
		return Flaw("uncorrected", "not corrected yet", "fill the row's columns, or take the row out")
	}
	return nil
}

// NotCorrected returns the problem of a row that is still as leadferry wrote it to a rejects file.
func NotCorrected(column string) *Problem {
	return Flaw("uncorrected", "not corrected yet", "fill the row's columns and empty "+column)
}

// Blank reports whether a row holds nothing, or is a drawn line, as sqlcmd and Markdown write it. A row of a rejects
// file with a text or an outcome is not blank.
func (c *Columns) Blank(fields []string) bool {
	return (c.empty(fields) || isDrawnLine(fields)) && c.note(fields, "text")+c.note(fields, "outcome") == ""
}

// isDrawnLine reports whether the cells hold only the marks - + and :. Each cell must have one, or one cell several.
func isDrawnLine(fields []string) bool {
	all, line := len(fields) > 0, false
	for _, cell := range fields {
		cell = strings.TrimSpace(cell)
		if strings.ContainsFunc(cell, func(r rune) bool { return r != '-' && r != '+' && r != ':' }) {
			return false
		}
		all, line = all && cell != "", line || len(cell) > 1
	}
	return all || line
}

// empty reports whether all cells are empty, except those that a rejects file adds.
func (c *Columns) empty(fields []string) bool {
	for i, cell := range fields {
		added := i < c.Width && strings.HasPrefix(c.names[i], Reserved)
		if !added && !IsBlank(cell, c.null) {
			return false
		}
	}
	return true
}

// note returns the cell in a column that a rejects file adds, or "".
func (c *Columns) note(fields []string, name string) string {
	if i, has := c.notes[name]; has && i < len(fields) {
		return strings.TrimSpace(fields[i])
	}
	return ""
}

// takeHeader reports whether a row repeats the header, in any case and order, as in a file joined from several exports.
// It takes over the order: the next rows have it.
func (c *Columns) takeHeader(fields []string) bool {
	if len(fields) < max(c.Width, 1) {
		return false
	}
	equal := strings.EqualFold
	if c.Width == 1 { // in a file whose only column is name, the cell Name may be data
		equal = func(a, b string) bool { return a == b }
	}
	first := strings.TrimFunc(fields[0], isInvisible)
	if !slices.ContainsFunc(c.names, func(name string) bool { return equal(name, first) }) {
		return false
	}
	row, to, names := Trimmed(fields[:c.Width]), make([]int, c.Width), make([]string, c.Width)
	for i, name := range c.names {
		at := slices.Index(row, name)
		if at < 0 {
			at = slices.IndexFunc(row, func(cell string) bool { return equal(name, cell) })
		}
		if at < 0 {
			return false
		}
		to[i], names[at], row[at] = at, name, "\x00"
	}
	for i, column := range c.Keep {
		c.Keep[i] = to[column]
	}
	for note, column := range c.notes {
		c.notes[note] = to[column]
	}
	c.names, c.Whole = names, c.Whole && slices.IsSorted(c.Keep)
	return true
}

// Used returns the number of cells up to the last one that is not empty.
func Used(cells []string) int {
	n := len(cells)
	for n > 0 && cells[n-1] == "" {
		n--
	}
	return n
}

// Trimmed returns the cells without invisible characters at their ends. CR LF inside a cell becomes LF.
func Trimmed(cells []string) []string {
	cells = slices.Clone(cells)
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimFunc(cell, isInvisible), "\r\n", "\n")
	}
	return cells
}

// IsBlank reports whether a cell holds nothing visible, or a word that counts as empty.
func IsBlank(cell string, null []string) bool {
	switch {
	case cell == "":
		return true
	case len(null) == 0 && cell[0] > ' ' && cell[0] < utf8.RuneSelf:
		return false
	}
	cell = strings.TrimFunc(cell, isInvisible)
	return cell == "" || slices.Contains(null, cell)
}

// isInvisible reports whether a character is invisible at the end of a text.
func isInvisible(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
