package jsonrows

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
)

// listReader reads the elements of one JSON list, which is the whole document or a member of the object that is.
type listReader struct {
	in      *lines.Window
	objects *objects
	found   *rows.Found
	scan    scan
	compact jsontext.Value // the present element without white space
	wrapped bool           // the list is a member of the document
	begun   bool           // an element was read
	ended   error          // what ended the reading for good
}

// Next reads the next element that holds data.
func (l *listReader) Next(r *rows.Row) error {
	for open := r.Header; l.ended == nil; r.Clear(open) {
		if l.ended = l.element(r); l.ended == nil && !l.objects.blank(r) {
			return nil
		}
	}
	return l.ended
}

func (l *listReader) element(r *rows.Row) error {
	c, err := l.token()
	switch {
	case err != nil:
		return l.unfinished(err)
	case c == ']':
		return l.end()
	case l.begun && c != ',':
		return l.lost("no comma stands between two elements of the list")
	case l.begun:
		l.in.Pass(1)
		if c, err = l.token(); err != nil {
			return l.unfinished(err)
		}
	}
	l.begun = true
	if c == ',' || c == ']' {
		r.Line = l.in.Number
		r.Problem = &rows.Problem{Code: "json", Text: "an element of the list is missing beside a comma"}
		return nil
	}
	return l.unfinished(l.read(r))
}

// read reads the element that the window begins with.
func (l *listReader) read(r *rows.Row) error {
	r.Line = l.in.Number
	size, state, err := l.measure()
	if err != nil {
		return err
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
		return l.passRest()
	}
	return nil
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

// measure finds how many bytes the value has that the window begins with, and gives up behind the limit of a
// record. The value stays in the window.
func (l *listReader) measure() (size int, state scanState, err error) {
	l.scan.reset()
	for {
		n, state := l.scan.feed(l.in.Text()[size:])
		size += n
		if state == scanLost {
			l.in.Pass(size)
			return 0, state, l.misfit()
		}
		if state == scanEnd || size > l.in.Max {
			return size, state, nil
		}
		if err := l.in.More(); err != nil {
			return size, state, err
		}
	}
}

// passRest passes over the rest of a value, however long.
func (l *listReader) passRest() error {
	for {
		n, state := l.scan.feed(l.in.Text())
		l.in.Pass(n)
		switch state {
		case scanEnd:
			return nil
		case scanLost:
			return l.misfit()
		}
		if err := l.in.More(); err != nil {
			return err
		}
	}
}

// token passes over white space and gives the byte behind it.
func (l *listReader) token() (byte, error) {
	for {
		text := l.in.Text()
		left := len(bytes.TrimLeft(text, white))
		l.in.Pass(len(text) - left)
		if left > 0 {
			return l.in.Text()[0], nil
		}
		if err := l.in.More(); err != nil {
			return 0, err
		}
	}
}

// end passes over what follows the list, which the window begins with.
func (l *listReader) end() error {
	l.in.Pass(1)
	if l.wrapped {
		if _, err := l.members(false); err != nil {
			return l.unfinished(err)
		}
	}
	_, err := l.token()
	if err == nil {
		return l.lost("text follows the end of the JSON document")
	}
	return err
}

// unfinished makes a *rows.LostError of the file's end, and leaves other errors.
func (l *listReader) unfinished(err error) error {
	if errors.Is(err, io.EOF) {
		return l.lost("the file ends within its list: it was cut")
	}
	return err
}

func (l *listReader) misfit() error {
	return l.lost("brackets or quotes do not fit, so that nobody can tell where a value ends")
}

func (l *listReader) lost(text string) error {
	return &rows.LostError{Line: l.in.Number, Text: fmt.Sprintf("the JSON document cannot be read any further: %s", text)}
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
