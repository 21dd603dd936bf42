package delimited

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
)

// first is the line with which the next record begins, behind comments.
func (r *Reader) first() ([]byte, error) {
	for {
		line, err := r.in.First()
		over := errors.Is(err, lines.ErrTooLong)
		if r.frame.Comment == "" || err != nil && !over || !bytes.HasPrefix(r.in.Text(), []byte(r.frame.Comment)) {
			return line, err
		}
		r.comments++
		r.in.Pass(len(line))
		if over {
			r.in.PassLine()
		}
	}
}

// atFooter says that the footer begins with the present record, by its cells or, since its quotes may not fit, by
// its text.
func (r *Reader) atFooter(size int, problem *rows.Problem) bool {
	return problem == nil && r.frame.EndsAt(r.fields) || r.frame.Footer.Match(lines.Body(r.in.Bytes(size)))
}

// leaveFooter ends the reading before the present record.
func (r *Reader) leaveFooter() {
	line, n := r.in.Number, 0
	n, r.ended = r.in.Drain()
	r.found.LeftOut(line, n, "footer")
	r.frame.Footer = nil
}

// tellLeftOut says at the end of the text what of it was not read.
func (r *Reader) tellLeftOut() {
	if !errors.Is(r.ended, io.EOF) {
		return
	}
	r.found.NoFooter(&r.frame)
	r.frame.Footer = nil // told once
	if r.tail != nil {
		r.found.LeftOut(r.tail.Line, r.tail.Lines, "skip_footer")
		r.tail = nil
	}
	if r.comments > 0 {
		r.found.Warn("%s passed over as source.comment says", english.PluralWord(r.comments, "1 line was", fmt.Sprintf("%d lines were", r.comments)))
		r.comments = 0
	}
}
