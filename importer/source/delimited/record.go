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

// quoted gathers the cells of a record that holds quotes, one line after another. What does not fit is noted, and
// read on as spreadsheets read it: what follows a closing quote belongs to the cell up to the next delimiter.
type quoted struct {
	delim  []byte
	escape bool   // a backslash stands before quotes in quotes
	text   []byte // all cells, without their quotes
	ends   []int  // where each of them ends
	open   bool   // inside quotes: the next line belongs to the record
	lines  int    // that were added
	from   int    // which of them, from 1, has the last quote that opened a cell
	fault  *rows.Problem
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
	if bytes.IndexByte(cell, '\r') >= 0 && q.fault == nil {
		q.fault = loneCR()
	}
	q.text = append(q.text, cell...)
	q.ends = append(q.ends, len(q.text))
	return rest, more
}

// addQuoted takes a cell in quotes, or the part of it that is on this line.
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
		if line = after; !bytes.HasPrefix(line, []byte{'"'}) {
			break
		}
		q.text = append(q.text, '"')
		line = line[1:]
	}
	q.open = false
	rest, more = bytes.CutPrefix(line, q.delim)
	if !more && len(lines.Body(line)) > 0 {
		q.fault = &rows.Problem{Code: "quote", Text: "text follows the quote that closes a cell"}
		return q.addBare(line)
	}
	q.ends = append(q.ends, len(q.text))
	return rest, more
}

// cutAtQuote is what stands before the next quote and behind it. What a backslash stands before is gathered at once.
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

func (q *quoted) broken() bool { return q.fault != nil && q.fault.Code == "quote" }

// cells appends the gathered cells, parts of one string, to list.
func (q *quoted) cells(list []string) []string {
	text, start := string(q.text), 0
	for _, end := range q.ends {
		list = append(list, text[start:end])
		start = end
	}
	return list
}

// record splits the next record into r.fields and gives its size in bytes, of one that is too long for the window the
// limit. The record stays in the window. Where there is none, r.ended says why.
func (r *Reader) record() (size int, p *rows.Problem) {
	if r.ended != nil {
		return 0, nil
	}
	line, err := r.first()
	switch {
	case errors.Is(err, lines.ErrTooLong):
		r.over = true
		if !r.plain && bytes.IndexByte(r.in.Bytes(r.in.Max), '"') >= 0 {
			r.ended = r.tooMuch(r.in.Number)
		}
		return r.in.Max, rows.TooLong(r.in.Limit)
	case err != nil:
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
	if len(r.delim) == 1 {
		for i := strings.IndexByte(rest, r.delim[0]); i >= 0; i = strings.IndexByte(rest, r.delim[0]) {
			fields, rest = append(fields, rest[:i]), rest[i+1:]
		}
	}
	for more := true; more; {
		var cell string
		cell, rest, more = strings.Cut(rest, r.delim)
		fields = append(fields, cell)
	}
	r.fields = fields
	return nil
}

// splitQuoted parts a record that holds quotes and takes as many lines as it needs.
func (r *Reader) splitQuoted() (size int, p *rows.Problem) {
	r.quoted = quoted{delim: r.quoted.delim, escape: r.quoted.escape, text: r.quoted.text[:0], ends: r.quoted.ends[:0]}
	for r.quoted.lines == 0 || r.quoted.open && !r.quoted.broken() {
		line, err := r.in.Line(size)
		if err != nil {
			r.ended = r.unclosed(err, size)
			return 0, nil
		}
		r.quoted.add(line)
		size += len(line)
	}
	r.fields = r.quoted.cells(r.fields[:0])
	if r.doubtful(size) {
		r.ended = r.lost(r.in.Number, "the quotes of this row do not fit", size)
	}
	return size, r.quoted.fault
}

func (r *Reader) unclosed(err error, size int) error {
	opened := r.in.Number + r.quoted.from - 1
	switch {
	case errors.Is(err, io.EOF):
		return r.lost(opened, "a quote opens here and is not closed before the end of the file", size)
	case errors.Is(err, lines.ErrTooLong):
		return r.lost(opened, fmt.Sprintf("a quote opens here and is not closed within %d bytes", r.in.Max-r.in.Limit), size)
	}
	return err
}

// doubtful says that the line behind a record of this size may be inside quotes: its own do not fit, or it has several
// lines and other cells than the header. A line whose quotes fit is read as it stands, whatever its width.
func (r *Reader) doubtful(size int) bool {
	switch {
	case r.columns.Width == 0: // it is the header, which has to fit
		return false
	case !r.quoted.broken():
		return r.quoted.lines > 1 && !r.fits() && !r.quoteOpens(size)
	case r.quoted.open || r.quoted.lines > 1:
		return true
	}
	even := bytes.Count(r.in.Bytes(size), []byte{'"'})%2 == 0
	return !even || len(r.fields) < r.columns.Width || !r.quoteOpens(size)
}

// quoteOpens says that the first quote behind n bytes of the window begins a cell and ends none, or that as many
// bytes as a record may have hold none. Quotes in pairs may be an empty cell or stand inside one, and tell nothing: what
// was looked at for one record is not looked at again for those behind it.
func (r *Reader) quoteOpens(n int) bool {
	in, delim := r.in, r.quoted.delim
	var ended error
	seen := max(n, int(r.paired-in.Offset))
	defer func() { r.paired = in.Offset + int64(seen) }()
	for {
		text := in.Text()
		i := bytes.IndexByte(text[seen:], '"')
		if i < 0 {
			seen = len(text)
		} else {
			seen += i
			before, after := text[:seen], bytes.TrimLeft(text[seen:], `"`)
			switch quotes := len(text) - seen - len(after); {
			case len(after) <= len(delim) && ended == nil: // what follows them is not there yet
			case quotes%2 == 0:
				seen += quotes
				continue
			default:
				ends := len(after) == 0 || bytes.HasPrefix(after, delim) || after[0] == '\n' || after[0] == '\r'
				return !ends && (bytes.HasSuffix(before, []byte{'\n'}) || bytes.HasSuffix(before, delim))
			}
		}
		if i < 0 && seen-n >= in.Limit || i >= 0 && len(text)-seen >= in.Limit || ended != nil {
			return i < 0 && (ended == nil || errors.Is(ended, io.EOF))
		}
		ended = in.More()
	}
}

func loneCR() *rows.Problem {
	return &rows.Problem{Code: "line_end", Text: "a carriage return stands alone outside quotes; lines must end with LF or CR LF"}
}
