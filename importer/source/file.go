// Package source turns files into rows: CSV, TSV, JSON and Excel workbooks, in any encoding of the web, also packed.
//
// A row's way begins here: a [File] reads the row, and the mapping judges it. Promises:
//
//   - Every cell is text as the file holds it. Nothing is trimmed, rounded or read as a number, and bytes inside
//     quotes are kept exactly. The cells of a workbook are the text that Excel shows.
//   - Nothing is guessed that could change a cell. The encoding is that of the byte order mark, else that of the
//     options, else UTF-8. A row with bytes that are not valid in that encoding, or with U+FFFD, has a [Problem].
//   - A row knows its number and the physical line on which it starts.
//   - A row that cannot be read is data, a [Problem]; the rows after it are read as if it were not there. An error
//     means that the structure of the file is lost: a read error, packed data that are cut, damaged or grow a
//     hundredfold, a quote that is never closed or does not fit, a JSON list whose brackets do not fit. No row
//     begins inside another row.
//   - A row without any data is skipped and counted.
//   - Memory does not grow with the file: a record and the unpacking of a file have limits.
//   - No error and no problem holds a cell's value.
//
// A line ends with LF or CR LF; more CRs before the LF are part of the line end. The last line may have no end. A
// Ctrl-Z that ends the file is left out. Lines that are empty or hold only spaces are skipped. A lone CR never ends a
// line: outside quotes it is a problem of its row. A file whose only line ends are CRs is refused.
//
// The first line of a CSV file is its header. A [Frame] can leave out comments, titles before the header and totals
// after the rows; a warning then says what was left out. Otherwise these lines are rows with the wrong number of cells.
package source

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
)

// The types of the readers, so that other packages need to import only this one.
type (
	Options   = rows.Options
	Frame     = rows.Frame
	Format    = rows.Format
	Header    = rows.Header
	Row       = rows.Row
	Noted     = rows.Noted
	Fault     = rows.Fault
	Problem   = rows.Problem
	OpenError = rows.OpenError
	LostError = rows.LostError
)

// The formats that can be read.
const (
	CSV   = rows.CSV
	TSV   = rows.TSV
	JSONL = rows.JSONL
	XLSX  = rows.XLSX
)

// Info is what is known about a file and its reading so far.
type Info struct {
	Path, Format string
	Bytes        int64  // read so far, of the file as stored on disk
	Rows         int    // read so far
	Whole        bool   // it was read to the end
	SHA256       string // of all bytes on disk, in hexadecimal; "" if it is not Whole, or with Options.NoSum
	rows.Found          // by the reader
}

// File reads the rows of one input, in order. One goroutine may use it.
type File struct {
	info   Info // bytes and checksum are in meter
	format Format
	reader rows.Reader   // of package delimited, jsonrows or xlsx, see openText
	window *lines.Window // nil for a workbook
	ahead  []Row         // rows that Next has not returned yet
	ready  int           // how many of ahead are certain; the others may be on the last lines, which are left out
	ended  error         // why the reading ended, or nil: io.EOF or a *LostError

	disk    *os.File    // nil for standard input
	stat    os.FileInfo // from before it was opened; nil for standard input
	meter   *meter
	closers []io.Closer // closed from the last to the first, which is the file itself
}

// Header names the columns of a CSV file or a sheet. For JSON it is empty and open: each row has its own.
func (f *File) Header() *Header { return f.info.Header }

// Warnings are remarks about the file for people, without values. The list is complete at the end of the file.
func (f *File) Warnings() []string { return f.info.Warnings }

// Next reads the next row into r and reuses r.Cells: to keep them, pass another Row. It returns io.EOF after the last
// row, and a *LostError if the file cannot be read any further.
func (f *File) Next(r *Row) error {
	if len(f.ahead) == 0 && f.ended == nil && f.info.Frame.SkipFooter == 0 {
		return f.readNext(r)
	}
	if len(f.ReadAhead(1)) == 0 {
		return f.ended
	}
	*r, f.ahead = f.ahead[0], f.ahead[1:]
	f.ready--
	return nil
}

// ReadAhead reads until it has n rows or the reading ends, and returns these rows. Next returns the same rows later.
func (f *File) ReadAhead(n int) []Row {
	skipped := f.info.Frame.SkipFooter
	for f.ready < n && f.ended == nil {
		var row Row // keeps its cells
		if f.readNext(&row) != nil {
			f.leaveOut(skipped)
			break
		}
		f.ahead = append(f.ahead, row)
		for f.ready < len(f.ahead) && f.ahead[f.ready].Line <= row.Line-skipped {
			f.ready++
		}
	}
	return f.ahead[:f.ready]
}

// IsRejects reports whether the file is the rejects of a run.
func (f *File) IsRejects() bool {
	h := f.Header()
	if h.Open {
		if ahead := f.ReadAhead(1); len(ahead) > 0 {
			h = ahead[0].Header
		}
	}
	return h != nil && h.Rejects
}

// Limits of the JSON that Columns reads ahead: how many objects, and how many bytes in memory.
const firstObjects, firstBytes = 1000, 16 << 20

// Columns returns the file's own columns. For JSON these are the keys that all of the first objects have.
func (f *File) Columns() []string {
	h := f.Header()
	if !h.Open {
		return h.Names[:h.Own]
	}
	var names []string // of the first row, without those that later rows lack
	for n, size := 0, 0; n < firstObjects && size < firstBytes; n++ {
		ahead := f.ReadAhead(n + 1)
		if len(ahead) <= n {
			break
		}
		row := &ahead[n]
		size += len(row.Raw)
		switch h := row.Header; {
		case row.Problem != nil || h == nil || h.Own == 0:
		case names == nil:
			names = slices.Clone(h.Names[:h.Own])
		default:
			names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(h.Names[:h.Own], name) })
		}
	}
	return names
}

// Lacks returns those of the names that all first objects of a JSON file lack; nil for other files and standard input.
func (f *File) Lacks(names []string) []string {
	if !f.Header().Open || f.info.Path == "-" || len(f.Columns()) == 0 { // Columns fills f.ahead
		return nil
	}
	names = slices.Clone(names)
	for i := range f.ahead[:f.ready] {
		if h := f.ahead[i].Header; h != nil {
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(h.Names, name) })
		}
	}
	return names
}

// leaveOut removes the rows on the last lines of the file, or the last rows of a sheet. If the file is lost, nobody
// knows which lines are the last: it removes all rows that may be on them.
func (f *File) leaveOut(lines int) {
	if held := len(f.ahead); errors.Is(f.ended, io.EOF) && held > f.ready {
		last := f.ahead[held-1].Line
		if f.window != nil {
			last = f.window.Lines()
		}
		f.info.Warn("the lines from %d on were left out as source.skip_footer says", max(last-lines+1, 1))
		for f.ready < held && f.ahead[f.ready].Line <= last-lines {
			f.ready++
		}
	}
	f.info.Rows -= len(f.ahead) - f.ready
	f.ahead = f.ahead[:f.ready]
}

// readNext reads the next row of the table, or returns what ended the reading.
func (f *File) readNext(r *Row) error {
	r.Clear(f.info.Header)
	err := f.reader.Next(r)
	footer := f.info.Frame.Footer
	switch {
	case footer == nil:
	case errors.Is(err, io.EOF):
		f.info.Warn("no row fits source.footer: is the file whole?")
	case err == nil && (r.Ends || r.Problem != nil && footer.MatchString(r.Text)):
		f.info.Warn("the lines from %d on were left out as source.footer says", r.Line)
		if err = io.EOF; f.window != nil {
			err = f.window.Drain() // for the checksum of the file
		}
	}
	if err != nil {
		f.ended = f.endedBy(err)
		return f.ended
	}
	f.info.Rows++
	r.Number = f.info.Rows
	// The rejects file takes this text. It must not be blank: it marks the row as not corrected yet.
	if r.Problem != nil && strings.TrimSpace(r.Text) == "" {
		r.Text = "(nothing that could be read)"
	}
	return nil
}

// endedBy turns an error of the reader into what Next returns: io.EOF, or a *LostError.
func (f *File) endedBy(err error) error {
	if errors.Is(err, io.EOF) {
		f.meter.hashing.Wait()
		if f.info.Whole = true; f.meter.hash != nil {
			f.info.SHA256 = hex.EncodeToString(f.meter.hash.Sum(nil))
		}
		return io.EOF
	}
	lost, known := errors.AsType[*LostError](err)
	if !known {
		text := "the file cannot be read any further: " + rows.Reason(err)
		lost = &LostError{Line: f.window.Number, Text: text, Err: err}
		if refusal, known := errors.AsType[*OpenError](err); known {
			lost.Hint = refusal.Hint
		}
	}
	lost.File = f.info.Path
	return lost
}

// Info returns what is known about the file and its reading so far.
func (f *File) Info() Info {
	info := f.info
	info.Format, info.Bytes = string(f.format), f.meter.bytes
	return info
}

// Close closes the file; standard input stays open.
func (f *File) Close() (err error) {
	for _, c := range slices.Backward(f.closers) {
		err = c.Close()
	}
	f.closers = nil
	return err
}

// Changed reports whether the file at the path was removed, replaced or written to since it was opened.
func (f *File) Changed() bool {
	if f.stat == nil {
		return false
	}
	now, err := os.Stat(f.info.Path)
	return err != nil || !os.SameFile(f.stat, now) || now.Size() != f.stat.Size() ||
		!now.ModTime().Equal(f.stat.ModTime())
}

// meter counts and hashes the bytes read through it. It hashes one piece while the caller parses it and reads the next.
type meter struct {
	in      io.Reader
	bytes   int64
	hash    hash.Hash      // nil: nobody asks for the checksum
	piece   []byte         // being hashed
	hashing sync.WaitGroup // of the piece
	fault   error          // a read error other than io.EOF
}

func newMeter(in io.Reader, o Options) *meter {
	if o.NoSum {
		return &meter{in: in}
	}
	return &meter{in: in, hash: sha256.New()}
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	if m.bytes += int64(n); m.hash != nil {
		m.hashing.Wait()
		m.piece = append(m.piece[:0], p[:n]...)
		m.hashing.Go(func() { m.hash.Write(m.piece) })
	}
	if err != nil && !errors.Is(err, io.EOF) {
		m.fault = err
	}
	return n, err
}
