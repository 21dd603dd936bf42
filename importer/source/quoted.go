package source

import "bytes"

const (
	loneCR    = "a carriage return stands alone outside quotes; lines must end with LF or CR LF"
	afterEnd  = "text follows the quote that closes a cell"
	bareQuote = "a quote stands inside a cell without quotes, where a quote opened on an earlier line is in doubt"
)

// quoted gathers the cells of a record that holds quotes, one line after
// another.
type quoted struct {
	delim  []byte
	strict bool   // quotes in the middle of a cell are refused
	text   []byte // all cells, without their quotes
	ends   []int  // where each of them ends
	open   bool   // inside quotes: the next line belongs to the record
}

func (q *quoted) reset(strict bool) {
	q.strict, q.open = strict, false
	q.text, q.ends = q.text[:0], q.ends[:0]
}

// add takes one line, with its end.
func (q *quoted) add(line []byte) *Problem {
	for rest, more := line, true; more; {
		var p *Problem
		if q.open || bytes.HasPrefix(rest, []byte{'"'}) {
			rest, more, p = q.addQuoted(rest)
		} else {
			rest, more, p = q.addBare(rest)
		}
		if p != nil {
			return p
		}
	}
	return nil
}

// addBare takes a cell without quotes. It gives what is left of the line, and
// whether a delimiter says that more cells follow.
func (q *quoted) addBare(line []byte) (rest []byte, more bool, p *Problem) {
	cell, rest, more := bytes.Cut(line, q.delim)
	if !more {
		cell = body(cell)
	}
	switch {
	case bytes.IndexByte(cell, '\r') >= 0:
		return nil, false, &Problem{Code: "line_end", Text: loneCR}
	case q.strict && bytes.IndexByte(cell, '"') >= 0:
		return nil, false, &Problem{Code: "quote", Text: bareQuote}
	}
	q.text = append(q.text, cell...)
	q.ends = append(q.ends, len(q.text))
	return rest, more, nil
}

// addQuoted takes a cell in quotes, or the part of it that is on this line.
func (q *quoted) addQuoted(line []byte) (rest []byte, more bool, p *Problem) {
	if !q.open {
		q.open = true
		line = line[1:]
	}
	for {
		text, after, closed := bytes.Cut(line, []byte{'"'})
		q.text = append(q.text, text...)
		if !closed {
			return nil, false, nil
		}
		if !bytes.HasPrefix(after, []byte{'"'}) {
			line = after
			break
		}
		q.text = append(q.text, '"')
		line = after[1:]
	}
	q.open = false
	q.ends = append(q.ends, len(q.text))
	if rest, more = bytes.CutPrefix(line, q.delim); !more && len(body(rest)) > 0 {
		return nil, false, &Problem{Code: "quote", Text: afterEnd}
	}
	return rest, more, nil
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
