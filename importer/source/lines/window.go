// Package lines shows the text of a file, in UTF-8 whatever its encoding is, from the start of the present record
// on: its physical lines, what is no text in them, and where that stands in the file.
//
// It stands below the readers of text, delimited and jsonrows. Its promises: memory does not grow with the file,
// nothing is decoded by guess, and bytes that have no meaning in the file's encoding never look like text.
package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"leadferry/importer/source/rows"
)

// ErrTooLong says that a record is longer than the window may show.
var ErrTooLong = errors.New("record too long")

// Window shows the text of a file from the start of the present record on. It grows to twice what a record may have
// at most, or a block, and no further.
type Window struct {
	Limit  int           // bytes a record, without cells in quotes
	Max    int           // bytes a record at most
	Number int           // physical line on which the window starts, from 1
	Offset int64         // place in the text at which it starts
	Look   func(on bool) // looking ahead ends with a pause of what is read

	in         io.Reader
	buf        []byte
	start, end int   // buf[start:end] is read and not yet passed
	ctrlZ      bool  // stands behind buf[end], and belongs to the text if anything follows
	err        error // what ended the reading; io.EOF at the end

	charset charset // that the text was decoded from
}

const (
	block         = 128 << 10 // bytes that are read at first
	quotedRecords = 16        // records that a cell in quotes may have room for
	ctrlZ         = 0x1A      // ends a text where it is its last byte
)

// New shows a text in UTF-8 whose records have at most so many bytes.
func New(in io.Reader, limit int) *Window {
	return &Window{in: in, buf: make([]byte, block), Limit: limit, Max: limit, Number: 1, Look: func(bool) {}, charset: charset{label: utf8Label}}
}

// Widen makes room for records with long cells in quotes, once it is known what the file holds.
func (w *Window) Widen() { w.Max = (1 + quotedRecords) * w.Limit }

// Text is what was read and not yet passed.
func (w *Window) Text() []byte { return w.buf[w.start:w.end] }

// Bytes gives the first n bytes of the window, or as many as there are.
func (w *Window) Bytes(n int) []byte { return w.buf[w.start:min(w.start+n, w.end)] }

// More reads on, or gives what ended the reading. It may move what was given before.
func (w *Window) More() error {
	if w.err != nil {
		return w.err
	}
	if w.start > 0 {
		w.end = copy(w.buf, w.Text())
		w.start = 0
	}
	if w.end+1 >= len(w.buf) {
		larger := make([]byte, 2*len(w.buf))
		copy(larger, w.buf)
		w.buf = larger
	}
	from := w.end
	if w.ctrlZ {
		w.buf[from] = ctrlZ
		from++
	}
	n, err := io.ReadAtLeast(w.in, w.buf[from:], 1)
	if n > 0 {
		w.end = from + n
		if w.ctrlZ = w.buf[w.end-1] == ctrlZ; w.ctrlZ {
			w.end--
		}
	}
	if !errors.Is(err, rows.ErrPause) {
		w.err = err
	}
	return err
}

// Line gives the physical line, with its end, that begins from bytes after the record's start. It may move what
// earlier calls gave. The error is io.EOF, ErrTooLong or what ended the reading.
func (w *Window) Line(from int) ([]byte, error) {
	for seen := from; ; {
		text := w.Text()
		i := bytes.IndexByte(text[seen:], '\n')
		stop := len(text)
		if i >= 0 {
			stop = seen + i + 1
		}
		switch {
		case stop > w.Max:
			return nil, ErrTooLong
		case i >= 0, errors.Is(w.err, io.EOF) && stop > from:
			return text[from:stop], nil
		case w.err != nil:
			return nil, w.err
		}
		if err := w.More(); errors.Is(err, rows.ErrPause) && stop == from { // else it is looked at after what there is
			return nil, err
		}
		seen = stop
	}
}

// First gives the first line that is not blank, which then begins the window, without the byte order marks before it. Some
// programs write two of them, and files that were put together have them in their midst.
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
	w.Number += bytes.Count(w.buf[w.start:w.start+n], []byte{'\n'})
	w.Offset += int64(n)
	w.start += n
}

// PassLine moves the window's start over the rest of a line, however long, and says whether a quote stood there.
func (w *Window) PassLine() (quotes bool) {
	for {
		line, _, whole := bytes.Cut(w.Text(), []byte{'\n'})
		quotes = quotes || bytes.IndexByte(line, '"') >= 0
		n := len(line)
		if whole {
			n++
		}
		w.Pass(n)
		if whole || w.More() != nil {
			return quotes
		}
	}
}

// Peek gives the first n bytes of the window, or what there is before the reading ends; whole says that nothing
// follows them.
func (w *Window) Peek(n int) (text []byte, whole bool) {
	w.Look(true)
	defer w.Look(false)
	for len(w.Text()) <= n && w.More() == nil {
	}
	return w.Bytes(n), len(w.Text()) <= n && errors.Is(w.err, io.EOF)
}

// Body is a line without its end.
func Body(line []byte) []byte {
	return bytes.TrimRight(bytes.TrimSuffix(line, []byte{'\n'}), "\r")
}

// BadText finds what no text holds in the first n bytes of the window: a NUL, or bytes that are none of the file's
// encoding, or seem to be UTF-8 instead. A decoder puts U+FFFD for the former; no U+FFFD is taken for a character then.
func (w *Window) BadText(n int) *rows.Problem {
	record := w.Bytes(n)
	label, named, bad := w.charset.label, "UTF-8", len(record)
	if label == utf8Label {
		bad = firstInvalid(record)
	} else {
		named = "text in " + label
		if i := bytes.Index(record, []byte("\uFFFD")); i >= 0 {
			bad = i
		}
	}
	if nul := bytes.IndexByte(record, 0); nul >= 0 && nul < bad {
		const hint = "export the file anew; text in UTF-16 without a byte order mark needs --encoding utf-16le or utf-16be"
		return &rows.Problem{Code: "nul", Text: "the row holds a NUL byte," + w.where(record, nul), Hint: hint}
	}
	if bad < len(record) {
		return &rows.Problem{Code: "encoding", Text: "the row is not " + named + w.where(record, bad), Hint: encodingHint(label)}
	}
	if label == utf8Label {
		return nil
	}
	high := firstHigh(record)
	if high == len(record) || !w.charset.isUTF8(record) {
		return nil
	}
	return &rows.Problem{
		Code: "encoding",
		Text: fmt.Sprintf("the row is text in UTF-8 as well as in %s, which was named:%s there would be other characters", label, w.where(record, high)),
		Hint: "take the encoding out where the file is UTF-8, or write all of it in one encoding where it was put together",
	}
}

// Readable is the first n bytes of the window for people: bytes that are no text are written as \xNN.
func (w *Window) Readable(n int) string {
	record := w.Bytes(n)
	var b strings.Builder
	for i := 0; i < len(record); {
		r, size := utf8.DecodeRune(record[i:])
		if r != 0 && (r != utf8.RuneError || size > 1) {
			b.Write(record[i : i+size])
		} else {
			fmt.Fprintf(&b, `\x%02X`, record[i])
		}
		i += size
	}
	return b.String()
}

// where names the place of a record's byte i for people, in the file too where its bytes are those of the text.
func (w *Window) where(record []byte, i int) string {
	before := record[:i]
	line := w.Number + bytes.Count(before, []byte{'\n'})
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	if w.charset.label == utf8Label {
		return fmt.Sprintf(" at byte offset %d of the file, line %d, character %d of the line", w.Offset+int64(i), line, column)
	}
	return fmt.Sprintf(" on line %d, character %d of the line", line, column)
}

// firstInvalid is where text stops being UTF-8, or its length.
func firstInvalid(text []byte) int {
	if utf8.Valid(text) { // mostly, and eight bytes at a time
		return len(text)
	}
	for i, r := range string(text) {
		if r == utf8.RuneError && !bytes.HasPrefix(text[i:], []byte("\uFFFD")) {
			return i
		}
	}
	return len(text)
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

// SkipTo passes over the lines before this one.
func (w *Window) SkipTo(number int) {
	for w.Number < number && (len(w.Text()) > 0 || w.More() == nil) { // an error comes again where a record is wanted
		w.PassLine()
	}
}

// Drain passes over all that is left, and says how many lines that were.
func (w *Window) Drain() (lines int, err error) {
	for ; ; lines++ {
		for len(w.Text()) == 0 {
			if err := w.More(); err != nil {
				return lines, err
			}
		}
		w.PassLine()
	}
}

// Tail is what stands at the end of a text and is not shown.
type Tail struct {
	in   io.Reader
	keep int // lines that are held back
	held []byte
	free int // bytes of held that more than keep lines follow
	err  error

	Line  int // the first of them once the text has ended
	Lines int // how many they are
}

// HideLast leaves the last lines of the text out, of which there are as many as in an editor: what stands behind the
// last line end is none when it is empty.
func (w *Window) HideLast(lines int) *Tail {
	read := bytes.Clone(w.Text())
	if w.ctrlZ {
		read = append(read, ctrlZ)
	}
	t := &Tail{in: io.MultiReader(bytes.NewReader(read), w.in), keep: lines, Line: w.Number}
	w.in, w.end, w.ctrlZ, w.err = t, w.start, false, nil
	return t
}

// Read gives what is known not to be among the last lines.
func (t *Tail) Read(p []byte) (int, error) {
	for t.free == 0 {
		if t.err != nil {
			return 0, t.err
		}
		t.more()
	}
	n := copy(p, t.held[:t.free])
	t.Line += bytes.Count(t.held[:n], []byte{'\n'})
	t.held, t.free = t.held[n:], t.free-n
	return n, nil
}

// more reads on, and sees what of it may be given.
func (t *Tail) more() {
	const maxTail = 16 << 20 // bytes that are held back
	if len(t.held) > maxTail {
		t.err = fmt.Errorf("the last %d lines have more than %d bytes", t.keep, maxTail)
		return
	}
	t.held = slices.Grow(t.held, block)
	n, err := t.in.Read(t.held[len(t.held) : len(t.held)+block])
	t.held = t.held[:len(t.held)+n]
	if t.err = err; errors.Is(err, io.EOF) {
		t.held = bytes.TrimSuffix(t.held, []byte{ctrlZ})
	}
	t.free = len(t.held)
	for t.Lines = 0; t.Lines < t.keep && t.free > 0; t.Lines++ {
		t.free = bytes.LastIndexByte(t.held[:t.free-1], '\n') + 1
	}
}
