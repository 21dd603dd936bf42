package source

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"strings"
)

// File reads the rows of one input, in order. It serves one goroutine.
type File struct {
	path   string
	format Format
	delim  rune
	header *Header
	rows   rowReader
	window *window
	meter  *meter
	count  int
	ahead  []Row // read by Hold and not given yet
	over   error // what ended the reading ahead
	blanks *int  // rows without any data, which its reader counts

	encoding string
	other    bool // another encoding than UTF-8 was named
	warnings []string
	closers  []io.Closer // what else was opened for a packed file or a workbook

	disk    *os.File    // nil for standard input
	stat    os.FileInfo // as it was when opened
	changed bool
	sum     string
}

// rowReader reads one row a call, and says whether there was one with io.EOF
// or what ended the reading.
type rowReader interface {
	next(r *Row) error
}

// Header names the columns of a CSV file. For JSONL it is empty and open: each
// row brings its own.
func (f *File) Header() *Header { return f.header }

// Delimiter is the character between the cells of a CSV file; 0 for JSONL.
func (f *File) Delimiter() rune { return f.delim }

// Next reads the next row into r, whose Cells it uses again: who keeps them gives
// it another Row. It returns io.EOF after the last one, and a
// *LostError when the file cannot be read any further.
func (f *File) Next(r *Row) error {
	if len(f.ahead) > 0 {
		*r, f.ahead = f.ahead[0], f.ahead[1:]
		return nil
	}
	if f.over != nil {
		return f.over
	}
	return f.next(r)
}

// Hold reads ahead until n rows have come, and returns how many have. Next gives them as
// if they had not been read, and what ended the reading, if anything did.
func (f *File) Hold(n int) int {
	for len(f.ahead) < n && f.over == nil {
		var row Row // keeps its cells
		if f.over = f.next(&row); f.over == nil {
			f.ahead = append(f.ahead, row)
		}
	}
	return len(f.ahead)
}

// Held are the rows that Hold has read and Next has not given yet.
func (f *File) Held() []Row { return f.ahead }

func (f *File) next(r *Row) error {
	*r = Row{Header: f.header, Cells: r.Cells[:0]}
	err := f.rows.next(r)
	if err == nil {
		f.count++
		r.Number = f.count
		if r.Problem != nil && strings.TrimSpace(r.Text) == "" { // else a rejects file could not say that it is one
			r.Text = "(nothing that could be read)"
		}
		return nil
	}
	if !errors.Is(err, io.EOF) {
		return f.lost(err)
	}
	f.sum = hex.EncodeToString(f.meter.hash.Sum(nil))
	f.compare()
	return io.EOF
}

// lost makes a *LostError of what ended the reading, or completes it.
func (f *File) lost(err error) error {
	var lost *LostError
	if errors.As(err, &lost) {
		lost.File = f.path
		return lost
	}
	line := 0
	if f.window != nil {
		line = f.window.number
	}
	return &LostError{File: f.path, Line: line, Text: "the file cannot be read any further: " + reason(err), Err: err}
}

// warn adds to what people should know about the file.
func (f *File) warn(texts ...string) { f.warnings = append(f.warnings, texts...) }

// Warnings are remarks about the file for people, without values. The list is
// complete once the file is read to its end.
func (f *File) Warnings() []string { return f.warnings }

// Info tells what is known of the file and its reading so far.
func (f *File) Info() Info {
	info := Info{
		Path: f.path, Format: string(f.format), Bytes: f.meter.bytes,
		Encoding: f.encoding, Other: f.other, Rows: f.count, Blank: *f.blanks, SHA256: f.sum, Changed: f.changed,
	}
	if f.stat != nil {
		info.Size = f.stat.Size()
	}
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
	if f.sum == "" {
		f.compare()
	}
	disk := f.disk
	f.disk = nil
	return disk.Close()
}

// compare looks, when the reading ends, whether the path still leads to
// the file that was opened, of the same size and time.
func (f *File) compare() {
	if f.disk == nil {
		return
	}
	now, err := os.Stat(f.path)
	if err != nil || !os.SameFile(f.stat, now) || now.Size() != f.stat.Size() || !now.ModTime().Equal(f.stat.ModTime()) {
		f.changed = true
	}
}

// meter counts and hashes what is read through it.
type meter struct {
	in    io.Reader
	bytes int64
	hash  hash.Hash
	fault error // what went wrong with the reading
}

func newMeter(in io.Reader) *meter { return &meter{in: in, hash: sha256.New()} }

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	m.bytes += int64(n)
	m.hash.Write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		m.fault = err
	}
	return n, err
}

// reason is an error's cause without the path that goes before it.
func reason(err error) string {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}
