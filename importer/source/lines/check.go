package lines

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"leadferry/importer/source/rows"
)

// BadText finds what no text holds in the first n bytes of the window: a NUL,
// or bytes that are none of the file's encoding, or seem to be another one's.
func (w *Window) BadText(n int) *rows.Problem {
	record := w.Bytes(n)
	nul := bytes.IndexByte(record, 0)
	if nul < 0 && utf8.Valid(record) {
		return w.mangled(record)
	}
	if bad := firstInvalid(record); nul < 0 || bad < nul {
		return &rows.Problem{Code: "encoding", Text: "the row is not " + textName(w.Encoding) + w.where(record, bad)}
	}
	return &rows.Problem{Code: "nul", Text: "the row holds a NUL byte," + w.where(record, nul)}
}

// mangled finds a record that was written in UTF-8 though the file is read in an
// encoding of one byte a character, as in files put together from two systems.
func (w *Window) mangled(record []byte) *rows.Problem {
	if w.decoder == nil || w.trusted || !w.decoder.charset.single || firstHigh(record) == len(record) {
		return nil
	}
	written, err := w.decoder.charset.encoding.NewEncoder().Bytes(record)
	if err != nil || !utf8.Valid(written) {
		return nil
	}
	return &rows.Problem{Code: "encoding", Text: fmt.Sprintf("the row is text in UTF-8 as well as in %s, which was named:%s there would be other characters",
		w.Encoding, w.where(record, firstHigh(record)))}
}

// Hint says what to do about a problem of the first n bytes of the window, or nothing.
func (w *Window) Hint(p *rows.Problem, n int) string {
	switch record := w.Bytes(n); {
	case p.Code == "nul":
		return "export the file anew; text in UTF-16 without a byte order mark needs --encoding utf-16le or utf-16be"
	case p.Code != "encoding":
		return ""
	case utf8.Valid(record):
		return fmt.Sprintf("take the encoding out where the file is UTF-8, write all of it in one encoding where it was put together, or take such rows as %s with --trust-encoding", w.Encoding)
	default:
		return encodingHint(w.Encoding, record)
	}
}

// Hinted adds the hint to a problem's text.
func (w *Window) Hinted(p *rows.Problem, n int) *rows.Problem {
	if hint := w.Hint(p, n); hint != "" {
		p.Text += " (hint: " + hint + ")"
	}
	return p
}

// Readable is the first n bytes of the window for people: bytes that are no text are
// written as \xNN, as the file has them.
func (w *Window) Readable(n int) string {
	record := w.Bytes(n)
	var b strings.Builder
	for i := 0; i < len(record); {
		r, size := utf8.DecodeRune(record[i:])
		if r != 0 && (r != utf8.RuneError || size > 1) {
			b.Write(record[i : i+size])
		} else {
			for _, c := range []byte(w.written(i).bytes) {
				fmt.Fprintf(&b, `\x%02X`, c)
			}
		}
		i += size
	}
	return b.String()
}

// written is what the file has in place of the window's byte i. Its offset is -1 where
// it is not known.
func (w *Window) written(i int) spot {
	at := w.offset + int64(i)
	if w.decoder == nil {
		return spot{at, string(w.buf[w.start+i : w.start+i+1])}
	}
	if s, known := w.decoder.spots[at]; known {
		return s
	}
	return spot{-1, string(w.buf[w.start+i : w.start+i+1])}
}

// where names the place of a record's byte i for people.
func (w *Window) where(record []byte, i int) string {
	before := record[:i]
	line := w.Number + bytes.Count(before, []byte{'\n'})
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	if offset := w.written(i).offset; offset >= 0 {
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

// firstHigh is where text leaves ASCII, or its length.
func firstHigh(text []byte) int {
	for i, b := range text {
		if b >= utf8.RuneSelf {
			return i
		}
	}
	return len(text)
}

// textName is an encoding's name for people.
func textName(label string) string {
	if label == utf8Label {
		return "UTF-8"
	}
	return "text in " + label
}
