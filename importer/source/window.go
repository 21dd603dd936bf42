package source

import (
	"bytes"
	"errors"
	"io"
)

// errTooLong says that a record is longer than the window may show.
var errTooLong = errors.New("record too long")

// window shows the text of a file from the start of the present record on.
// It grows to twice what a record may have at most, or a block, and no further.
type window struct {
	in         io.Reader
	buf        []byte
	start, end int   // buf[start:end] is read and not yet passed
	limit      int   // bytes a record, without cells in quotes
	max        int   // bytes a record at most
	offset     int64 // place of buf[start] in the text
	number     int   // physical line of buf[start], from 1
	err        error // what ended the reading; io.EOF at the end

	encoding string   // label of the text's encoding
	decoder  *decoder // nil: the text is UTF-8 and shown as it is
	trusted  bool     // text that is UTF-8 as well is taken for what its encoding says
}

const block = 128 << 10

func newWindow(in io.Reader, limit int) *window {
	return &window{in: in, buf: make([]byte, block), limit: limit, max: limit, number: 1, encoding: utf8Label}
}

// widen makes room for records with long cells in quotes, once it is known what
// the file holds.
func (w *window) widen() { w.max = (1 + quotedRecords) * w.limit }

// line gives the physical line, with its end, that begins from bytes after the
// record's start. It may move what earlier calls gave. The error is io.EOF,
// errTooLong or what ended the reading.
func (w *window) line(from int) ([]byte, error) {
	for seen := from; ; {
		i := bytes.IndexByte(w.buf[w.start+seen:w.end], '\n')
		stop := w.end - w.start
		if i >= 0 {
			stop = seen + i + 1
		}
		switch {
		case stop > w.max:
			return nil, errTooLong
		case i >= 0, errors.Is(w.err, io.EOF) && stop > from:
			return w.buf[w.start+from : w.start+stop], nil
		case w.err != nil:
			return nil, w.err
		}
		w.fill()
		seen = min(stop, w.end-w.start) // a Ctrl-Z at the end may have gone
	}
}

// first gives the first line that is not blank, which then begins the window.
func (w *window) first() ([]byte, error) {
	for {
		line, err := w.line(0)
		if err != nil || !blank(line) {
			return line, err
		}
		w.pass(len(line))
	}
}

// pass moves the window's start over n bytes.
func (w *window) pass(n int) {
	w.number += bytes.Count(w.buf[w.start:w.start+n], []byte{'\n'})
	w.offset += int64(n)
	w.start += n
}

// passLine moves the window's start over the rest of a line, however long, and
// says whether a quote stood there.
func (w *window) passLine() (quotes bool) {
	for {
		i := bytes.IndexByte(w.buf[w.start:w.end], '\n')
		n := i + 1
		if i < 0 {
			n = w.end - w.start
		}
		quotes = quotes || bytes.IndexByte(w.bytes(n), '"') >= 0
		w.pass(n)
		if i >= 0 || w.more() != nil {
			return quotes
		}
	}
}

// quoteOpens says that the first quote behind n bytes of the window begins a cell and
// ends none, or that as many bytes as a record may have hold none. Quotes in pairs may
// be an empty cell or stand inside one, and tell nothing.
func (w *window) quoteOpens(n int, delim []byte) bool {
	for seen := n; ; {
		text := w.buf[w.start:w.end]
		i := bytes.IndexByte(text[seen:], '"')
		if i >= 0 {
			before, after := text[:seen+i], bytes.TrimLeft(text[seen+i:], `"`)
			if len(after) > len(delim) || w.err != nil {
				if pairs := len(text) - len(after) - len(before); pairs%2 == 0 {
					seen = len(text) - len(after)
					continue
				}
				ends := len(after) == 0 || bytes.HasPrefix(after, delim) || after[0] == '\n' || after[0] == '\r'
				return !ends && (bytes.HasSuffix(before, []byte{'\n'}) || bytes.HasSuffix(before, delim))
			}
			seen += i
		} else {
			seen = len(text)
		}
		if seen-n >= w.limit || w.err != nil {
			return i < 0 && (w.err == nil || errors.Is(w.err, io.EOF))
		}
		w.fill()
		seen = min(seen, w.end-w.start) // a Ctrl-Z at the end may have gone
	}
}

// bytes gives the first n bytes of the window, or as many as there are.
func (w *window) bytes(n int) []byte {
	return w.buf[w.start:min(w.start+n, w.end)]
}

// peek gives the first n bytes of the window, or what there is before the
// reading ends; whole says that nothing follows them.
func (w *window) peek(n int) (text []byte, whole bool) {
	for w.end-w.start <= n && w.err == nil {
		w.fill()
	}
	return w.bytes(n), w.end-w.start <= n && errors.Is(w.err, io.EOF)
}

// more reads one block more, or gives what ended the reading.
func (w *window) more() error {
	if w.err == nil {
		w.fill()
		return nil
	}
	return w.err
}

// fill reads one block more.
func (w *window) fill() {
	if w.start > 0 {
		w.end = copy(w.buf, w.buf[w.start:w.end])
		w.start = 0
	}
	if w.end == len(w.buf) {
		w.buf = append(w.buf, make([]byte, len(w.buf))...)
	}
	if w.decoder != nil {
		w.decoder.forget(w.offset)
	}
	n, err := io.ReadAtLeast(w.in, w.buf[w.end:], 1)
	w.end += n
	if err == nil {
		return
	}
	w.err = err
	const ctrlZ = 0x1A
	if errors.Is(err, io.EOF) && w.end > 0 && w.buf[w.end-1] == ctrlZ {
		w.end--
	}
}

// place tells where in the file the window's byte i is.
func (w *window) place(i int) (offset int64, known bool) {
	if w.decoder == nil {
		return w.offset + int64(i), true
	}
	s, known := w.decoder.spot(w.offset + int64(i))
	return s.file, known
}

// body is a line without its end.
func body(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	for n := len(line); n > 0 && line[n-1] == '\r'; n-- {
		line = line[:n-1]
	}
	return line
}

func blank(line []byte) bool {
	for _, b := range body(line) {
		if b != ' ' {
			return false
		}
	}
	return true
}
