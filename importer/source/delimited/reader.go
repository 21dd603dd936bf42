// Package delimited reads rows of CSV and its kin: cells between delimiters, perhaps in quotes, one record a line
// or more.
//
// It makes rows of the text that a [lines.Window] shows. Its promises: no row begins inside another one's quotes,
// cells keep every byte, and a row that cannot be read is the problem of that row alone, or the file is lost there.
package delimited

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
)

// Reader splits a window into records, and records into cells.
//
// A cell that begins with a quote ends with the next one that a delimiter or a line's end follows, and holds everything
// between as it is, up to 16 MiB; in any other cell a quote is text. A quote that is never closed loses the file: no
// row may begin inside another one's quotes.
type Reader struct {
	in      *lines.Window
	found   *rows.Found
	columns rows.Columns

	frame    rows.Frame
	comments int // lines that were passed over as such

	delim  string
	plain  bool     // quotes are text like any other
	fields []string // of the present record, as many as it has
	quoted quoted
	over   bool  // the present record goes on behind the window
	ended  error // what ended the reading
}

// Open finds the delimiter and the header of a text. Its error is a *[rows.OpenError], or one of reading.
func Open(in *lines.Window, o rows.Options, found *rows.Found) (*Reader, error) {
	in.SkipTo(o.SkipRows + 1)
	found.Delimiter = findDelimiter(in, o)
	if !canDelimit(found.Delimiter) {
		return nil, &rows.OpenError{
			Text: "the delimiter is not a character that can part cells",
			Hint: "any character but quotes, line ends and NUL can",
		}
	}
	r := newReader(in, found.Delimiter, o, found)
	return r, r.begin(o)
}

func newReader(in *lines.Window, delim rune, o rows.Options, found *rows.Found) *Reader {
	in.Widen()
	d := string(delim)
	return &Reader{
		in: in, found: found, delim: d, frame: o.Frame, plain: o.NoQuotes,
		quoted: quoted{delim: []byte(d), escape: o.Backslash},
	}
}

// begin takes the columns from the header line, or from the options where the file has none.
func (r *Reader) begin(o rows.Options) error {
	names, line := o.Columns, 0
	if !o.NoHeader {
		size, err := r.header()
		if err != nil {
			return err
		}
		names, line = r.fields, r.in.Number
		r.pass(size)
	}
	var err error
	r.columns, err = rows.NewColumns(names, line, o, r.found)
	return err
}

func (r *Reader) header() (size int, err error) {
	size, problem := r.record()
	line := r.in.Number
	refuse := func(line int, text, hint string) (int, error) {
		return 0, &rows.OpenError{Line: line, Text: text, Hint: hint}
	}
	var lost *rows.LostError
	switch {
	case errors.As(r.ended, &lost):
		return refuse(lost.Line, "the header cannot be read: "+lost.Text, lost.Hint)
	case errors.Is(r.ended, io.EOF):
		text, hint := r.frame.Empty("is empty: it has no header", rows.HeaderHint)
		return refuse(0, text, hint)
	case r.ended != nil:
		return 0, r.ended
	case beginsJSON(r.in.Bytes(size)):
		return refuse(line, "begins with a JSON object instead of a header", "name its format: --format jsonl")
	case problem != nil:
		return refuse(line, "the header cannot be read: "+problem.Text, cmp.Or(problem.Hint, rows.HeaderHint))
	}
	return size, nil
}

// beginsJSON says that a line is none but an object or a list of them.
func beginsJSON(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"`)) || bytes.HasPrefix(line, []byte("[{"))
}

// Next reads the next record that holds data. Its error is io.EOF, a *[rows.LostError], or one of reading.
func (r *Reader) Next(row *rows.Row) error {
	for {
		size, problem := r.record()
		if r.ended != nil {
			r.tellComments()
			return r.ended
		}
		if problem == nil && r.columns.Blank(r.fields) {
			r.found.Blank++
			r.pass(size)
			continue
		}
		r.give(row, size, problem)
		r.pass(size)
		return nil
	}
}

// Line is the line on which the reading stands; at the end, how many lines there are.
func (r *Reader) Line() int { return r.in.Lines() }

func (r *Reader) give(row *rows.Row, size int, problem *rows.Problem) {
	row.Line, row.Size = r.in.Number, size
	row.Ends = problem == nil && r.frame.EndsAt(r.fields)
	if problem == nil {
		row.OneLine = r.quoted.lines == 0
		problem = r.columns.Uncorrected(r.fields, row)
	}
	if problem == nil {
		row.Repeats = r.columns.HeaderAgain(r.fields)
	}
	if problem == nil && !r.fits() {
		problem = r.wrongWidth()
	}
	if problem == nil && r.columns.HasUnnamed() {
		r.columns.CountUnnamed(r.fields, row.Line, r.found)
	}
	if problem == nil && r.columns.Whole && cap(row.Cells) >= r.columns.Width {
		row.Cells, r.fields = r.fields[:r.columns.Width], row.Cells // each is a room for the other's next
		return
	}
	row.Cells = rows.Cleared(row.Cells, len(r.columns.Keep))
	if problem == nil {
		for i, column := range r.columns.Keep {
			row.Cells[i] = r.fields[column]
		}
		return
	}
	if row.Problem = problem; problem.Code == "quote" && r.hasEscapes(size) {
		problem.Hint = escapeHint
	}
	if row.Text == "" {
		row.Text = lines.Readable(lines.Body(r.in.Bytes(size)))
	}
}

// pass goes on to what follows a record of this size.
func (r *Reader) pass(size int) {
	line := r.in.Number
	r.in.Pass(size)
	if r.over && r.in.PassLine() && !r.plain {
		r.ended = r.tooMuch(line)
	}
	r.over = false
}

// fits says that the record has a cell for each column, and nothing beyond. Empty fields beyond the header are let
// pass, as Excel writes them.
func (r *Reader) fits() bool {
	return len(r.fields) >= r.columns.Width && rows.Used(r.fields) <= r.columns.Width+r.columns.Nameless
}

func (r *Reader) wrongWidth() *rows.Problem {
	c := &r.columns
	p := &rows.Problem{Code: "columns", Text: fmt.Sprintf("the row has %s instead of %d", english.Plural(len(r.fields), "cell", ""), c.Width)}
	if c.Width == 1 && c.Line > 0 {
		p.Hint = fmt.Sprintf("line %d was taken for the header; take out what stands before the header, or set the delimiter", c.Line)
	}
	return p
}

// tooMuch says that a row is too long to know where it ends.
func (r *Reader) tooMuch(line int) error {
	return r.lost(line, fmt.Sprintf("the row is longer than %d bytes and holds quotes", r.in.Max), 0)
}

// escapeHint is for files in which a backslash stands before quotes.
const escapeHint = `where a backslash stands before quotes in this file, say so in the mapping: source: {escape: "\\"}`

func (r *Reader) hasEscapes(size int) bool {
	return !r.quoted.escape && bytes.Contains(r.in.Bytes(size), []byte(`\"`))
}

// lost says that it cannot be known where the rows behind a line begin. The size is that of what was seen of the row.
func (r *Reader) lost(line int, text string, size int) error {
	hint := "mend the quotes of this row, or fetch the file again if it was cut; " +
		"if quotes are text like any other in this file, say so in the mapping: source: {quote: none}"
	if r.hasEscapes(size) {
		hint = escapeHint
	}
	text += ": where the rows behind it begin cannot be known, and none of them was read"
	return &rows.LostError{Line: line, Text: text, Hint: hint}
}

// first is the line with which the next record begins, behind comments, and behind the line that names the delimiter, of
// which files that were put together have several.
func (r *Reader) first() ([]byte, error) {
	for {
		line, err := r.in.First()
		lost := err != nil && !errors.Is(err, lines.ErrTooLong)
		if !lost && separatorOf(line) == r.delim {
			r.in.PassLine()
			continue
		}
		if lost || r.frame.Comment == "" || !bytes.HasPrefix(r.in.Text(), []byte(r.frame.Comment)) {
			return line, err
		}
		r.comments++
		r.in.PassLine()
	}
}

// tellComments says at the end of the text how many lines of it were passed over.
func (r *Reader) tellComments() {
	if errors.Is(r.ended, io.EOF) && r.comments > 0 {
		r.found.Warn("%s passed over as source.comment says", english.PluralWord(r.comments, "1 line was", fmt.Sprintf("%d lines were", r.comments)))
		r.comments = 0
	}
}
