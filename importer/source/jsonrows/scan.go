package jsonrows

import (
	"bytes"
	"errors"
	"io"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
)

// A scan finds where a JSON value ends, piece by piece and without keeping it. It looks at brackets and strings
// only: what it finds to be one value need not be valid, but where it gives up, no end can be known.
type scan struct {
	open    []byte // brackets that are not closed
	deepest int    // that were open at a time
	inside  scanInside
}

// scanInside says what kind of text the next byte belongs to.
type scanInside uint8

const (
	nothing scanInside = iota // the value has not begun
	between                   // brackets
	quoted                    // a string
	escaped                   // a string, behind a backslash
	plain                     // a number or a word, which ends where something else begins
)

// scanState is what a piece of text has said.
type scanState uint8

const (
	scanMore scanState = iota // the value goes on
	scanEnd                   // it ends before the count of bytes given
	scanLost                  // brackets that do not fit, or a string that its line ends in
)

func (s *scan) reset() { *s = scan{open: s.open[:0]} }

// feed takes the next piece of the value and tells how many bytes of it belong to the value, or lie before what
// makes no sense.
func (s *scan) feed(text []byte) (int, scanState) {
	for i, c := range text {
		switch s.inside {
		case plain:
			if standsBetween(c) || c == '"' || c == '{' || c == '[' {
				return i, scanEnd
			}
		case escaped:
			if c == '\n' {
				return i, scanLost
			}
			s.inside = quoted
		case quoted:
			switch c {
			case '\n':
				return i, scanLost
			case '\\':
				s.inside = escaped
			case '"':
				s.inside = between
				if len(s.open) == 0 {
					return i + 1, scanEnd
				}
			}
		default:
			if state := s.structure(c); state != scanMore {
				return i + 1, state
			}
		}
	}
	return len(text), scanMore
}

// structure takes a byte outside strings.
func (s *scan) structure(c byte) scanState {
	const maxOpen = 10_000 // brackets of a value that is passed over
	first := s.inside == nothing
	s.inside = between
	switch c {
	case '"':
		s.inside = quoted
	case '{', '[':
		s.open = append(s.open, c)
		if s.deepest = max(s.deepest, len(s.open)); len(s.open) > maxOpen {
			return scanLost
		}
	case '}', ']':
		last := len(s.open) - 1
		if last < 0 || s.open[last] != c-2 { // the codes of both pairs are two apart
			return scanLost
		}
		if s.open = s.open[:last]; last == 0 {
			return scanEnd
		}
	default:
		if first && standsBetween(c) {
			return scanLost
		}
		if first {
			s.inside = plain
		}
	}
	return scanMore
}

func standsBetween(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', ']', '}':
		return true
	}
	return false
}

// cursor goes through a JSON document, value by value. Its error, once there is one, stays.
type cursor struct {
	in   *lines.Window
	scan scan
	err  error // what ended the reading: a *rows.LostError, or one of reading
}

// lose says why nothing behind this place can be read.
func (c *cursor) lose(why error) {
	c.err = &rows.LostError{Line: c.in.Number, Text: "the JSON document cannot be read any further: " + why.Error(), Err: why}
}

// errCut is the cause where the file ends before the document does.
var errCut = errors.New("the file ends within its list: it was cut")

func (c *cursor) more() {
	if c.err = c.in.More(); errors.Is(c.err, io.EOF) {
		c.lose(errCut)
	}
}

// next passes over white space and gives the byte behind it; 0 where there is an error.
func (c *cursor) next() byte {
	for c.err == nil {
		text := c.in.Text()
		left := bytes.TrimLeft(text, white)
		c.in.Pass(len(text) - len(left))
		if len(left) > 0 {
			return left[0]
		}
		c.more()
	}
	return 0
}

// expect passes over one byte, or loses the document.
func (c *cursor) expect(want byte, otherwise string) {
	got := c.next()
	switch {
	case c.err != nil:
	case got == want:
		c.in.Pass(1)
	default:
		c.lose(errors.New(otherwise))
	}
}

var errMisfit = errors.New("brackets or quotes do not fit, so that nobody can tell where a value ends")

// measure finds how many bytes the value has that the window begins with, and gives up behind the limit of a
// record. The value stays in the window.
func (c *cursor) measure() (size int, state scanState) {
	c.scan.reset()
	for c.err == nil {
		n, state := c.scan.feed(c.in.Text()[size:])
		size += n
		if state == scanLost {
			c.in.Pass(size)
			c.lose(errMisfit)
		}
		if state == scanEnd || size > c.in.Max {
			return size, state
		}
		if c.err == nil {
			c.more()
		}
	}
	return 0, scanLost
}

func (c *cursor) passRest() {
	for state := scanMore; state == scanMore && c.err == nil; {
		var n int
		n, state = c.scan.feed(c.in.Text())
		c.in.Pass(n)
		switch state {
		case scanLost:
			c.lose(errMisfit)
		case scanMore:
			c.more()
		}
	}
}
