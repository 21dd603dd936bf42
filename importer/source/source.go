// Package source turns input files into rows: CSV, TSV and JSON Lines.
//
// It is the first station of a row's way: a [File] reads, the mapping judges.
// What it promises:
//
//   - Every cell is text as the file holds it: nothing is trimmed, rounded or
//     taken for a number, and bytes inside quotes are kept exactly.
//   - A row knows the physical line that it starts on and its number.
//   - A row that cannot be read is data, a [Problem]; the rows after it are
//     read as if it had not been there. An error means that the structure of
//     the file is lost.
//   - Memory does not grow with the file: a record has a limit.
//   - No error and no problem holds a cell's value.
//
// A line ends with LF or CR LF (CRs repeated before the LF belong to it), and
// the last one with the file; a Ctrl-Z that ends the file is left out. Lines
// that are empty or hold spaces only are passed over. A lone CR never ends a
// line: files that have nothing else are refused, outside quotes it is a
// problem of its row.
package source

import "io"

// Format names the way in which a file holds its rows.
type Format string

// The formats that can be read.
const (
	CSV   Format = "csv"   // RFC 4180, any delimiter
	TSV   Format = "tsv"   // the same with tabs
	JSONL Format = "jsonl" // one JSON object a line
)

const (
	defaultRecord = 1 << 20 // bytes a record
	maxLines      = 1000    // lines a record
	maxColumns    = 16384   // columns a row, as many as Excel has
	maxDepth      = 64      // levels of a JSON object
)

// Options say how to read a file; the zero value detects what it can.
type Options struct {
	// Format is found by the name's ending (.csv .tsv .tab .jsonl .ndjson) when
	// empty, else by content: a file that begins with a brace is JSONL.
	// Standard input needs it.
	Format Format
	// Delimiter parts the cells. 0: a tab for TSV; for CSV whichever of comma,
	// semicolon, tab and bar the first line holds most often.
	Delimiter rune
	// NoHeader says that the first line is a row already; Columns names the columns then.
	NoHeader bool
	Columns  []string
	// Paths are the names of nested JSONL values to find, as "a.b" or "a.0".
	Paths []string
	// MaxRecord is how many bytes a record may have with its line end; 0 means 1 MiB.
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
	Cells   []string // one for each name of the header; the caller may keep them
	Line    int      // physical line on which the row starts, from 1
	Number  int      // number among the data rows of its file, from 1
	Raw     string   // JSONL: the line as read; CSV: only with a Problem; at most MaxRecord bytes
	Problem *Problem // why the row cannot be used, or nil
}

// Problem is the reason why a row cannot be used. Its cells are empty then,
// but for those that a row with a wrong number of cells has.
type Problem struct {
	Code string // "quote", "columns", "line_end", "encoding", "nul", "too_long", "json", "duplicate_key"
	Text string // for people, without values
}

// Info is what is known of a file and of its reading so far.
type Info struct {
	Path, Format string
	Bytes        int64  // read so far
	Size         int64  // 0: unknown
	Rows         int    // read so far
	SHA256       string // of all bytes in hexadecimal; "" unless read to the end
	Changed      bool   // the file was changed or replaced while it was read; known at its end or after Close
}
