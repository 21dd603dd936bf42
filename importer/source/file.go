// Package source turns input files into rows: CSV, TSV, JSON and Excel workbooks, packed with gzip or zstd or not,
// in any encoding of the web.
//
// It is the first station of a row's way: a [File] reads, the mapping judges. What it promises:
//
//   - Every cell is text as the file holds it: nothing is trimmed, rounded or taken for a number, and bytes inside
//     quotes are kept exactly. The cells of a workbook are the text that Excel shows.
//   - Nothing is guessed that could change a cell. The encoding is what a byte order mark says, else what the options
//     say, else UTF-8. Bytes that have no meaning in it make a [Problem] of their row; U+FFFD comes out only where
//     the file holds it.
//   - A row knows the physical line that it starts on and its number.
//   - A row that cannot be read is data, a [Problem]; the rows after it are read as if it had not been there. An
//     error means that the structure of the file is lost: a read error, packed data that are cut or damaged or grow a
//     hundredfold, a quote that is never closed or does not fit, a JSON list whose brackets do not fit. No row begins
//     inside another one.
//   - A row without any data is passed over and counted.
//   - Memory does not grow with the file: a record has a limit, and so has what a packed file may ask for.
//   - No error and no problem holds a cell's value.
//
// A line ends with LF or CR LF (CRs repeated before the LF belong to it), and the last one with the file; a Ctrl-Z
// that ends the file is left out. Lines that are empty or hold spaces only are passed over. A lone CR never ends a
// line: files that have nothing else are refused, outside quotes it is a problem of its row.
//
// The first line of a CSV file is its header. Comments, titles before it and totals behind the rows are left out where
// a [Frame] tells of them, else the rows then have other numbers of cells than the header, which is their problem. A
// warning says what was left out.
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

// The words of the readers, so that other packages need only this one.
type (
	Options   = rows.Options
	Frame     = rows.Frame
	Format    = rows.Format
	Header    = rows.Header
	Row       = rows.Row
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

// Info is what is known of a file and of its reading so far.
type Info struct {
	Path, Format string
	Bytes        int64  // read so far, of the file as it lies on disk
	Rows         int    // read so far
	SHA256       string // of all bytes on disk in hexadecimal; "" unless read to the end
	rows.Found          // by the reader
}

// File reads the rows of one input, in order. It serves one goroutine.
type File struct {
	info   Info // except what meter holds
	format Format
	reader rows.Reader
	window *lines.Window // nil for a workbook
	ahead  []Row         // read and not given yet
	ready  int           // of these, the first ones: the others may be on the last lines, which are left out
	ended  error         // what ended the reading

	disk    *os.File    // nil for standard input
	stat    os.FileInfo // as it was when opened; nil for standard input
	meter   *meter
	closers []io.Closer // what else was opened for a packed file or a workbook
}

// Header names the columns of a CSV file. For JSONL it is empty and open: each row brings its own.
func (f *File) Header() *Header { return f.info.Header }

// Warnings are remarks about the file for people, without values. The list is complete once the file is read to its
// end.
func (f *File) Warnings() []string { return f.info.Warnings }

// Next reads the next row into r and reuses its Cells: to keep them, pass another Row. It returns io.EOF after the last
// row, and a *LostError if the file cannot be read any further.
func (f *File) Next(r *Row) error {
	if len(f.ahead) == 0 && f.ended == nil && f.info.Frame.SkipFooter == 0 {
		return f.next(r)
	}
	if len(f.ReadAhead(1)) == 0 {
		return f.ended
	}
	*r, f.ahead = f.ahead[0], f.ahead[1:]
	f.ready--
	return nil
}

// ReadAhead reads until n rows are there, if there are so many, and returns all that are. Next returns them later as if
// they had not been read, and the error that ended the reading.
func (f *File) ReadAhead(n int) []Row {
	skipped := f.info.Frame.SkipFooter
	for f.ready < n && f.ended == nil {
		var row Row // keeps its cells
		if f.next(&row) != nil {
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

// FirstRows are the cells of the first rows that can be read; none of standard input, which may have to be waited for,
// nor of JSON.
func (f *File) FirstRows() (rows [][]string) {
	const most = 100
	if f.Info().Path == "-" || f.Header().Open {
		return nil
	}
	for _, row := range f.ReadAhead(most) {
		if row.Problem == nil {
			rows = append(rows, row.Cells[:f.Header().Own])
		}
	}
	return rows
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

// How far JSON is read to find its columns: objects, and bytes that stay in memory.
const firstObjects, firstBytes = 1000, 16 << 20

// Columns are the file's own columns. For JSON they are the keys that all of the first objects have.
func (f *File) Columns() []string {
	h := f.Header()
	if !h.Open {
		return h.Names[:h.Own]
	}
	var names []string // of the first row, less those that later ones lack
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

// leaveOut removes the rows on the last lines of the file, or the last rows of a sheet. Where the file is lost, nobody
// knows which these are: all that may be there go.
func (f *File) leaveOut(lines int) {
	if held := len(f.ahead); errors.Is(f.ended, io.EOF) && held > f.ready {
		last := f.ahead[held-1].Line
		if f.window != nil {
			last = f.window.Lines()
		}
		f.info.Warn("the lines from %d on were left out as source.skip_footer says", last-lines+1)
		for f.ready < held && f.ahead[f.ready].Line <= last-lines {
			f.ready++
		}
	}
	f.info.Rows -= len(f.ahead) - f.ready
	f.ahead = f.ahead[:f.ready]
}

// next reads the next row of the table, or what ended the reading.
func (f *File) next(r *Row) error {
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
	// the text is what marks a row of a rejects file as not corrected
	if r.Problem != nil && strings.TrimSpace(r.Text) == "" {
		r.Text = "(nothing that could be read)"
	}
	return nil
}

// endedBy is what Next says of an error of the reader: io.EOF, or a *LostError.
func (f *File) endedBy(err error) error {
	if errors.Is(err, io.EOF) {
		f.info.SHA256 = hex.EncodeToString(f.meter.sum())
		return io.EOF
	}
	lost, known := errors.AsType[*LostError](err)
	if !known {
		text := "the file cannot be read any further: " + rows.Reason(err)
		lost = &LostError{Line: f.window.Number, Text: text, Err: err}
		if told, known := errors.AsType[*OpenError](err); known {
			lost.Hint = told.Hint
		}
	}
	lost.File = f.info.Path
	return lost
}

// Info is what is known of the file and its reading so far.
func (f *File) Info() Info {
	info := f.info
	info.Format, info.Bytes = string(f.format), f.meter.bytes
	return info
}

// Close ends the reading; standard input stays open.
func (f *File) Close() error {
	for _, c := range f.closers {
		c.Close()
	}
	f.closers = nil
	if f.disk == nil {
		return nil
	}
	opened := f.disk
	f.disk = nil
	return opened.Close()
}

// Changed reports whether the file was changed or replaced since it was opened: whether its path leads elsewhere, or its
// size or time is another.
func (f *File) Changed() bool {
	if f.stat == nil {
		return false
	}
	now, err := os.Stat(f.info.Path)
	return err != nil || !os.SameFile(f.stat, now) || now.Size() != f.stat.Size() ||
		!now.ModTime().Equal(f.stat.ModTime())
}

// meter counts and hashes what is read through it. A piece is hashed while the next one is read and parsed.
type meter struct {
	in      io.Reader
	bytes   int64
	hash    hash.Hash
	piece   []byte         // that is being hashed
	hashing sync.WaitGroup // of the piece
	fault   error          // what went wrong with the reading
}

func newMeter(in io.Reader) *meter { return &meter{in: in, hash: sha256.New()} }

// sum is the checksum of all that was read.
func (m *meter) sum() []byte {
	m.hashing.Wait()
	return m.hash.Sum(nil)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	m.bytes += int64(n)
	m.hashing.Wait()
	m.piece = append(m.piece[:0], p[:n]...)
	m.hashing.Go(func() { m.hash.Write(m.piece) })
	if err != nil && !errors.Is(err, io.EOF) {
		m.fault = err
	}
	return n, err
}
