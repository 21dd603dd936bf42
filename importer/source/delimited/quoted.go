package delimited

import (
	"bytes"

	"leadferry/importer/source/lines"
)

// quoted collects the cells of a record with quotes, line by line.
type quoted struct {
	delim  []byte
	escape bool   // a backslash in quotes escapes a quote
	text   []byte // all cells, without their quotes
	ends   []int  // where each cell ends in text
	open   bool   // inside quotes: the next line belongs to the record
	lines  int    // of the record so far
	from   int    // the line of the record, from 1, on which the last cell in quotes began
	stray  bool   // a quote inside quotes does not end a cell and is not doubled
	loneCR bool   // a CR outside quotes does not end the line
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

// addBare adds a cell without quotes. It returns the rest of the line, and whether a delimiter begins another cell.
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

// addQuoted adds a cell in quotes, or its part on this line. A quote before a delimiter or the line's end closes the
// cell. Any other quote is text: a doubled one, or a stray one.
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
			q.stray, q.loneCR = true, q.loneCR || bytes.HasPrefix(line, []byte{'\r'})
		}
	}
}

// cutAtQuote returns the text before and after the next quote. Text up to the last backslash goes into q.text already.
func (q *quoted) cutAtQuote(line []byte) (text, after []byte, closed bool) {
	for q.escape {
		i := bytes.IndexAny(line, "\"\\")
		if i < 0 || line[i] == '"' {
			break
		}
		q.text = append(q.text, line[:i]...)
		line = line[i+1:]
		if len(line) == 0 || line[0] != '"' && line[0] != '\\' { // an ordinary backslash
			q.text = append(q.text, '\\')
			continue
		}
		q.text = append(q.text, line[0])
		line = line[1:]
	}
	return bytes.Cut(line, []byte{'"'})
}

// cells appends the cells to list, as parts of one string.
func (q *quoted) cells(list []string) []string {
	text, start := string(q.text), 0
	for _, end := range q.ends {
		list = append(list, text[start:end])
		start = end
	}
	return list
}
