package source

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// jsonLines reads one JSON object a line.
type jsonLines struct {
	in      *window
	objects *jsonObjects
	scan    jsonScan
}

// next reads the next line that holds data.
func (j *jsonLines) next(r *Row) error {
	for open := r.Header; ; *r = (Row{Header: open, Cells: r.Cells[:0]}) {
		line, err := j.in.first()
		over := errors.Is(err, errTooLong)
		if over {
			line, err = j.in.bytes(j.in.max), nil
		}
		if err != nil {
			return err
		}
		size := len(line)
		r.Line, r.Raw = j.in.number, strings.TrimPrefix(string(body(line)), byteOrderMark) // as of files that were put together
		if r.Problem = j.problem(line, r); r.Problem != nil && r.Text == "" {
			if !over && bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
				size = j.reach(size)
			}
			r.Text = j.in.text(len(body(j.in.bytes(size))))
		}
		r.Size = size
		j.in.pass(size)
		if over {
			j.in.passLine()
		}
		if !j.objects.blank(r) {
			return nil
		}
	}
}

// problem makes the row of a line, or tells why it is none.
func (j *jsonLines) problem(line []byte, r *Row) *Problem {
	p := j.in.badText(len(line))
	if p != nil {
		return j.in.hinted(p, len(line))
	}
	err := j.objects.row(bytes.TrimPrefix(body(line), []byte(byteOrderMark)), r)
	switch {
	case len(line) > j.in.limit && !errors.Is(err, errUncorrected):
		return tooLong(j.in.limit)
	case err != nil:
		return badJSON("line", err)
	}
	return nil
}

// reach is how many bytes of the window an object takes that is not whole on its
// first line: up to the end of the line on which its brackets close, so that no
// object inside it is taken for a row. Where they do not close it is the first line.
func (j *jsonLines) reach(first int) int {
	j.scan.reset()
	for seen := 0; ; {
		piece := j.in.buf[j.in.start+seen : j.in.end]
		line := bytes.IndexByte(piece, '\n') + 1
		if line > 0 { // a line at a time, for what goes ever deeper is given up soon
			piece = piece[:line]
		}
		n, state := j.scan.feed(piece)
		switch seen += n; {
		case state == scanEnd && seen > first:
			rest, err := j.in.line(seen)
			if err != nil && !errors.Is(err, io.EOF) {
				return seen
			}
			return seen + len(rest)
		case state != scanMore, len(j.scan.open) > maxDepth, seen > j.in.limit, line == 0 && j.in.more() != nil:
			return first
		}
		seen = min(seen, j.in.end-j.in.start) // a Ctrl-Z at the end may have gone
	}
}
