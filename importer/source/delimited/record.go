package delimited

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
)

// quoted gathers the cells of a record that holds quotes, one line after another.
type quoted struct {
	delim  []byte
	escape bool   // a backslash is before quotes in quotes
	text   []byte // all cells, without their quotes
	ends   []int  // where each of them ends
	open   bool   // inside quotes: the next line belongs to the record
	lines  int    // that were added
	from   int    // which of them, from 1, has the last quote that opened a cell
	stray  bool   // a quote inside quotes neither ends a cell nor is doubled
	loneCR bool   // a CR is alone outside quotes
}

func (q *quoted) reset() {
	*q = quoted{delim: q.delim, escape: q.escape, text: q.text[:0], ends: q.ends[:0]}
}

func (q *quoted) add(line []byte) {
	q.lines++
	for rest, more := line, true; more; {
		if q.open || bytes.HasPrefix(rest, []byte{'"'}) {
			rest, more = q.addQuoted(rest)
		} else {
			rest, more = q.addBare(rest)
		}
	}
}

// addBare takes a cell without quotes. It gives what is left of the line, and whether a delimiter says that more
// cells follow.
func (q *quoted) addBare(line []byte) (rest []byte, more bool) {
	cell, rest, more := bytes.Cut(line, q.delim)
	if !more {
		cell = lines.Body(cell)
	}
	q.loneCR = q.loneCR || bytes.IndexByte(cell, '\r') >= 0
	q.text = append(q.text, cell...)
	q.ends = append(q.ends, len(q.text))
	return rest, more
}

// addQuoted takes a cell in quotes, or the part of it that is on this line. A quote ends it where a delimiter or the
// line's end follows; any other is text, unless it is doubled.
func (q *quoted) addQuoted(line []byte) (rest []byte, more bool) {
	if !q.open {
		q.open, q.from = true, q.lines
		line = line[1:]
	}
	for {
		text, after, closed := q.cutAtQuote(line)
		q.text = append(q.text, text...)
		if !closed {
			return nil, false
		}
		line = after
		doubled := bytes.HasPrefix(line, []byte{'"'})
		if rest, more = bytes.CutPrefix(line, q.delim); !doubled && (more || len(lines.Body(line)) == 0) {
			q.open = false
			q.ends = append(q.ends, len(q.text))
			return rest, more
		}
		q.text = append(q.text, '"')
		if doubled {
			line = line[1:]
		} else {
			q.stray = true
		}
	}
}

// cutAtQuote is what is before the next quote and behind it. What a backslash is before is gathered at once.
func (q *quoted) cutAtQuote(line []byte) (text, after []byte, closed bool) {
	for q.escape {
		i := bytes.IndexAny(line, "\"\\")
		if i < 0 || line[i] == '"' {
			break
		}
		q.text = append(q.text, line[:i]...)
		line = line[i+1:]
		if len(line) == 0 || line[0] != '"' && line[0] != '\\' { // it is text like any other
			q.text = append(q.text, '\\')
			continue
		}
		q.text = append(q.text, line[0])
		line = line[1:]
	}
	return bytes.Cut(line, []byte{'"'})
}

// cells appends the gathered cells, parts of one string, to list.
func (q *quoted) cells(list []string) []string {
	text, start := string(q.text), 0
	for _, end := range q.ends {
		list = append(list, text[start:end])
		start = end
	}
	return list
}

// record splits the next record into r.fields and gives its size in bytes. The record stays in the window. Where there
// is none, r.ended says why.
func (r *Reader) record() (size int, p *rows.Problem) {
	if r.ended != nil {
		return 0, nil
	}
	line, err := r.first()
	if err != nil {
		r.ended = err
		return 0, nil
	}
	size = len(line)
	switch {
	case !r.plain && bytes.IndexByte(line, '"') >= 0:
		size, p = r.splitQuoted()
	case size > r.in.Limit:
		p = rows.TooLong(r.in.Limit)
	default:
		p = r.split(lines.Body(line))
	}
	if p == nil {
		p = r.in.BadText(size)
	}
	return size, p
}

// split parts a record that holds no quotes.
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

// splitQuoted parts a record that holds quotes and takes as many lines as it needs. A quote that does not fit is a
// problem of its row where the row is one line with quotes in pairs. Else, and where a row of several lines has other
// cells than the header, the line behind may be inside quotes: the file is lost there.
func (r *Reader) splitQuoted() (size int, p *rows.Problem) {
	q := &r.quoted
	q.reset()
	for q.lines == 0 || q.open && !q.stray {
		line, err := r.in.Line(size)
		if err != nil {
			r.ended = r.unclosed(err)
			return 0, nil
		}
		q.add(line)
		size += len(line)
	}
	r.fields = q.cells(r.fields[:0])
	inPairs := !q.open && bytes.Count(r.in.Bytes(size), []byte{'"'})%2 == 0
	switch isHeader := r.columns.Width == 0; {
	case !isHeader && (q.stray && !inPairs || q.lines > 1 && (q.stray || !r.fits())):
		r.ended = lost(r.in.Number, "the quotes of this row do not fit")
	case q.stray:
		p = rows.Flaw("quote", "text follows the quote that closes a cell", "")
	case q.loneCR:
		p = loneCR()
	}
	return size, p
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
	return rows.Flaw("line_end", "a carriage return stands alone outside quotes",
		"save the file with line ends LF or CR LF")
}
