package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonList reads the elements of one JSON list, which is the whole document or
// a member of the object that is.
type jsonList struct {
	in      *window
	objects *jsonObjects
	scan    jsonScan
	compact jsontext.Value // the present element without white space
	warn    func(...string)
	name    string // of the member; "" where the list is the document
	begun   bool   // an element was read
	ended   bool   // the list and what follows it was read
	err     error  // what ended the reading for good
}

// next reads the next element that holds data.
func (l *jsonList) next(r *Row) error {
	for open := r.Header; l.err == nil; *r = (Row{Header: open, Cells: r.Cells[:0]}) {
		if l.err = l.element(r); l.err == nil && !l.objects.blank(r) {
			return nil
		}
	}
	return l.err
}

func (l *jsonList) element(r *Row) error {
	if l.ended {
		return io.EOF
	}
	c, err := l.token()
	if err != nil {
		return l.unfinished(err)
	}
	if c == ']' {
		return l.end()
	}
	if l.begun {
		if c != ',' {
			return l.lost("no comma stands between two elements of the list")
		}
		l.in.pass(1)
		if c, err = l.token(); err != nil {
			return l.unfinished(err)
		}
	}
	l.begun = true
	if c == ',' || c == ']' {
		r.Line = l.in.number
		r.Problem = &Problem{Code: "json", Text: "an element of the list is missing beside a comma"}
		return nil
	}
	return l.read(r)
}

// read reads the element that the window begins with.
func (l *jsonList) read(r *Row) error {
	r.Line = l.in.number
	size, state, err := l.measure()
	if err != nil {
		return l.unfinished(err)
	}
	r.Size = min(size, l.in.max)
	if r.Problem = tooLong(l.in.limit); size <= l.in.max {
		r.Problem = l.problem(l.in.bytes(size), r)
	}
	if r.Problem != nil && r.Text == "" {
		r.Text = oneLine(l.in.text(r.Size))
		r.Raw = r.Text
	}
	l.in.pass(size)
	if size > l.in.max && state == scanMore {
		err = l.passRest()
	}
	return l.unfinished(err)
}

// problem makes the row of an element, or tells why it is none.
func (l *jsonList) problem(element []byte, r *Row) *Problem {
	p := l.in.badText(len(element))
	if p == nil {
		l.compact = append(l.compact[:0], element...)
		err := l.compact.Compact()
		if err == nil {
			r.Raw = string(l.compact)
			err = l.objects.row(l.compact, r)
		}
		if long := len(element) > l.in.limit; long && !errors.Is(err, errUncorrected) {
			return tooLong(l.in.limit)
		}
		if err == nil {
			return nil
		}
		// Once more as it is written, so that the place of the error is right.
		r.Raw = string(element)
		if as := l.objects.row(element, r); as != nil {
			err = as
		}
		p = badJSON("element", err)
	}
	return l.in.hinted(p, len(element))
}

// measure finds how many bytes the value has that the window begins with, and
// gives up behind the limit of a record. The value stays in the window.
func (l *jsonList) measure() (size int, state scanState, err error) {
	l.scan.reset()
	for {
		n, state := l.scan.feed(l.in.buf[l.in.start+size : l.in.end])
		size += n
		if state == scanLost {
			l.in.pass(size)
			return 0, state, l.lost(misfit)
		}
		if state == scanEnd || size > l.in.max {
			return size, state, nil
		}
		if err := l.in.more(); err != nil {
			return size, state, err
		}
		size = min(size, l.in.end-l.in.start) // a Ctrl-Z at the end of the file may have gone
	}
}

// passRest passes over the rest of a value, however long.
func (l *jsonList) passRest() error {
	for {
		n, state := l.scan.feed(l.in.buf[l.in.start:l.in.end])
		l.in.pass(n)
		switch state {
		case scanEnd:
			return nil
		case scanLost:
			return l.lost(misfit)
		}
		if err := l.in.more(); err != nil {
			return err
		}
	}
}

const misfit = "brackets or quotes do not fit, so that nobody can tell where a value ends"

// token passes over white space and gives the byte behind it.
func (l *jsonList) token() (byte, error) {
	for {
		text := l.in.buf[l.in.start:l.in.end]
		left := len(bytes.TrimLeft(text, " \t\r\n"))
		l.in.pass(len(text) - left)
		if left > 0 {
			return l.in.buf[l.in.start], nil
		}
		if err := l.in.more(); err != nil {
			return 0, err
		}
	}
}

// end passes over what follows the list, which the window begins with.
func (l *jsonList) end() error {
	l.in.pass(1)
	if l.name != "" {
		if _, err := l.members(false); err != nil {
			return l.unfinished(err)
		}
	}
	if _, err := l.token(); err == nil {
		return l.lost("text follows the end of the JSON document")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	l.ended = true
	return io.EOF
}

// unfinished makes a *LostError of the file's end, and leaves other errors.
func (l *jsonList) unfinished(err error) error {
	if errors.Is(err, io.EOF) {
		return l.lost("the file ends within its list: it was cut")
	}
	return err
}

func (l *jsonList) lost(text string) error {
	return &LostError{Line: l.in.number, Text: fmt.Sprintf("the JSON document cannot be read any further: %s", text)}
}

// oneLine is text that is no JSON value, its line breaks taken out with the
// white space around them.
func oneLine(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte(' ')
			line = strings.TrimLeft(line, " \t\r")
		}
		b.WriteString(strings.TrimRight(line, "\r"))
	}
	return b.String()
}
