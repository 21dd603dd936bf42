// Package source turns input files into rows: CSV, TSV, JSON and Excel
// workbooks, packed with gzip or zstd or not, in any encoding of the web.
//
// It is the first station of a row's way: a [File] reads, the mapping judges.
// What it promises:
//
//   - Every cell is text as the file holds it: nothing is trimmed, rounded or
//     taken for a number, and bytes inside quotes are kept exactly. The cells
//     of a workbook are the text that Excel shows.
//   - Nothing is guessed that could change a cell. The encoding is what a byte
//     order mark says, else what the options say, else UTF-8. Bytes that have
//     no meaning in it make a [Problem] of their row; U+FFFD comes out only
//     where the file holds it.
//   - A row knows the physical line that it starts on and its number.
//   - A row that cannot be read is data, a [Problem]; the rows after it are
//     read as if it had not been there. An error means that the structure of
//     the file is lost: a read error, packed data that are cut or damaged or
//     grow a hundredfold, a quote that is never closed or does not fit, a JSON
//     list whose brackets do not fit. No row begins inside another one.
//   - A row without any data is passed over and counted.
//   - Memory does not grow with the file: a record has a limit, and so has what
//     a packed file may ask for.
//   - No error and no problem holds a cell's value.
//
// A line ends with LF or CR LF (CRs repeated before the LF belong to it), and
// the last one with the file; a Ctrl-Z that ends the file is left out. Lines
// that are empty or hold spaces only are passed over. A lone CR never ends a
// line: files that have nothing else are refused, outside quotes it is a
// problem of its row.
//
// The first line of a CSV file is its header, behind a line "sep=;" as Excel
// writes it. Comments and titles before it are not looked for: the rows then
// have other numbers of cells than the header, which is their problem.
package source

import "io"

// Format names the way in which a file holds its rows.
type Format string

// The formats that can be read.
const (
	CSV   Format = "csv"   // RFC 4180, any delimiter
	TSV   Format = "tsv"   // the same with tabs
	JSONL Format = "jsonl" // JSON objects: one a line, or a list of them
	XLSX  Format = "xlsx"  // an Excel workbook, one sheet of it
)

const (
	defaultRecord = 1 << 20 // bytes a record
	quotedRecords = 16      // records that a cell in quotes may have room for
	maxColumns    = 16384   // columns a row, as many as Excel has
	maxDepth      = 64      // levels of a JSON object
)

// Options say how to read a file; the zero value detects what it can.
type Options struct {
	// Format is found by the name's ending when empty (.csv, .tsv, .tab, .json,
	// .jsonl, .ndjson, .xlsx, .xlsm, without .gz, .zst or .zstd behind it), else
	// by content: a text that begins with a brace, or with a bracket and a
	// brace, is JSON. A file that begins as a workbook is one, whatever its name
	// says. Standard input needs it.
	Format Format
	// Delimiter parts the cells. 0: what a first line "sep=;" says, else a tab
	// for TSV, and for CSV whichever of comma, semicolon, tab and bar splits
	// most of the first 64 KiB into as many cells as the header.
	Delimiter rune
	// NoQuotes says that quotes are text like any other, so that each line is a
	// row. Rejects files have quotes all the same.
	NoQuotes bool
	// Null are the cells that count as empty, beside blank ones.
	Null []string
	// Encoding is the label of the text's encoding as the WHATWG Encoding
	// Standard has it, in any case. A byte order mark beats it; without both the
	// text must be UTF-8. ISO-2022-JP, x-user-defined and the encodings that the
	// standard only replaces are refused. Workbooks do not need it.
	Encoding string
	// TrustEncoding says that rows which are valid UTF-8, beyond ASCII, are text of
	// the Encoding all the same, where that has one byte a character.
	TrustEncoding bool
	// Sheet names the sheet of a workbook to read; "" is the first one that is not hidden.
	Sheet string
	// NoHeader says that the first line is a row already; Columns names the columns then.
	NoHeader bool
	Columns  []string
	// Paths are the names of nested JSONL values to find, as "a.b" or "a.0".
	Paths []string
	// MaxRecord is how many bytes of UTF-8 a record may have with its line end; 0 means
	// 1 MiB. A record of CSV with quotes may have 17 times as many, for one long cell.
	MaxRecord int
	// Stdin is what the file name "-" reads.
	Stdin io.Reader
}

// Header names the cells of rows. It is never changed, so that rows of one
// shape share it and callers may remember it by its pointer.
type Header struct {
	Names []string // Names[:Own] are the row's own columns, Names[Own:] nested paths
	Own   int
	Open  bool // JSONL: other rows may have other names
}

// Row is one data record of a file.
type Row struct {
	Header  *Header
	Cells   []string // one for each name of the header; see [File.Next]
	Line    int      // physical line on which the row starts, from 1; XLSX: the sheet's row
	Number  int      // number among the data rows of its file, from 1
	Size    int      // about how many bytes it takes
	Raw     string   // JSON: the line as read, without a byte order mark, or the element without line breaks
	Repeats bool     // it is the header once more
	Doubted bool     // a rejects file says that it was in doubt: its lead may exist
	Problem *Problem // why the row cannot be used, or nil
	Text    string   // of a row that could not be taken apart, with \xNN for bytes that are no text
	Faults  []Fault  // XLSX: cells that cannot be taken, which matters where their columns are used
}

// Fault is a cell that cannot be taken as it is written.
type Fault struct {
	Column int // among the row's cells
	Problem
}

// Problem is the reason why a row cannot be used. Its cells are empty then.
type Problem struct {
	Code string // "quote", "columns", "line_end", "encoding", "nul", "too_long", "json", "duplicate_key", "uncorrected", "cell" (XLSX)
	Text string // for people, without values
}

// Info is what is known of a file and of its reading so far.
type Info struct {
	Path, Format string
	Encoding     string // label of what was read, as "utf-8" or "windows-1252"; "" for XLSX
	Bytes        int64  // read so far, of the file as it lies on disk
	Other        bool   // an encoding other than UTF-8 was named, whatever a byte order mark said
	Size         int64  // on disk; 0: unknown
	Rows         int    // read so far
	Blank        int    // rows without any data that were passed over so far; they have no number
	SHA256       string // of all bytes on disk in hexadecimal; "" unless read to the end
	Changed      bool   // the file was changed or replaced while it was read; known at its end or after Close
}
