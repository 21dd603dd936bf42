package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// csvRows splits a window into records, and records into cells.
//
// A cell that begins with a quote ends with the next single one, and holds
// everything between as it is, up to 16 MiB; in any other cell a quote is text.
// A record whose quotes do not fit is a problem of its row only where it is
// certain that the next line is outside quotes: it has one line with an even
// number of quotes and no fewer cells than the header, and the next quote of the
// file begins a cell. Else the file is lost there: no row may begin inside
// another one's quotes.
type csvRows struct {
	in *window
	layout

	delim  string
	plain  bool     // quotes are text like any other
	fields []string // of the present record, as many as it has
	quoted quoted
	over   bool  // the present record goes on behind the window
	lost   error // what ended the reading
	chunk  chunk
}

func newCSVRows(in *window, delim rune, o Options) *csvRows {
	in.widen()
	d := string(delim)
	return &csvRows{in: in, delim: d, plain: o.NoQuotes, quoted: quoted{delim: []byte(d)}}
}

// next reads the next record that holds data.
func (c *csvRows) next(r *Row) error {
	for {
		size, problem, err := c.record()
		if err != nil {
			return err
		}
		if problem == nil {
			problem = c.uncorrected(c.fields, r)
		}
		if problem == nil && c.blank(c.fields) {
			c.blanks++
			c.pass(size)
			continue
		}
		return c.give(r, size, problem)
	}
}

// give makes the row of a record of this size and problem, and passes it.
func (c *csvRows) give(r *Row, size int, problem *Problem) error {
	r.Line, r.Size = c.in.number, size
	if problem == nil {
		if r.Repeats, c.lost = c.again(c.fields, r.Line); c.lost != nil {
			return c.lost
		}
	}
	r.Cells = c.chunk.take(r.Cells, len(c.keep))
	if problem == nil {
		problem = c.fit(r.Cells)
	}
	if problem != nil {
		r.Problem = c.in.hinted(problem, size)
		if r.Text == "" {
			r.Text = c.in.text(len(body(c.in.bytes(size))))
		}
	}
	c.pass(size)
	return nil
}

// pass goes on to what follows a record of this size.
func (c *csvRows) pass(size int) {
	number := c.in.number
	c.in.pass(size)
	if c.over && c.in.passLine() && !c.plain {
		c.lost = c.structure(number, c.tooMuch())
	}
	c.over = false
}

func (c *csvRows) tooMuch() string {
	return fmt.Sprintf("the row is longer than %d bytes and holds quotes", c.in.max)
}

// structure says that it cannot be known where the rows behind a line begin.
func (c *csvRows) structure(line int, text string) error {
	return &LostError{
		Line: line, Text: text + ": where the rows behind it begin cannot be known, and none of them was read",
		Hint: "mend the quotes of this row, or fetch the file again if it was cut; if quotes are text like any other in this file, say so in the mapping: source: {quote: none}",
	}
}

// record splits the next record into c.fields and gives its size in bytes, of
// one that is too long for the window the limit. The record stays in the window.
func (c *csvRows) record() (size int, p *Problem, err error) {
	if c.lost != nil {
		return 0, nil, c.lost
	}
	line, err := c.in.first()
	switch {
	case errors.Is(err, errTooLong):
		c.over = true
		if !c.plain && bytes.IndexByte(c.in.bytes(c.in.max), '"') >= 0 {
			c.lost = c.structure(c.in.number, c.tooMuch())
		}
		return c.in.max, tooLong(c.in.limit), c.lost
	case err != nil:
		return 0, nil, err
	}
	size = len(line)
	switch {
	case !c.plain && bytes.IndexByte(line, '"') >= 0:
		size, p, err = c.splitQuoted()
	case size > c.in.limit:
		p = tooLong(c.in.limit)
	default:
		p = c.split(body(line))
	}
	if p == nil && err == nil {
		p = c.in.badText(size)
	}
	return size, p, err
}

// split parts a record that holds no quotes.
func (c *csvRows) split(record []byte) *Problem {
	c.fields = c.fields[:0]
	if bytes.IndexByte(record, '\r') >= 0 {
		return &Problem{Code: "line_end", Text: loneCR}
	}
	rest, more := string(record), true
	for more {
		var cell string
		cell, rest, more = strings.Cut(rest, c.delim)
		c.fields = append(c.fields, cell)
	}
	return nil
}

// splitQuoted parts a record that holds quotes and takes as many lines as it needs.
func (c *csvRows) splitQuoted() (size int, p *Problem, err error) {
	c.quoted.reset()
	for c.quoted.lines == 0 || c.quoted.open && !c.quoted.broken() {
		line, err := c.in.line(size)
		if errors.Is(err, io.EOF) || errors.Is(err, errTooLong) {
			c.lost = c.structure(c.in.number+c.quoted.from-1, c.unclosed(err))
			return 0, nil, c.lost
		}
		if err != nil {
			return 0, nil, err
		}
		c.quoted.add(line)
		size += len(line)
	}
	c.fields = c.quoted.cells(c.fields[:0])
	if c.doubtful(size) {
		c.lost = c.structure(c.in.number, "the quotes of this row do not fit")
	}
	return size, c.quoted.fault, c.lost
}

func (c *csvRows) unclosed(err error) string {
	if errors.Is(err, io.EOF) {
		return "a quote opens here and is not closed before the end of the file"
	}
	return fmt.Sprintf("a quote opens here and is not closed within %d bytes", quotedRecords*c.in.limit)
}

// doubtful says that the line behind a record of this size may be inside quotes:
// its own do not fit, or it has quotes and other cells than the header.
func (c *csvRows) doubtful(size int) bool {
	several := c.quoted.lines > 1
	switch {
	case c.width == 0: // it is the header, which has to fit
		return false
	case c.quoted.broken() && (c.quoted.open || several):
		return true
	case c.quoted.broken():
		even := bytes.Count(c.in.bytes(size), []byte{'"'})%2 == 0
		return !even || len(c.fields) < c.width || !c.in.quoteOpens(size, c.quoted.delim)
	}
	return !c.fits() && !c.in.quoteOpens(size, c.quoted.delim)
}

// fit puts the fields of the row's own columns into cells. Empty fields beyond
// the header are let pass, as Excel writes them.
func (c *csvRows) fit(cells []string) *Problem {
	if !c.fits() {
		return c.wrongWidth()
	}
	for i, column := range c.keep {
		cells[i] = c.fields[column]
	}
	return nil
}

// fits says that the record has a cell for each column, and nothing beyond.
func (c *csvRows) fits() bool {
	return len(c.fields) >= c.width && used(c.fields) <= c.width
}

func (c *csvRows) wrongWidth() *Problem {
	text := fmt.Sprintf("the row has %s instead of %d", english.Plural(len(c.fields), "cell", ""), c.width)
	switch last := used(c.fields); {
	case last > c.width && last <= c.width+c.nameless:
		text = fmt.Sprintf("the row holds something in column %d, which has no name in the header", last)
	case c.width == 1 && c.line > 0:
		text += fmt.Sprintf(" (hint: line %d was taken for the header; take out what stands before the header, or set the delimiter)", c.line)
	}
	return &Problem{Code: "columns", Text: text}
}

// used counts the cells up to the last that holds something.
func used(cells []string) int {
	n := len(cells)
	for n > 0 && cells[n-1] == "" {
		n--
	}
	return n
}
