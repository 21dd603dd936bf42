package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// SkipTo passes over the lines before this one.
func (w *Window) SkipTo(number int) {
	for w.Number < number {
		line, err := w.Line(0)
		switch {
		case errors.Is(err, ErrTooLong):
			w.PassLine()
		case err != nil:
			return // it comes again where a record is wanted
		default:
			w.Pass(len(line))
		}
	}
}

// Drain passes over all that is left, and says how many lines that were.
func (w *Window) Drain() (lines int, err error) {
	for begun := false; ; {
		text := w.Text()
		lines += bytes.Count(text, []byte{'\n'})
		if len(text) > 0 {
			begun = text[len(text)-1] != '\n'
		}
		w.Pass(len(text))
		if err := w.More(); err != nil && begun {
			return lines + 1, err
		} else if err != nil {
			return lines, err
		}
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

const maxTail = 16 << 20 // bytes that are held back

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
