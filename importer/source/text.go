package source

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// badText finds what no text holds in the first n bytes of the window: a NUL,
// or bytes that are none of the file's encoding, or seem to be another one's.
func (w *window) badText(n int) *Problem {
	record := w.bytes(n)
	i := bytes.IndexByte(record, 0)
	if i < 0 && utf8.Valid(record) {
		return w.mangled(record)
	}
	if bad := firstInvalid(record); i < 0 || bad < i {
		return &Problem{Code: "encoding", Text: "the row is not " + textName(w.encoding) + w.where(record, bad)}
	}
	return &Problem{Code: "nul", Text: "the row holds a NUL byte," + w.where(record, i)}
}

// mangled finds a record that was written in UTF-8 though the file is read in an
// encoding of one byte a character, as in files put together from two systems.
func (w *window) mangled(record []byte) *Problem {
	if w.decoder == nil || w.trusted || !w.decoder.charset.single || firstHigh(record) == len(record) {
		return nil
	}
	written, err := w.decoder.charset.encoding.NewEncoder().Bytes(record)
	if err != nil || !utf8.Valid(written) {
		return nil
	}
	return &Problem{Code: "encoding", Text: fmt.Sprintf("the row is text in UTF-8 as well as in %s, which was named:%s there would be other characters (hint: take the encoding out where the file is UTF-8, write all of it in one encoding where it was put together, or take such rows as %[1]s with --trust-encoding)",
		w.encoding, w.where(record, firstHigh(record)))}
}

// firstHigh is where text leaves ASCII, or its length.
func firstHigh(text []byte) int {
	for i, b := range text {
		if b >= utf8.RuneSelf {
			return i
		}
	}
	return len(text)
}

// text is the first n bytes of the window for people: bytes that are no text are
// written as \xNN, as the file has them.
func (w *window) text(n int) string {
	record := w.bytes(n)
	if bytes.IndexByte(record, 0) < 0 && utf8.Valid(record) {
		return string(record)
	}
	var b strings.Builder
	for i := 0; i < len(record); {
		r, size := utf8.DecodeRune(record[i:])
		switch {
		case r != 0 && (r != utf8.RuneError || size > 1):
			b.Write(record[i : i+size])
		default:
			for _, c := range w.written(i) {
				fmt.Fprintf(&b, `\x%02X`, c)
			}
		}
		i += size
	}
	return b.String()
}

// written is what the file has in place of the window's byte i.
func (w *window) written(i int) []byte {
	if w.decoder != nil {
		if s, known := w.decoder.spot(w.offset + int64(i)); known {
			return []byte(s.bytes)
		}
	}
	return w.buf[w.start+i : w.start+i+1]
}

// hint says what to do about a problem of the first n bytes of the window, or nothing.
func (w *window) hint(p *Problem, n int) string {
	switch p.Code {
	case "encoding":
		if strings.Contains(p.Text, "(hint: ") {
			return ""
		}
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

// notCorrected is the problem of a row that is taken from rejects as it was
// written there.
func notCorrected(column string) *Problem {
	return &Problem{Code: "uncorrected", Text: "not corrected yet (hint: fill the row's columns and empty " + column + ")"}
}

func tooLong(limit int) *Problem {
	return &Problem{Code: "too_long", Text: fmt.Sprintf("the row has more than %d bytes", limit)}
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
