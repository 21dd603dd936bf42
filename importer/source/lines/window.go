// Package lines shows the text of a file, in UTF-8 whatever its encoding is, from the start of the present record
// on: its physical lines, what is no text in them, and where that is in the file.
//
// It is below the readers of text, delimited and jsonrows. Its promises: memory does not grow with the file,
// nothing is decoded by guess, and bytes that have no meaning in the file's encoding never look like text.
package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"

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
	within     bool  // buf[start-1], which was passed, ends no line
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
	return &Window{
		in: in, buf: make([]byte, block), Limit: limit, Max: limit, Number: 1, Look: func(bool) {},
		charset: charset{label: utf8Label},
	}
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
	if !errors.Is(err, rows.ErrPause) {
		w.err = err
	}
	return err
}

// Line gives the physical line, with its end, that begins from bytes after the record's start. It may move what
// earlier calls gave. The error is io.EOF, ErrTooLong in a *[rows.LostError], or what ended the
// reading.
func (w *Window) Line(from int) ([]byte, error) {
	for seen := from; ; {
		text := w.Text()
		seen = min(seen, len(text)) // a Ctrl-Z at the end is taken away
		i := bytes.IndexByte(text[seen:], '\n')
		stop := len(text)
		if i >= 0 {
			stop = seen + i + 1
		}
		switch {
		case stop > w.Max:
			text := fmt.Sprintf("the row is longer than %d bytes, and none behind it was read", w.Max)
			const hint = "take the row out, or shorten it"
			return nil, &rows.LostError{Line: w.Number, Text: text, Hint: hint, Err: ErrTooLong}
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

// First gives the first line that is not blank, which then begins the window, without the byte order marks before it.
// Some programs write two of them, and files that were put together have them in their midst.
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
	w.Offset += int64(n)
	w.start += n
}

// Lines counts the lines that were passed, with one that has no end.
func (w *Window) Lines() int {
	if w.within {
		return w.Number
	}
	return w.Number - 1
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

// SkipTo passes over the lines before this one, however long. An error comes again where a record is wanted.
func (w *Window) SkipTo(number int) {
	for w.Number < number && (len(w.Text()) > 0 || w.More() == nil) {
		n := bytes.IndexByte(w.Text(), '\n') + 1
		if n == 0 {
			n = len(w.Text())
		}
		w.Pass(n)
	}
}

// Drain passes over all that is left.
func (w *Window) Drain() error {
	for {
		w.Pass(len(w.Text()))
		if err := w.More(); err != nil {
			return err
		}
	}
}
