package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a file, or standard input for the name "-", and reads as far as
// is needed to know what it holds: the header and 64 KiB, or up to the list of
// rows in a JSON document. Its error is an *OpenError: there is no such regular
// file, it holds no rows that can be read, its encoding is another one or its
// header does not name each column.
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
			return &OpenError{Text: "there is no standard input", Hint: "name a file"}
		}
		if o.Format == "" {
			return &OpenError{Text: "the format of standard input is not known", Hint: "name it with --format csv, tsv, jsonl or xlsx"}
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
	e := &OpenError{Text: "cannot be read: " + reason(err), Err: err}
	var packed *packedError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Text, e.Hint = "there is no such file", "check the name, and the folder that the command is run in"
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "check who may read the file, and the folders it is in"
	case errors.As(err, &packed):
		e.Text, e.Hint = packed.say()
		e.Text = "cannot be read: " + e.Text
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

// begin finds out what the file holds and makes the reader of the rows. A
// format that the options name must be true; one that only the name says may
// turn out to be that of a workbook.
func (f *File) begin(o Options) *OpenError {
	switch o.Format {
	case "", CSV, TSV, JSONL, XLSX:
	default:
		return &OpenError{Text: fmt.Sprintf("the format %q is not known", string(o.Format)), Hint: "csv, tsv, jsonl and xlsx can be read"}
	}
	if f.format = o.Format; f.format == "" {
		f.format = namedFormat(f.path)
	}
	if f.disk == nil && f.format == XLSX {
		return f.beginXLSX(o)
	}
	in, refusal := sniff(f.meter)
	if refusal != nil {
		return refusal
	}
	if isContainer(in.head) && f.disk != nil && (o.Format == "" || o.Format == XLSX) {
		return f.beginWorkbook(o)
	}
	if kind := packing(in.head); kind != "" {
		in, refusal = f.unpack(in, kind)
	}
	if refusal == nil {
		refusal = refuseContent(in.head)
	}
	if refusal == nil && f.format == XLSX {
		refusal = &OpenError{Text: "is not an Excel workbook", Hint: "if it is text, name its format: --format csv, tsv or jsonl"}
	}
	if refusal == nil {
		refusal = f.decode(in, o)
	}
	if refusal == nil {
		refusal = f.beginText(o)
	}
	return refusal
}

// beginWorkbook reads a workbook, whatever its name says, from its beginning
// again. It tells what else the file may be.
func (f *File) beginWorkbook(o Options) *OpenError {
	if _, err := f.disk.Seek(0, io.SeekStart); err != nil {
		return unreadable(err)
	}
	f.format, f.meter = XLSX, newMeter(f.disk)
	return f.beginXLSX(o)
}

// beginText makes the reader of the rows of a text.
func (f *File) beginText(o Options) *OpenError {
	line, err := f.peek(f.window.line(0))
	if err == nil {
		err = refuseCR(line)
	}
	if err == nil {
		line, err = f.peek(f.window.first())
	}
	if err == nil {
		err = refuseMarkup(line)
	}
	if err != nil {
		return err
	}
	if f.format == "" {
		f.format = textFormat(line)
	}
	if f.format == JSONL {
		return f.beginJSON(o)
	}
	return f.beginCSV(o)
}

// peek takes what the window gave for the first line: nothing where the file
// is empty, its beginning where it is too long.
func (f *File) peek(line []byte, err error) ([]byte, *OpenError) {
	switch {
	case errors.Is(err, errTooLong):
		return f.window.bytes(f.window.limit), nil
	case err == nil, errors.Is(err, io.EOF):
		return line, nil
	}
	return nil, unreadable(err)
}

func (f *File) beginCSV(o Options) *OpenError {
	separator := f.separatorLine()
	switch {
	case o.Delimiter != 0:
		f.delim = o.Delimiter
	case separator != 0:
		f.delim = separator
	case f.format == TSV:
		f.delim = '\t'
	case f.window.beginsRejects():
		f.delim = f.window.rejectsDelimiter()
	default:
		text, whole := f.window.peek(delimiterBytes)
		f.delim = detectDelimiter(text, whole, o)
	}
	if !validDelimiter(f.delim) {
		return &OpenError{Text: "the delimiter is not a character that can part cells", Hint: "any character but quotes, line ends and NUL can"}
	}
	rows := newCSVRows(f.window, f.delim, o)
	if e := rows.begin(o); e != nil {
		return e
	}
	f.warn(rows.warnings...)
	f.header, f.rows, f.blanks = rows.header, rows, &rows.blanks
	return nil
}
