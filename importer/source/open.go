package source

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"leadferry/importer/source/delimited"
	"leadferry/importer/source/jsonrows"
	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
	"leadferry/importer/source/xlsx"
	"leadferry/internal/disk"
	"leadferry/internal/spelling"
)

const (
	defaultRecord = 1 << 20  // bytes a record may have
	sniffBytes    = 512      // bytes to look at to find the kind of a file
	maxKept       = 64 << 20 // bytes of a workbook read from standard input
)

// Open opens a file, or standard input for the name "-". It reads a text up to its header, JSON up to its list of rows,
// and a workbook to its end. Its error is an *OpenError: the file is missing, is not a regular file, is damaged, has
// another encoding, or holds no rows that can be read.
func Open(name string, o Options) (*File, error) {
	f := &File{info: Info{Path: name}}
	o.MaxRecord = cmp.Or(o.MaxRecord, defaultRecord)
	err := f.find(o)
	if err == nil {
		err = f.open(o)
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	refusal, known := errors.AsType[*OpenError](err)
	if !known {
		refusal = unreadable(err)
	}
	refusal.File = f.info.Path
	return nil, refusal
}

func unreadable(err error) *OpenError {
	e := &OpenError{Text: "cannot be read: " + rows.Reason(err), Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Text, e.Hint = "there is no such file", "check the name, and the folder that the command is run in"
	case disk.Held(err) != "":
		e.Text, e.Hint = "cannot be read: another program has it open and keeps it to itself", disk.Held(err)
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "check who may read the file, and the folders it is in"
	}
	return e
}

func (f *File) find(o Options) error {
	if f.info.Path == "-" {
		if o.Format == "" {
			return rows.Refuse("is standard input, which has no name to tell its format by",
				"add --format csv, tsv, jsonl or xlsx, or source.format in the mapping")
		}
		f.meter = newMeter(o.Stdin, o)
		return nil
	}
	// Stat comes before Open, because opening a named pipe waits for a writer.
	stat, err := os.Stat(f.info.Path)
	if err != nil {
		return err
	}
	if !stat.Mode().IsRegular() {
		text := "is a device, a pipe or a socket, not a file"
		if stat.IsDir() {
			text = "is a directory, not a file"
		}
		return rows.Refuse(text, `only regular files can be read, and standard input by the name "-"`)
	}
	opened, err := os.Open(f.info.Path)
	if err != nil {
		return err
	}
	f.disk, f.stat, f.meter, f.closers = opened, stat, newMeter(opened, o), []io.Closer{opened}
	return nil
}

// open finds the format and makes the reader. Without a format in the options, a file of any name may be a workbook.
func (f *File) open(o Options) error {
	switch f.format = o.Format; f.format {
	case CSV, TSV, JSONL, XLSX:
	case "":
		f.format = namedFormat(f.info.Path)
	default:
		return rows.Refuse(fmt.Sprintf("the format %q is not known", string(o.Format)),
			"csv, tsv, jsonl and xlsx can be read")
	}
	in, head, err := sniff(f.meter)
	if err != nil {
		return err
	}
	if xlsx.IsArchive(head) && (o.Format == "" && f.disk != nil || o.Format == XLSX) {
		return f.openWorkbook(in, o)
	}
	if packing := packingOf(head); packing != "" {
		if o.Proven && f.disk != nil {
			err = prove(io.NewSectionReader(f.disk, 0, 1<<62), packing)
		}
		if err == nil {
			in, head, err = f.unpack(in, packing)
		}
	}
	if err = cmp.Or(err, refuseContent(head)); err != nil {
		return err
	}
	f.window, err = lines.Decode(in, o, &f.info.Found)
	switch {
	case f.format == XLSX && (err != nil || !delimited.BeginsRejects(f.window)):
		return rows.Refuse("is not an Excel workbook", "if it is text, name its format: --format csv, tsv or jsonl")
	case f.format == XLSX: // rejects of a workbook are CSV, although the mapping says xlsx
		f.format = CSV
	case err != nil:
		return err
	}
	return f.openText(o)
}

// sniff returns the beginning of a stream.
func sniff(in io.Reader) (stream *bufio.Reader, head []byte, err error) {
	// The buffer is small, so that longer reads go around it without a copy.
	stream = bufio.NewReaderSize(in, sniffBytes)
	head, err = stream.Peek(sniffBytes)
	if len(head) > 0 || errors.Is(err, io.EOF) {
		err = nil // a later read reports the error
	}
	return stream, head, err
}

// openText makes the reader of a text. If the format is not known, the first line that is not blank shows it.
func (f *File) openText(o Options) (err error) {
	_, _ = f.window.First() // skips blank lines; a later read reports an error
	head := f.window.Bytes(sniffBytes)
	if err := refuseContent(head); err != nil { // again: text in UTF-16 is readable only now
		return err
	}
	switch isJSON := beginsJSON().Match(head); {
	case f.format == "" && !isJSON:
		f.format = CSV
	case f.format == "":
		f.format = JSONL
	case o.Format == "" && f.format != JSONL && isJSON:
		return rows.Refuse("holds JSON, though its name says "+string(f.format),
			"add --format jsonl; if its header begins with a brace, --format "+string(f.format))
	}
	o.Lines = o.Format == JSONL || linesNamed().MatchString(f.info.Path)
	o.Format = f.format
	if f.format != JSONL {
		if delimited.BeginsRejects(f.window) {
			o = o.OfRejects()
		}
		f.reader, err = delimited.Open(f.window, o, &f.info.Found)
		return err
	}
	if o.Frame != (Frame{}) || o.Backslash || o.NoHeader {
		return rows.Refuse("is JSON, which has no header, and no lines before or after its rows",
			"take header, skip_rows, skip_footer, footer, comment and escape out of source in the mapping")
	}
	f.reader, err = jsonrows.Open(f.window, o, &f.info.Found)
	return err
}

// openWorkbook reads a file twice, first for its checksum. It keeps standard input in memory, to read it in any order.
func (f *File) openWorkbook(stream io.Reader, o Options) error {
	f.format = XLSX
	if o.Comment != "" {
		return rows.Refuse("is a workbook, in which no rows are comments", "take comment out of source in the mapping")
	}
	var in io.ReaderAt = f.disk
	var size int64
	var err error
	if f.disk != nil {
		f.meter = newMeter(io.NewSectionReader(f.disk, 0, 1<<62), o)
		size, err = io.Copy(io.Discard, f.meter)
	} else {
		var kept []byte
		kept, err = io.ReadAll(io.LimitReader(stream, maxKept+1))
		if len(kept) > maxKept {
			return rows.Refuse(fmt.Sprintf("is a workbook of more than %d MiB", maxKept>>20),
				"only smaller ones can come through standard input: name the file")
		}
		in, size = bytes.NewReader(kept), int64(len(kept))
	}
	if err != nil {
		return err
	}
	book, err := xlsx.Open(in, size, o, &f.info.Found)
	if err != nil {
		return err
	}
	f.closers, f.reader = append(f.closers, book), book
	return nil
}

// linesNamed matches the name of a file that has a JSON object on each line.
var linesNamed = spelling.Form(`(?i)\.(?:jsonl|ndjson)(?:\.|$)`)

// namedFormat returns the format by the ending of the name, without the ending of a packed file; "" if none is known.
func namedFormat(name string) Format {
	name = strings.ToLower(name)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, packed)
	}
	return map[string]Format{
		".csv": CSV, ".tsv": TSV, ".tab": TSV, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL, ".xlsx": XLSX,
		".xlsm": XLSX,
	}[filepath.Ext(name)]
}

// beginsJSON matches a text that begins with an object or with a list of objects.
var beginsJSON = spelling.Form(`^[ \t\r\n]*(?:\{|\[[ \t\r\n]*(?:\{|$))`)

// NewStream returns a reader of in that can be closed while a Read waits. Its goroutine ends with in, or the process.
func NewStream(in io.Reader) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	return r
}
