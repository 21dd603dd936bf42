package source

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// badText finds what no text holds in the first n bytes of the window: a NUL,
// or bytes that are none of the file's encoding.
func (w *window) badText(n int) *Problem {
	record := w.bytes(n)
	i := bytes.IndexByte(record, 0)
	if i < 0 && utf8.Valid(record) {
		return nil
	}
	if bad := firstInvalid(record); i < 0 || bad < i {
		return &Problem{Code: "encoding", Text: "the row is not " + textName(w.encoding) + w.where(record, bad)}
	}
	return &Problem{Code: "nul", Text: "the row holds a NUL byte," + w.where(record, i)}
}

// hint says what to do about a problem of the first n bytes of the window, or nothing.
func (w *window) hint(p *Problem, n int) string {
	switch p.Code {
	case "encoding":
		return encodingHint(w.encoding, w.bytes(n))
	case "nul":
		return "export the file anew; text in UTF-16 without a byte order mark needs --encoding utf-16le or utf-16be"
	}
	return ""
}

// hinted adds the hint to a problem's text.
func (w *window) hinted(p *Problem, n int) *Problem {
	if hint := w.hint(p, n); hint != "" {
		p.Text += " (hint: " + hint + ")"
	}
	return p
}

// where names the place of a record's byte i for people.
func (w *window) where(record []byte, i int) string {
	before := record[:i]
	line := w.number + bytes.Count(before, []byte{'\n'})
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	if offset, known := w.place(i); known {
		return fmt.Sprintf(" at byte offset %d of the file, line %d, character %d of the line", offset, line, column)
	}
	return fmt.Sprintf(" on line %d, character %d of the line", line, column)
}

// firstInvalid is where text stops being UTF-8, or its length.
func firstInvalid(text []byte) int {
	i := 0
	for i < len(text) {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// textName is an encoding's name for people.
func textName(label string) string {
	if label == utf8Label {
		return "UTF-8"
	}
	return "text in " + label
}

func tooLong(limit int) *Problem {
	return &Problem{Code: "too_long", Text: fmt.Sprintf("the row has more than %d bytes", limit)}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// chunk gives out slices of cells, many from one allocation. It is small, so
// that a row that is kept keeps few others.
type chunk struct{ free []string }

const chunkCells = 256

// take gives n empty cells, in the room that is handed back where it is large enough.
func (c *chunk) take(room []string, n int) []string {
	if cap(room) >= n {
		room = room[:n]
		clear(room)
		return room
	}
	if n > len(c.free) {
		if n >= chunkCells {
			return make([]string, n)
		}
		c.free = make([]string, chunkCells)
	}
	cells := c.free[:n:n]
	c.free = c.free[n:]
	return cells
}
