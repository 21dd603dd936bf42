package jsonrows

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
)

// lineReader reads one JSON object a line.
type lineReader struct {
	in      *lines.Window
	objects *objects
	scan    scan
}

// Next reads the next line that holds data.
func (l *lineReader) Next(r *rows.Row) error {
	for open := r.Header; ; r.Clear(open) {
		line, err := l.in.First()
		over := errors.Is(err, lines.ErrTooLong)
		if over {
			line, err = l.in.Bytes(l.in.Max), nil
		}
		if err != nil {
			return err
		}
		size := len(line)
		r.Line, r.Raw = l.in.Number, strings.TrimPrefix(string(lines.Body(line)), rows.ByteOrderMark) // as of files that were put together
		if r.Problem = l.problem(line, r); r.Problem != nil && r.Text == "" {
			if !over && bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
				size = l.reach(size)
			}
			r.Text = l.in.Readable(len(lines.Body(l.in.Bytes(size))))
		}
		r.Size = size
		l.in.Pass(size)
		if over {
			l.in.PassLine()
		}
		if !l.objects.blank(r) {
			return nil
		}
	}
}

// problem makes the row of a line, or tells why it is none.
func (l *lineReader) problem(line []byte, r *rows.Row) *rows.Problem {
	if p := l.in.BadText(len(line)); p != nil {
		return p
	}
	p := l.objects.row(bytes.TrimPrefix(lines.Body(line), []byte(rows.ByteOrderMark)), r)
	if len(line) > l.in.Limit && !isUncorrected(p) {
		return rows.TooLong(l.in.Limit)
	}
	return p
}

// reach is how many bytes of the window an object takes that is not whole on its first line: up to the end of the
// line on which its brackets close, so that no object inside it is taken for a row. Where they do not close it is
// the first line.
func (l *lineReader) reach(first int) int {
	l.scan.reset()
	for seen := 0; ; {
		piece := l.in.Text()[seen:]
		line := bytes.IndexByte(piece, '\n') + 1
		if line > 0 { // a line at a time, for what goes ever deeper is given up soon
			piece = piece[:line]
		}
		n, state := l.scan.feed(piece)
		switch seen += n; {
		case state == scanEnd && seen > first:
			rest, err := l.in.Line(seen)
			if err != nil && !errors.Is(err, io.EOF) {
				return seen
			}
			return seen + len(rest)
		case state != scanMore, len(l.scan.open) > maxDepth, seen > l.in.Limit, line == 0 && l.in.More() != nil:
			return first
		}
	}
}
