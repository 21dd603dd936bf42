package source

import (
	"errors"
	"io"

	"leadferry/importer/source/rows"
)

// framedReader leaves out what stands behind the rows of a table: what begins with a row that fits the footer, and the
// rows on the last lines.
type framedReader struct {
	rows.Reader
	file  *File
	frame Frame
	held  []Row // that may stand on the last lines
	line  int   // of the last row that was read
	ended error
}

// framed is a reader of the rows alone, where something stands behind them.
func framed(in rows.Reader, frame Frame, of *File) rows.Reader {
	if frame.Footer == nil && frame.SkipFooter == 0 {
		return in
	}
	return &framedReader{Reader: in, file: of, frame: frame}
}

// Next gives the next row of the table.
func (f *framedReader) Next(r *Row) error {
	for f.ended == nil && (len(f.held) == 0 || f.held[0].Line > f.line-f.frame.SkipFooter) {
		var row Row // keeps its cells
		row.Clear(r.Header)
		if f.ended = f.read(&row); f.ended == nil {
			f.held, f.line = append(f.held, row), row.Line
		} else if f.frame.SkipFooter > 0 {
			f.leaveOut()
		}
	}
	if len(f.held) == 0 {
		return f.ended
	}
	*r, f.held = f.held[0], f.held[1:]
	return nil
}

// read reads a row, or ends the table where the footer begins.
func (f *framedReader) read(row *Row) error {
	err := f.Reader.Next(row)
	footer := f.frame.Footer
	switch {
	case footer == nil:
	case errors.Is(err, io.EOF):
		f.file.found.Warn("no row fits source.footer: is the file whole?")
	case err == nil && (row.Ends || row.Problem != nil && footer.MatchString(row.Text)):
		f.file.found.Warn("the lines from %d on were left out as source.footer says", row.Line)
		return f.drain()
	}
	return err
}

// drain reads what is left of a text, which counts for the checksum of the file.
func (f *framedReader) drain() error {
	if f.file.window == nil {
		return io.EOF
	}
	return f.file.window.Drain()
}

// leaveOut takes the rows on the last lines away once these are known. What loses a text there does no harm.
func (f *framedReader) leaveOut() {
	lost, isLost := errors.AsType[*LostError](f.ended)
	ended := f.ended
	if isLost && f.file.window != nil {
		ended = f.drain()
	}
	from := max(f.line, f.Line()) - f.frame.SkipFooter + 1
	if !errors.Is(ended, io.EOF) || isLost && lost.Line < from {
		f.held = nil // they may be none
		return
	}
	f.ended = io.EOF
	for len(f.held) > 0 && f.held[len(f.held)-1].Line >= from {
		f.held = f.held[:len(f.held)-1]
	}
	f.file.found.Warn("the lines from %d on were left out as source.skip_footer says", from)
}
