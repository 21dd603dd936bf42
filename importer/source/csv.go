package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// csvRows splits a window into records, and records into cells.
//
// A cell that begins with a quote ends with the next single one, and holds
// everything between as it is; in any other cell a quote is text. A record
// whose quotes do not fit is a problem of the line it starts on, and reading
// goes on with the line after that one. The lines that the broken record had
// covered are read strictly: a quote in the middle of a cell is a problem there.
type csvRows struct {
	in *window
	layout

	delim  string
	fields []string // of the present record, as many as it has
	quoted quoted
	strict int // lines before this one are read strictly
	chunk  chunk
}

func newCSVRows(in *window, delim rune) *csvRows {
	d := string(delim)
	return &csvRows{in: in, delim: d, quoted: quoted{delim: []byte(d)}}
}

// next reads the next record that is not blank.
func (c *csvRows) next(r *Row) error {
	size, problem, err := c.record()
	if err != nil {
		return err
	}
	r.Line = c.in.number
	r.Cells = c.chunk.take(r.Cells, len(c.keep))
	if problem == nil {
		problem = c.fit(r.Cells)
	}
	if problem != nil {
		r.Problem = c.in.hinted(problem, size)
		r.Raw = string(body(c.in.bytes(size)))
	}
	c.pass(size, problem)
	return nil
}

// pass goes on to what follows a record of this size and problem.
func (c *csvRows) pass(size int, p *Problem) {
	c.in.pass(size)
	if p != nil && p.Code == "too_long" {
		c.in.passLine()
	}
}

// record splits the next record into c.fields and gives its size in bytes, of
// one that is too long the limit. The record stays in the window.
func (c *csvRows) record() (size int, p *Problem, err error) {
	line, err := c.in.first()
	if errors.Is(err, errTooLong) {
		return c.in.max, tooLong(c.in.max), nil
	}
	if err != nil {
		return 0, nil, err
	}
	size = len(line)
	if bytes.IndexByte(line, '"') < 0 {
		p = c.split(body(line))
	} else if size, p, err = c.splitQuoted(size); err != nil {
		return 0, nil, err
	}
	if p == nil {
		p = c.in.badText(size)
	}
	return size, p, nil
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

// splitQuoted parts a record that holds quotes and takes as many lines as it
// needs; of a broken one it gives the size of the first line, which is first.
func (c *csvRows) splitQuoted(first int) (size int, p *Problem, err error) {
	c.quoted.reset(c.in.number < c.strict)
	for lines := 1; ; lines++ {
		line, err := c.in.line(size)
		unclosed := errors.Is(err, io.EOF) || errors.Is(err, errTooLong) || lines > maxLines
		switch {
		case unclosed:
			p = &Problem{Code: "quote", Text: fmt.Sprintf("a quote is not closed before the end of the file or the limit of a row (%d lines, %d bytes)", maxLines, c.in.max)}
		case err != nil:
			return 0, nil, err
		default:
			p = c.quoted.add(line)
		}
		if p != nil {
			c.strict = max(c.strict, c.in.number+lines)
			return first, p, nil
		}
		size += len(line)
		if !c.quoted.open {
			c.fields = c.quoted.cells(c.fields[:0])
			return size, nil, nil
		}
	}
}

// fit puts the fields of the row's own columns into cells. Empty fields beyond
// the header are let pass, as Excel writes them.
func (c *csvRows) fit(cells []string) *Problem {
	for i, column := range c.keep {
		if column < len(c.fields) {
			cells[i] = c.fields[column]
		}
	}
	if !c.fits() {
		return c.wrongWidth()
	}
	return nil
}

// fits says that the record has a cell for each column, and nothing beyond.
func (c *csvRows) fits() bool {
	return len(c.fields) >= c.width && used(c.fields) <= c.width
}

func (c *csvRows) wrongWidth() *Problem {
	text := fmt.Sprintf("the row has %s instead of %d", count(len(c.fields), "cell"), c.width)
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
