// Package rows holds the words that the readers of all kinds of files share: the [Row] and the [Problem] that it
// may have, the [Options] that say how a file is read, the [Columns] that a header makes, and the errors that end a
// reading.
//
// It is below the readers, and imports none of them.
package rows

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"

	"leadferry/internal/spelling"
)

// Format names the way in which a file holds its rows.
type Format string

// The formats that can be read.
const (
	CSV   Format = "csv"   // RFC 4180, any delimiter
	TSV   Format = "tsv"   // the same with tabs
	JSONL Format = "jsonl" // JSON objects: one a line, or a list of them
	XLSX  Format = "xlsx"  // an Excel workbook, one sheet of it
)

// MaxColumns is how many columns a row may have: as many as in Excel.
const MaxColumns = 16384

// Options say how to read a file; the zero value detects what it can.
type Options struct {
	// Format is found by the name's ending when empty (.csv, .tsv, .tab, .json, .jsonl, .ndjson, .xlsx, .xlsm,
	// without .gz, .zst or .zstd behind it), else by content: a text that begins with a brace, or with a bracket and
	// a brace, is JSON. A file that begins as a workbook is one, whatever its name says. Standard input needs it.
	Format Format
	// Delimiter parts the cells. 0: a tab for TSV, and for CSV whichever of comma, semicolon, tab and bar parts the
	// header into the most cells.
	Delimiter rune
	// NoQuotes says that quotes are text like any other, so that each line is a row. Rejects files have quotes all
	// the same.
	NoQuotes bool
	// Backslash says that a backslash is before a quote or a backslash in quotes, as MySQL writes them.
	// Doubled quotes are still one.
	Backslash bool
	Frame
	// Null are the cells that count as empty, beside blank ones.
	Null []string
	// Encoding is the label of the text's encoding as the WHATWG Encoding Standard has it, in any case. A byte
	// order mark beats it; without both the text must be UTF-8. x-user-defined and the encodings that the standard only
	// replaces are refused. Workbooks do not need it.
	Encoding string
	// Sheet names the sheet of a workbook to read; "" is the first one that is not hidden.
	Sheet string
	// List names the member of a JSON document that holds the rows; "" is the only list of objects.
	List string
	// NoHeader says that the first line is a row already; Columns names the columns then.
	NoHeader bool
	Columns  []string
	// Paths are the names of nested JSONL values to find, as "a.b" or "a.0".
	Paths []string
	// MaxRecord is how many bytes of UTF-8 a record may have with its line end; 0 means 1 MiB. A record of CSV with
	// quotes may have 17 times as many, for one long cell.
	MaxRecord int
	// Proven asks for the checksums of packed files first, which are behind their data: what is damaged unpacks to
	// other rows up to there. Files that were cut and standard input are read as far as they go anyway.
	Proven bool
	// Stdin is what the file name "-" reads.
	Stdin io.Reader
}

// Frame is what surrounds a table. No file of JSON has one, nor has a rejects file.
type Frame struct {
	// SkipRows are the lines before the header, or before the first row where there is none; SkipFooter those at
	// the end of the file. Of a sheet they are its rows, blank ones too, up to the last that holds something.
	SkipRows, SkipFooter int
	// Footer matches the first row of what is behind the table; nil: nothing does.
	Footer *regexp.Regexp
	// Comment begins lines that are passed over; "": none are.
	Comment string
}

// OfRejects are the options for a rejects file, which is ours: what the mapping says of its own file is not true of it.
func (o Options) OfRejects() Options {
	o.Backslash, o.NoQuotes, o.NoHeader, o.Frame = false, false, false, Frame{}
	return o
}

// Header names the cells of rows. It is never changed, so that rows of one shape share it and callers may remember
// it by its pointer.
type Header struct {
	Names []string // Names[:Own] are the row's own columns, Names[Own:] nested paths
	Own   int
	Open  bool // JSONL: other rows may have other names

	Rejects bool // it is that of a rejects file
}

// Row is one data record of a file.
type Row struct {
	Header  *Header
	Cells   []string // one for each name of the header, used again by who reads the next row
	Line    int      // physical line on which the row starts, from 1; XLSX: the sheet's row
	Number  int      // number among the data rows of its file, from 1
	Size    int      // about how many bytes it takes
	Raw     string   // JSON: the line as read, without a byte order mark, or the element without line breaks
	OneLine bool     // no cell holds a line break
	Repeats bool     // it is the header once more
	Ends    bool     // what is behind the table begins with it
	HasLead bool     // a rejects file says that its lead exists, or may exist
	// a rejects file holds what a person found out about the row, which was in doubt
	Answered bool
	Problem  *Problem // why the row cannot be used, or nil
	Text     string   // of a row that could not be taken apart, with \xNN for bytes that are no text
	Faults   []Fault  // XLSX: cells that cannot be taken, which matters where their columns are used
}

// Clear empties a row for the next record, whose header is this one for now. The room of its cells is kept.
func (r *Row) Clear(h *Header) { *r = Row{Header: h, Cells: r.Cells[:0]} }

// Reader reads the rows of a file.
type Reader interface {
	// Next reads the next row that holds data into r, which is clear. Its error is io.EOF after the last one, a
	// *LostError, or one of reading, and ends the reading.
	Next(r *Row) error
}

// Fault is a cell that cannot be taken as it is written.
type Fault struct {
	Column int // among the row's cells
	Problem
}

// Problem is the reason why a row cannot be used. Its cells are empty then.
type Problem struct {
	// "quote", "columns", "line_end", "encoding", "nul", "too_long", "json", "duplicate_key", "uncorrected", "cell"
	// (XLSX)
	Code string
	Text string // for people, without values
	Hint string // what they can do, or ""
}

// Flaw is a Problem; hint may be "".
func Flaw(code, text, hint string) *Problem { return &Problem{code, text, hint} }

// String is the text with the hint behind it.
func (p *Problem) String() string {
	if p.Hint == "" {
		return p.Text
	}
	return p.Text + " (hint: " + p.Hint + ")"
}

// TooLong is the problem of a row with more bytes than a record may have.
func TooLong(limit int) *Problem {
	return Flaw("too_long", fmt.Sprintf("the row has more than %d bytes", limit), "")
}

// Found is what a reader has found out about its file so far, beside the rows.
type Found struct {
	Header    *Header  // of all rows; JSON: empty and open, as each row brings its own
	Frame     Frame    // around the rows
	Delimiter rune     // between the cells of a line; 0: there is none
	Encoding  string   // label of the text's encoding, as "utf-8"; "" for a workbook
	Other     bool     // an encoding other than UTF-8 was named, whatever a byte order mark said
	Blank     int      // rows without any data that were passed over; they have no number
	Sheets    []string // of a workbook, in quotes: others that hold something
	Warnings  []string // for people, without values
}

// Warn adds to what people should know about the file.
func (f *Found) Warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// Cleared gives n empty cells, in the room that is handed back where it is large enough.
func Cleared(room []string, n int) []string {
	if cap(room) < n {
		return make([]string, n)
	}
	room = room[:n]
	clear(room)
	return room
}

// OpenError says why a file cannot be an input, before any of its rows is read.
type OpenError struct {
	File string
	Line int // 0: the file as a whole
	Text string
	Hint string // what the user can do, or ""
	Err  error  // the cause, or nil
}

// Refuse is the error of a file as a whole, and what the user can do.
func Refuse(text, hint string) *OpenError { return RefuseAt(0, text, hint) }

// RefuseAt is the error of a file by one of its lines.
func RefuseAt(line int, text, hint string) *OpenError {
	return &OpenError{Line: line, Text: text, Hint: hint}
}

// NoHeader begins what is said of a header that is a row with a problem, or none.
const NoHeader = "the header cannot be read: "

// Error gives the place and the text, and the hint on a line of its own.
func (e *OpenError) Error() string {
	return spelling.Sentence(e.File, e.Line, 0, e.Text, e.Hint)
}

// Unwrap gives the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// LostError says that a file's structure is lost from a line on: the rows after it cannot be known, and the run must
// stop.
type LostError OpenError

// Error gives the place and the text.
func (e *LostError) Error() string { return spelling.Sentence(e.File, e.Line, 0, e.Text, "") }

// Unwrap gives the cause.
func (e *LostError) Unwrap() error { return e.Err }

// Reason is an error's cause without the path that goes before it.
func Reason(err error) string {
	if told, is := errors.AsType[*OpenError](err); is {
		return told.Text
	}
	if at, is := errors.AsType[*fs.PathError](err); is {
		return at.Err.Error()
	}
	return err.Error()
}
