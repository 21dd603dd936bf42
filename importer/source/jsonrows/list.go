package jsonrows

import (
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source/rows"
)

// listReader reads the elements of one JSON list, which is the whole document or a member of the object that is.
type listReader struct {
	cursor
	objects *objects
	found   *rows.Found
	compact jsontext.Value // the present element without white space
	only    string         // the list's name, where it is none of listNames
	wrapped bool           // the list is a member of the document
	begun   bool           // an element was read
}

// Next reads the next element that holds data.
func (l *listReader) Next(r *rows.Row) error {
	for open := r.Header; l.err == nil; r.Clear(open) {
		if l.element(r); l.err == nil && !l.objects.blank(r) {
			return nil
		}
	}
	return l.err
}

func (l *listReader) element(r *rows.Row) {
	c := l.next()
	if c == ']' {
		l.end()
		return
	}
	if l.begun {
		l.expect(',', "no comma stands between two elements of the list")
		c = l.next()
	}
	l.begun = true
	r.Line = l.in.Number
	if c == ',' || c == ']' {
		r.Problem = &rows.Problem{Code: "json", Text: "an element of the list is missing beside a comma"}
		return
	}
	size, state := l.measure()
	if l.err != nil {
		return
	}
	r.Size = min(size, l.in.Max)
	if r.Problem = rows.TooLong(l.in.Limit); size <= l.in.Max {
		r.Problem = l.problem(l.in.Bytes(size), r)
	}
	if r.Problem != nil && r.Text == "" {
		r.Text = oneLine(l.in.Readable(r.Size))
		r.Raw = r.Text
	}
	l.in.Pass(size)
	if size > l.in.Max && state == scanMore {
		l.passRest()
	}
}

// end passes over the end of the list, with which the window begins, and what follows it.
func (l *listReader) end() {
	l.in.Pass(1)
	if l.wrapped {
		l.members(false)
	}
	if l.err != nil {
		return
	}
	if l.next(); l.err == nil {
		l.lose(errors.New("text follows the end of the JSON document"))
	} else if errors.Is(l.err, errCut) {
		l.err = io.EOF
	}
}

// problem makes the row of an element, or tells why it is none.
func (l *listReader) problem(element []byte, r *rows.Row) *rows.Problem {
	if p := l.in.BadText(len(element)); p != nil {
		return l.in.Hinted(p, len(element))
	}
	l.compact = append(l.compact[:0], element...)
	p := &rows.Problem{}
	if l.compact.Compact() == nil {
		r.Raw = string(l.compact)
		p = l.objects.row(l.compact, r)
	}
	switch {
	case len(element) > l.in.Limit && !isUncorrected(p):
		return rows.TooLong(l.in.Limit)
	case p == nil:
		return nil
	}
	// Once more as it is written, so that the place of the error is right.
	r.Raw = string(element)
	if as := l.objects.row(element, r); as != nil {
		return as
	}
	return p
}

// oneLine is text that is no JSON value, its line breaks taken out with the white space around them.
func oneLine(text string) string {
	all := strings.Split(text, "\n")
	for i, line := range all {
		if i > 0 {
			line = strings.TrimLeft(line, " \t\r")
		}
		all[i] = strings.TrimRight(line, "\r")
	}
	return strings.Join(all, " ")
}
