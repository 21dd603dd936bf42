// Package rows holds the types that the readers of all formats share: the [Row] and its [Problem], the [Options] for
// reading a file, the [Columns] of a header, and the errors that end a reading.
//
// All readers import it. It imports no reader.
package rows

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"

	"leadferry/internal/spelling"
)

// Format says how a file holds its rows.
type Format string

// The formats that can be read.
const (
	CSV   Format = "csv"   // RFC 4180, any delimiter
	TSV   Format = "tsv"   // the same with tabs
	JSONL Format = "jsonl" // JSON objects: one on each line, or a list of them
	XLSX  Format = "xlsx"  // one sheet of an Excel workbook
)

// MaxColumns is how many columns a row may have, as in Excel.
const MaxColumns = 16384

// Options say how to read a file; the zero value detects what it can.
type Options struct {
	// Format, if empty, is found by the ending of the name (.csv, .tsv, .tab, .json, .jsonl, .ndjson, .xlsx, .xlsm,
	// also followed by .gz, .zst or .zstd), else by content: a text that begins with a brace, or with a bracket and a
	// brace, is JSON. A file that begins like a workbook is one, whatever its name says. Standard input needs Format.
	Format Format
	// Delimiter separates the cells. 0: a tab for TSV, for CSV the one of , ; tab and | with most cells in the header.
	Delimiter rune
	// NoQuotes says that quotes are ordinary text, so that each line is a row. It does not apply to rejects files.
	NoQuotes bool
	// Backslash says that in quotes a backslash escapes a quote or itself, as in MySQL. A doubled quote is one, too.
	Backslash bool
	Frame
	// Null are the texts of cells that count as empty, besides blank cells.
	Null []string
	// Encoding is a label of the WHATWG Encoding Standard in any case. A byte order mark overrides it. Without both the
	// text must be UTF-8. x-user-defined and the encodings that the standard maps to replacement are refused.
	Encoding string
	// Sheet names the sheet of a workbook to read; "" means the first that is not hidden.
	Sheet string
	// List names the member of a JSON document that holds the rows; "" means the only list of objects.
	List string
	// Lines says that JSON is known to have one row a line: one object is then a row, unless it is clearly a document.
	Lines bool
	// NoHeader says that the first line is a row; Columns then names the columns.
	NoHeader bool
	Columns  []string
	// Paths are the names of nested JSON values to find, for example "a.b" or "a.0".
	Paths []string
	// MaxRecord is how many bytes of UTF-8 a record may have, including its line end; 0 means 1 MiB. A CSV record with
	// quotes may have 17 times as many, for one long cell.
	MaxRecord int
	// Proven checks a packed file before its rows are read: the checksum is at the end, and damaged data may unpack to
	// wrong rows before it. It does not refuse a file that was cut, and does not check standard input.
	Proven bool
	NoSum  bool // the checksum of the file is not wanted
	// Stdin is read for the file name "-".
	Stdin io.Reader
}

// Frame is what surrounds a table. JSON files and rejects files have none.
type Frame struct {
	// SkipRows counts the lines before the header, or before the first row if there is no header; SkipFooter those at
	// the end of the file. In a sheet both count rows, blank ones too, up to the last row that holds something.
	SkipRows, SkipFooter int
	// Footer matches the first row after the table; nil: nothing follows it.
	Footer *regexp.Regexp
	// Comment is how lines begin that are skipped; "": none are skipped.
	Comment string
}

// OfRejects returns the options for a rejects file: leadferry always writes it in the same form.
func (o Options) OfRejects() Options {
	o.Backslash, o.NoQuotes, o.NoHeader, o.Frame = false, false, false, Frame{}
	return o
}

// Header names the cells of rows. It never changes: rows of one shape share it, and its pointer may be a map key.
type Header struct {
	Names []string // Names[:Own] are the row's own columns, Names[Own:] are nested paths
	Own   int
	Open  bool // JSON: other rows may have other names

	Rejects bool // of a rejects file
}

// Row is one data record of a file.
type Row struct {
	Header  *Header
	Cells   []string // one for each name of the header; the next row uses the slice again
	Line    int      // physical line on which the row starts, from 1; XLSX: the sheet's row
	Number  int      // number among the data rows of its file, from 1
	Size    int      // about how many bytes the row takes in memory
	Raw     string   // JSON: the line as read, without byte order mark, or the list's element without white space
	OneLine bool     // CSV: no cell holds a line break
	Repeats bool     // the row repeats the header
	Ends    bool     // the row is the first one after the table: it matches Frame.Footer
	Noted            // what a rejects file says about the row
	Problem *Problem // why the row cannot be used, or nil
	Text    string   // the whole row, if it has a Problem or Faults; \xNN for bytes that are not text
	Faults  []Fault  // XLSX: cells that cannot be used; they matter only if their columns are used
}

// Noted is what a rejects file says about a row.
type Noted struct {
	Outcome   string // how the row ended, if its lead exists or may exist then; else ""
	Answered  bool   // a person has filled in leadferry_lead_id
	Key       string // the row's effective key, before a person corrected it
	FormerKey string // the same, unless a person has emptied leadferry_outcome
}

// Clear empties a row for the next record and sets its header. It keeps the memory of the cells.
func (r *Row) Clear(h *Header) { *r = Row{Header: h, Cells: r.Cells[:0]} }

// Values returns the cells under these names, in the row's order.
func (r *Row) Values(names []string) (values []string) {
	for i, cell := range r.Cells {
		if slices.Contains(names, r.Header.Names[i]) {
			values = append(values, cell)
		}
	}
	return values
}

// Reader reads the rows of a file.
type Reader interface {
	// Next reads the next row that holds data into r, which must be clear. An error ends the reading: io.EOF after the
	// last row, a *LostError, or a read error.
	Next(r *Row) error
}

// Fault is a cell that cannot be used, and why.
type Fault struct {
	Column int // index among the row's cells
	Problem
}

// Problem says why a row cannot be used. The row's cells are empty then.
type Problem struct {
	// "quote", "columns", "line_end", "encoding", "nul", "too_long", "json", "duplicate_key", "uncorrected", "cell"
	Code string
	Text string // for people, without values
	Hint string // what they can do, or ""
}

// Flaw makes a Problem; hint may be "".
func Flaw(code, text, hint string) *Problem { return &Problem{code, text, hint} }

// String returns the text, followed by the hint.
func (p *Problem) String() string {
	if p.Hint == "" {
		return p.Text
	}
	return p.Text + " (hint: " + p.Hint + ")"
}

// TooLong returns the problem of a row with more bytes than a record may have.
func TooLong(limit int) *Problem {
	return Flaw("too_long", fmt.Sprintf("the row has more than %d bytes", limit), "")
}

// Found is what a reader knows about its file so far, besides the rows.
type Found struct {
	Header    *Header  // of all rows; JSON: empty and open, because each row has its own
	Frame     Frame    // around the rows
	Delimiter rune     // between the cells of a line; 0: there is none
	Encoding  string   // label of the text's encoding, for example "utf-8"; "" for a workbook
	Other     bool     // the options name an encoding other than UTF-8, even if a byte order mark overrides it
	Blank     int      // how many rows without data were skipped; they have no number
	Sheets    []string // quoted names of the workbook's other sheets that hold something
	Warnings  []string // for people, without values
}

// Warn adds a remark about the file for people.
func (f *Found) Warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// Cleared returns n empty cells. It reuses the slice room if that is large enough.
func Cleared(room []string, n int) []string {
	room = slices.Grow(room[:0], n)[:n]
	clear(room)
	return room
}

// OpenError says why a file cannot be an input, before any row is read.
type OpenError struct {
	File string
	Line int // 0: the file as a whole
	Text string
	Hint string // what the user can do, or ""
	Err  error  // the cause, or nil
}

// Refuse returns the error about a file as a whole. hint says what the user can do, or is "".
func Refuse(text, hint string) *OpenError { return RefuseAt(0, text, hint) }

// RefuseAt returns the error about one line of a file.
func RefuseAt(line int, text, hint string) *OpenError {
	return &OpenError{Line: line, Text: text, Hint: hint}
}

// NoHeader begins the message about a header that is missing or cannot be used.
const NoHeader = "the header cannot be read: "

// Error returns the place and the text, and the hint on a line of its own.
func (e *OpenError) Error() string { return spelling.Sentence(e.File, e.Line, 0, e.Text, e.Hint) }

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// LostError says that a file's structure is lost from a line on: the rows after it are unknown, and the run must stop.
type LostError OpenError

// Error returns the place and the text.
func (e *LostError) Error() string { return spelling.Sentence(e.File, e.Line, 0, e.Text, "") }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// Reason returns an error's text without the path before it.
func Reason(err error) string {
	if refusal, is := errors.AsType[*OpenError](err); is {
		return refusal.Text
	}
	if at, is := errors.AsType[*fs.PathError](err); is {
		return at.Err.Error()
	}
	return err.Error()
}
