package source

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Open opens a file, or standard input for the name "-", and reads as far as
// the CSV header. Its error is an *OpenError: there is no such regular file,
// it is empty, packed or not UTF-8, or its header does not name each column.
func Open(name string, o Options) (*File, error) {
	if o.MaxRecord <= 0 {
		o.MaxRecord = defaultRecord
	}
	f := &File{path: name}
	refusal := f.find(o)
	if refusal == nil {
		refusal = f.begin(o)
	}
	if refusal != nil {
		f.Close()
		refusal.File = name
		return nil, refusal
	}
	return f, nil
}

// find opens the bytes of the file.
func (f *File) find(o Options) *OpenError {
	if f.path == "-" {
		if o.Stdin == nil {
			return &OpenError{Text: "there is no standard input"}
		}
		if o.Format == "" {
			return &OpenError{Text: "the format of standard input is not known", Hint: "name it with --format csv, tsv or jsonl"}
		}
		f.meter = newMeter(o.Stdin)
		return nil
	}
	// Looked at before it is opened: opening a named pipe waits for a writer.
	stat, err := os.Stat(f.path)
	if err != nil {
		return unreadable(err)
	}
	if !stat.Mode().IsRegular() {
		return &OpenError{Text: "is " + kind(stat.Mode()) + ", not a file", Hint: `only regular files can be read, and standard input by the name "-"`}
	}
	disk, err := os.Open(f.path)
	if err != nil {
		return unreadable(err)
	}
	f.disk, f.stat, f.meter = disk, stat, newMeter(disk)
	return nil
}

func unreadable(err error) *OpenError {
	e := &OpenError{Text: "cannot be opened: " + reason(err), Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		e.Text, e.Hint = "there is no such file", "check the name, and the folder that the command is run in"
	}
	return e
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// begin looks at the first line and makes the reader of the rows.
func (f *File) begin(o Options) *OpenError {
	f.window = newWindow(f.meter, o.MaxRecord)
	line, err := f.peek(f.window.line(0))
	if err == nil {
		err = refuseContent(line)
	}
	if err == nil && bytes.HasPrefix(line, []byte(byteOrderMark)) {
		f.window.pass(len(byteOrderMark))
	}
	if err == nil {
		line, err = f.peek(f.window.first())
	}
	if err != nil {
		return err
	}
	if f.format = o.Format; f.format == "" {
		f.format = detectFormat(f.path, line)
	}
	switch f.format {
	case CSV, TSV:
		return f.beginCSV(o, line)
	case JSONL:
		f.header = &Header{Open: true}
		f.rows = newJSONLines(f.window, o.Paths)
		return nil
	case "xlsx":
		return &OpenError{Text: "Excel workbooks cannot be read yet", Hint: workbookHint}
	}
	return &OpenError{Text: "the format asked for is not known", Hint: "csv, tsv and jsonl can be read"}
}

// peek takes what the window gave for the first line: nothing where the file
// is empty, its beginning where it is too long.
func (f *File) peek(line []byte, err error) ([]byte, *OpenError) {
	switch {
	case errors.Is(err, errTooLong):
		return f.window.bytes(f.window.max), nil
	case err == nil, errors.Is(err, io.EOF):
		return line, nil
	}
	return nil, unreadable(err)
}

func (f *File) beginCSV(o Options, line []byte) *OpenError {
	f.delim = o.Delimiter
	if f.delim == 0 {
		f.delim = detectDelimiter(f.format, line)
	}
	if !validDelimiter(f.delim) {
		return &OpenError{Text: "the delimiter is not a character that can part cells"}
	}
	rows := newCSVRows(f.window, f.delim)
	if e := rows.begin(o); e != nil {
		return e
	}
	f.header, f.rows = rows.header, rows
	return nil
}

func detectFormat(path string, line []byte) Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		return CSV
	case ".tsv", ".tab":
		return TSV
	case ".jsonl", ".ndjson":
		return JSONL
	}
	if bytes.HasPrefix(bytes.TrimLeft(line, " \t\r\n"), []byte("{")) {
		return JSONL
	}
	return CSV
}
