// Package lines decodes a file to UTF-8, shows its text from the current record on, and finds bytes that are not text.
//
// The readers of text, delimited and jsonrows, use it. Promises: memory does not grow with the file, no encoding is
// guessed, and bytes that are not valid in the file's encoding never look like text.
package lines

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/transform"

	"leadferry/importer/source/rows"
)

// ErrTooLong says that a record is longer than Window.Max.
var ErrTooLong = errors.New("record too long")

// Window shows the text of a file from the start of the current record on. It grows to about twice the longest record.
type Window struct {
	Limit  int // bytes a record may have, unless it has cells in quotes
	Max    int // bytes any record may have
	Number int // physical line on which the window starts, from 1

	in         io.Reader
	buf        []byte
	start, end int   // buf[start:end] was read and is not passed yet
	within     bool  // start is in the middle of a line
	err        error // what ended the reading; io.EOF at the end

	label    string            // of the encoding in which the file is written
	encoding encoding.Encoding // that encoding
}

const (
	block         = 128 << 10 // bytes of the first buffer
	quotedRecords = 16        // how many times Limit a cell in quotes may have
	ctrlZ         = 0x1A      // ends a text if it is the last byte
)

// Widen makes room for records with long cells in quotes. Call it once the delimiter or the kind of JSON is known.
func (w *Window) Widen() { w.Max = (1 + quotedRecords) * w.Limit }

// Text returns what was read and not passed yet.
func (w *Window) Text() []byte { return w.buf[w.start:w.end] }

// Bytes returns the first n bytes of the window, or all if it has fewer.
func (w *Window) Bytes(n int) []byte { return w.buf[w.start:min(w.start+n, w.end)] }

// More reads more text, or returns why there is none. It may move the bytes that earlier calls returned.
func (w *Window) More() error {
	if w.err != nil {
		return w.err
	}
	if w.start > 0 {
		w.end = copy(w.buf, w.Text())
		w.start = 0
	}
	if w.end == len(w.buf) {
		larger := make([]byte, 2*len(w.buf))
		copy(larger, w.buf)
		w.buf = larger
	}
	n, err := io.ReadAtLeast(w.in, w.buf[w.end:], 1)
	w.end += n
	if errors.Is(err, io.EOF) && w.end > 0 && w.buf[w.end-1] == ctrlZ {
		w.end--
	}
	w.err = err
	return err
}

// Line returns the physical line, with its end, that begins from bytes after the record's start. It may move the bytes
// that earlier calls returned. The error is io.EOF, a *[rows.LostError] of ErrTooLong, or a read error.
func (w *Window) Line(from int) ([]byte, error) {
	for seen := from; ; {
		text := w.Text()
		seen = min(seen, len(text)) // a Ctrl-Z at the end may have been removed
		i := bytes.IndexByte(text[seen:], '\n')
		stop := len(text)
		if i >= 0 {
			stop = seen + i + 1
		}
		switch {
		case stop > w.Max:
			text := fmt.Sprintf("the row is longer than %d bytes, and none after it was read", w.Max)
			const hint = "take the row out, or shorten it"
			return nil, &rows.LostError{Line: w.Number, Text: text, Hint: hint, Err: ErrTooLong}
		case i >= 0, errors.Is(w.err, io.EOF) && stop > from:
			return text[from:stop], nil
		case w.err != nil:
			return nil, w.err
		}
		_ = w.More() // its error counts only once the text is used up
		seen = stop
	}
}

// First passes blank lines and byte order marks. It returns the line after them, but does not pass it. Some programs
// write two marks, and a file joined from others has them in the middle.
func (w *Window) First() ([]byte, error) {
	for {
		line, err := w.Line(0)
		switch {
		case err != nil || line[0] > ' ' && line[0] != rows.ByteOrderMark[0]:
			return line, err
		case bytes.HasPrefix(line, []byte(rows.ByteOrderMark)):
			w.Pass(len(rows.ByteOrderMark))
		case len(bytes.TrimLeft(Body(line), " ")) > 0:
			return line, nil
		default:
			w.Pass(len(line))
		}
	}
}

// Pass moves the window's start over n bytes.
func (w *Window) Pass(n int) {
	if n > 0 {
		w.within = w.buf[w.start+n-1] != '\n'
	}
	w.Number += bytes.Count(w.buf[w.start:w.start+n], []byte{'\n'})
	w.start += n
}

// Lines returns how many lines were passed, including a last one without an end.
func (w *Window) Lines() int {
	if w.within {
		return w.Number
	}
	return w.Number - 1
}

// Peek reads until it can return the first n bytes of the window, or all that is left: then whole is true.
func (w *Window) Peek(n int) (text []byte, whole bool) {
	for len(w.Text()) <= n && w.More() == nil {
	}
	return w.Bytes(n), len(w.Text()) <= n && errors.Is(w.err, io.EOF)
}

// Body returns a line without its end.
func Body(line []byte) []byte { return bytes.TrimRight(bytes.TrimSuffix(line, []byte{'\n'}), "\r") }

// SkipTo passes the lines before line number, however long they are. Reading the next record reports an error.
func (w *Window) SkipTo(number int) {
	for w.Number < number && (len(w.Text()) > 0 || w.More() == nil) {
		line := bytes.IndexByte(w.Text(), '\n') + 1 // 0: the end of the line is not read yet
		w.Pass(cmp.Or(line, len(w.Text())))
	}
}

// Drain passes all that is left. It returns io.EOF, or the read error that came before.
func (w *Window) Drain() error {
	w.SkipTo(math.MaxInt)
	return w.err
}

const utf8Label = "utf-8"

// Decode returns a window on the text of a file. The encoding is that of its byte order mark, else of o, else UTF-8.
func Decode(in *bufio.Reader, o rows.Options, found *rows.Found) (*Window, error) {
	label, from, err := findEncoding(o.Encoding)
	if err != nil {
		return nil, err
	}
	found.Other = label != utf8Label
	head, _ := in.Peek(in.Size()) // a later read reports an error
	if mark := byteOrderMark(head); mark != "" && mark != label {
		if o.Encoding != "" {
			found.Warn("the file begins with the byte order mark of %s and is read so, not as %s", mark, label)
		}
		label, from, _ = findEncoding(mark) // cannot fail: these encodings are read here
	}
	found.Encoding = label
	w := &Window{
		in: in, buf: make([]byte, block), Limit: o.MaxRecord, Max: o.MaxRecord, Number: 1, label: label, encoding: from,
	}
	if label != utf8Label {
		w.in = transform.NewReader(in, from.NewDecoder())
	}
	return w, nil
}

// findEncoding finds an encoding, and its name in the WHATWG standard, by any of its labels; "" means UTF-8.
func findEncoding(label string) (name string, found encoding.Encoding, err error) {
	const hint = "use a label of the WHATWG Encoding Standard, as utf-8, utf-16le, windows-1252 (ANSI), " +
		"macintosh, shift_jis or gb18030, or save the file as UTF-8"
	found, err = htmlindex.Get(cmp.Or(label, utf8Label))
	// in ISO-2022-JP, one damaged character can take the end of its line with it
	if err != nil || found == encoding.Replacement || found == charmap.XUserDefined || found == japanese.ISO2022JP {
		return "", nil, rows.Refuse(fmt.Sprintf("the encoding %q is not known, or not read here", label), hint)
	}
	name, err = htmlindex.Name(found)
	return name, found, err
}

// isUTF8 reports whether a text was read in an encoding of one byte a character although the file holds UTF-8.
func (w *Window) isUTF8(text []byte) bool {
	if _, single := w.encoding.(*charmap.Charmap); !single {
		return false
	}
	written, err := w.encoding.NewEncoder().Bytes(text)
	return err == nil && utf8.Valid(written)
}

// byteOrderMark returns the encoding of the byte order mark at the beginning of a text, or "".
func byteOrderMark(head []byte) (label string) {
	switch begins := func(mark string) bool { return bytes.HasPrefix(head, []byte(mark)) }; {
	case begins(rows.ByteOrderMark):
		return utf8Label
	case begins("\xFF\xFE"):
		return "utf-16le"
	case begins("\xFE\xFF"):
		return "utf-16be"
	}
	return ""
}

// BadText finds what is not text in a record that begins on this line: a NUL, bytes that are not valid in the file's
// encoding, or text that is also valid UTF-8. Decoders write U+FFFD for invalid bytes, here or before the file was
// written, so no text may have it.
func (w *Window) BadText(record []byte, line int) *rows.Problem {
	label, bad, lost := w.label, len(record), bytes.Index(record, []byte("\uFFFD"))
	if lost >= 0 {
		bad = lost
	}
	if label == utf8Label && !utf8.Valid(record[:bad]) { // checked eight bytes at a time
		_, bad, _ = encoding.UTF8Validator.Transform(make([]byte, len(record)), record, true)
	}
	where := func(i int) string {
		line += bytes.Count(record[:i], []byte{'\n'})
		column := utf8.RuneCount(record[bytes.LastIndexByte(record[:i], '\n')+1:i]) + 1
		return fmt.Sprintf(" on line %d, character %d of the line", line, column)
	}
	if nul := bytes.IndexByte(record, 0); nul >= 0 && nul < bad {
		const hint = "export the file again; text in UTF-16 without a byte order mark needs --encoding utf-16le or " +
			"--encoding utf-16be"
		return rows.Flaw("nul", "the row holds a NUL byte"+where(nul), hint)
	}
	switch isUTF8 := label == utf8Label; {
	case isUTF8 && bad == lost:
		return rows.Flaw("encoding", "the row holds U+FFFD"+where(bad), "it stands for a character that was lost before "+
			"the file was written: export the file again, or correct the row in the rejects file")
	case isUTF8 && bad < len(record):
		return rows.Flaw("encoding", "the row is not UTF-8"+where(bad), "set the encoding that the file was written in, "+
			"such as --encoding windows-1252 (Western Europe), windows-1251 (Cyrillic), windows-1253 (Greek), shift_jis, "+
			"gb18030, euc-kr or big5, or save it as UTF-8")
	case bad < len(record):
		return rows.Flaw("encoding", "the row is not text in "+label+where(bad),
			"name the encoding that the file was written in with --encoding, or save it as UTF-8")
	case isUTF8:
		return nil
	}
	high := bytes.IndexFunc(record, func(r rune) bool { return r >= utf8.RuneSelf })
	if high < 0 || !w.isUTF8(record) {
		return nil
	}
	const text = "the row was read as %s but is also valid UTF-8: the two differ%s"
	return rows.Flaw("encoding", fmt.Sprintf(text, label, where(high)),
		"if the file is UTF-8, take the encoding out; if it was joined from several files, save it in one encoding")
}

// Readable returns a record for people: what is not text is written as \xNN or \uFFFD.
func Readable(record []byte) string {
	var b strings.Builder
	for i := 0; i < len(record); {
		r, size := utf8.DecodeRune(record[i:])
		switch {
		case r == utf8.RuneError && size > 1:
			b.WriteString(`\uFFFD`)
		case r == utf8.RuneError, r == 0:
			fmt.Fprintf(&b, `\x%02X`, record[i])
		default:
			b.Write(record[i : i+size])
		}
		i += size
	}
	return b.String()
}
