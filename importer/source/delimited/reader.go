// Package delimited reads rows of CSV and similar formats: cells, perhaps in quotes, and records of one or more lines.
//
// It makes rows from the text of a [lines.Window]. Promises: no row begins inside the quotes of another row, and cells
// keep every byte. A row that cannot be read is a problem of that row alone, or the rest of the file is lost.
package delimited

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

// Reader splits a window into records, and records into cells.
//
// A cell that begins with a quote ends with the next quote before a delimiter or a line's end. It holds all bytes
// between them, except that a doubled quote is one. In any other cell a quote is text. If a quote is never closed, the
// rest of the file is lost: no row may begin inside the quotes of another row.
type Reader struct {
	in      *lines.Window
	found   *rows.Found
	columns rows.Columns
	comment string // begins lines that are skipped; "": none

	delim  string
	plain  bool     // quotes are ordinary text
	fields []string // the cells of the current record
	quoted quoted
}

// Open finds the delimiter and the header of a text. Its error is a *[rows.OpenError], or a read error.
func Open(in *lines.Window, o rows.Options, found *rows.Found) (*Reader, error) {
	in.SkipTo(o.SkipRows + 1)
	r := &Reader{in: in, found: found, comment: o.Comment, plain: o.NoQuotes}
	_, _ = r.first() // passes comments; reading the header reports an error
	d := findDelimiter(in, o)
	if found.Delimiter = d; !utf8.ValidRune(d) || d == utf8.RuneError || strings.ContainsRune("\"\r\n\x00", d) {
		return nil, rows.Refuse("the delimiter is a character that cannot separate cells",
			"use any character except quotes, line ends and NUL")
	}
	in.Widen()
	r.delim, r.quoted = string(d), quoted{delim: []byte(string(d)), escape: o.Backslash}
	return r, r.begin(o)
}

// begin takes the columns from the header line, or from the options if the file has none.
func (r *Reader) begin(o rows.Options) (err error) {
	names, line := o.Columns, 0
	if !o.NoHeader {
		size, problem, err := r.record()
		lost, isLost := errors.AsType[*rows.LostError](err)
		switch {
		case isLost:
			return rows.RefuseAt(lost.Line, rows.NoHeader+lost.Text, lost.Hint)
		case errors.Is(err, io.EOF):
			return rows.Refuse("is empty: it has no header", rows.HeaderHint)
		case err != nil:
			return err
		case problem != nil:
			return rows.RefuseAt(r.in.Number, rows.NoHeader+problem.Text, cmp.Or(problem.Hint, rows.HeaderHint))
		}
		names, line = r.fields, r.in.Number
		r.in.Pass(size)
	}
	r.columns, err = rows.NewColumns(names, line, o, r.found)
	return err
}

// Next reads the next record that holds data. Its error is io.EOF, a *[rows.LostError], or a read error.
func (r *Reader) Next(row *rows.Row) error {
	for {
		size, problem, err := r.record()
		if err != nil {
			return err
		}
		if problem == nil && r.columns.Blank(r.fields) {
			r.found.Blank++
			r.in.Pass(size)
			continue
		}
		r.setCells(row, size, problem)
		r.in.Pass(size)
		return nil
	}
}

func (r *Reader) setCells(row *rows.Row, size int, problem *rows.Problem) {
	row.Line, row.Size = r.in.Number, size
	if problem == nil {
		row.OneLine = r.quoted.lines == 0
		problem = r.columns.Judge(r.fields, r.misfit(), row, r.found)
	}
	if problem == nil && r.columns.Whole && cap(row.Cells) >= r.columns.Width {
		row.Cells, r.fields = r.fields[:r.columns.Width], row.Cells // the reader reuses the row's slice
		return
	}
	row.Cells = rows.Cleared(row.Cells, len(r.columns.Keep))
	if problem == nil {
		for i, column := range r.columns.Keep {
			row.Cells[i] = r.fields[column]
		}
		return
	}
	if row.Problem = problem; row.Text == "" {
		row.Text = lines.Readable(lines.Body(r.in.Bytes(size)))
	}
}

// fits reports whether the record has a cell for each column, and nothing but empty cells after them.
func (r *Reader) fits() bool {
	return len(r.fields) >= r.columns.Width && rows.Used(r.fields) <= r.columns.Width+r.columns.Nameless
}

// misfit returns the problem with the number of cells, or nil. If a row has a cell too many, even an empty one, nobody
// knows which cell belongs to which column.
func (r *Reader) misfit() *rows.Problem {
	c := &r.columns
	if n := len(r.fields); n >= c.Width && n <= c.Width+c.Nameless {
		return nil
	}
	hint := "put quotes around a cell with the delimiter or a line break in it, and name every column in the header"
	if c.Width == 1 && c.Line > 0 {
		hint = fmt.Sprintf("line %d was taken for the header; take out what is before the header, or set the delimiter",
			c.Line)
	}
	has := english.Plural(len(r.fields), "cell", "")
	return rows.Flaw("columns", fmt.Sprintf("the row has %s instead of %d", has, c.Width), hint)
}

const quoteHint = "correct the quotes of this row, or fetch the file again if it was cut; " +
	"if quotes are text like any other in this file, say so in the mapping: source: {quote: none}; " +
	`where a backslash is before them: source: {escape: "\\"}`

// lost returns the error of a file in which no row can be found after this line.
func lost(line int, text string) error {
	text += ": nobody knows where the next rows begin, so none was read"
	return &rows.LostError{Line: line, Text: text, Hint: quoteHint}
}

// first passes comments and returns the first line of the next record.
func (r *Reader) first() ([]byte, error) {
	for {
		line, err := r.in.First()
		if err != nil || r.comment == "" || !bytes.HasPrefix(line, []byte(r.comment)) {
			return line, err
		}
		r.in.Pass(len(line))
	}
}

// separator is the line above the header that tells Excel the delimiter.
var separator = spelling.Form(`^(?i)"?sep=(.)"?$`)

// findDelimiter finds the delimiter, and passes a line that names it. For a rejects file it does not trust the options:
// another program may have saved the file with another delimiter.
func findDelimiter(in *lines.Window, o rows.Options) rune {
	written, header := BeginsRejects(in), header(in, o.NoQuotes || o.Backslash)
	if named := separator().FindStringSubmatch(strings.TrimRight(header, "\r\n")); named != nil {
		if in.Pass(len(header)); o.Delimiter == 0 { // a flag or the mapping wins
			o.Delimiter, _ = utf8.DecodeRuneInString(named[1])
		}
	}
	switch {
	case o.Delimiter != 0 && !written:
		return o.Delimiter
	case o.Format == rows.TSV && !written:
		return '\t'
	}
	return detectDelimiter(header, o)
}

// BeginsRejects reports whether the first record that is not blank is the header of a rejects file.
func BeginsRejects(in *lines.Window) bool { return rows.IsOfRejects(header(in, false)) }

// opens matches a record that ends inside the quotes of a cell.
var opens = spelling.Form(`(?:^|[,;\t|])"(?:[^"]|"")*$`)

// header returns the first record that is not blank: more lines than one if a name has line breaks in quotes.
func header(in *lines.Window, plain bool) string {
	line, _ := in.First()
	text := string(line)
	for n := 0; !plain && strings.Count(text, `"`)%2 == 1 && opens().MatchString(text); n++ {
		line, err := in.Line(len(text))
		if err != nil || n == 100 { // the quote is text
			return strings.SplitAfterN(text, "\n", 2)[0]
		}
		text += string(line)
	}
	return text
}

// detectDelimiter returns the character that splits the first line into the most cells: comma, semicolon, tab, bar, or
// the one in the options. It ignores characters in quotes and before an empty cell, and a comma or semicolon before a
// space, as in a sentence. For a file without header, a character wins that makes as many cells as the options name
// columns. If no character splits the line, it returns the comma.
func detectDelimiter(line string, o rows.Options) rune {
	candidates := ",;\t|"
	if o.Delimiter != 0 {
		candidates += string(o.Delimiter)
	}
	cells, quoted := map[rune]int{}, false
	text := []rune(strings.TrimRight(line, "\r\n"))
	for i, c := range text {
		switch {
		case c == '"' && !o.NoQuotes:
			quoted = !quoted
		case quoted || i+1 == len(text) || text[i+1] == c: // the cell after it is empty
		case text[i+1] != ' ' || c == '|' || c == '\t':
			cells[c]++
		}
	}
	best := ','
	for _, c := range candidates {
		if o.NoHeader && cells[c]+1 == len(o.Columns) && len(o.Columns) > 1 {
			return c
		}
		if cells[c] > cells[best] {
			best = c
		}
	}
	return best
}

// record splits the next record into r.fields and returns its size in bytes. The record stays in the window.
func (r *Reader) record() (size int, p *rows.Problem, err error) {
	line, err := r.first()
	if err != nil {
		return 0, nil, err
	}
	size = len(line)
	switch {
	case !r.plain && bytes.IndexByte(line, '"') >= 0:
		size, p, err = r.splitQuoted()
	case size > r.in.Limit:
		p = rows.TooLong(r.in.Limit)
	default:
		p = r.split(lines.Body(line))
	}
	if err == nil {
		p = cmp.Or(r.in.BadText(r.in.Bytes(size), r.in.Number), p)
	}
	return size, p, err
}

// split splits a record without quotes.
func (r *Reader) split(record []byte) *rows.Problem {
	r.fields, r.quoted.lines = r.fields[:0], 0
	if bytes.IndexByte(record, '\r') >= 0 {
		return loneCR()
	}
	rest, fields := string(record), r.fields
	if len(r.delim) > 1 {
		r.fields = append(fields, strings.Split(rest, r.delim)...)
		return nil
	}
	for i := strings.IndexByte(rest, r.delim[0]); i >= 0; i = strings.IndexByte(rest, r.delim[0]) {
		fields, rest = append(fields, rest[:i]), rest[i+1:]
	}
	r.fields = append(fields, rest)
	return nil
}

// splitQuoted splits a record with quotes, which may have several lines. A quote that does not fit is a problem of its
// row if the row is one line and its quotes are in pairs. Otherwise the next line may be inside quotes: the file is
// lost. It is also lost if a row of several lines does not have as many cells as the header.
func (r *Reader) splitQuoted() (size int, p *rows.Problem, err error) {
	q := &r.quoted
	*q = quoted{delim: q.delim, escape: q.escape, text: q.text[:0], ends: q.ends[:0]}
	for q.lines == 0 || q.open && !q.stray {
		line, err := r.in.Line(size)
		if err != nil {
			return 0, nil, r.unclosed(err)
		}
		q.add(line)
		size += len(line)
	}
	r.fields = q.cells(r.fields[:0])
	inPairs := !q.open && bytes.Count(r.in.Bytes(size), []byte{'"'})%2 == 0
	switch isHeader := r.columns.Width == 0; {
	case !isHeader && (q.stray && !inPairs || q.lines > 1 && (q.stray || !r.fits())):
		err = lost(r.in.Number, "the quotes of this row do not fit")
	case q.loneCR:
		p = loneCR()
	case q.stray:
		p = rows.Flaw("quote", "text follows the quote that closes a cell", "")
	}
	return size, p, err
}

func (r *Reader) unclosed(err error) error {
	opened := r.in.Number + r.quoted.from - 1
	switch {
	case errors.Is(err, io.EOF):
		return lost(opened, "a quote opens here and is not closed before the end of the file")
	case errors.Is(err, lines.ErrTooLong):
		return lost(opened, fmt.Sprintf("a quote opens here and is not closed within %d bytes", r.in.Max-r.in.Limit))
	}
	return err
}

func loneCR() *rows.Problem {
	return rows.Flaw("line_end", "a carriage return outside quotes does not end a line",
		"save the file with line ends LF or CR LF")
}
