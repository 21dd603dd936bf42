// Package xlsx reads rows of Excel workbooks (ECMA-376): archive, book, and row by row the cells of one sheet as
// Excel shows them.
//
//	archive ─▶ book: its sheets ─▶ choose one ─▶ Reader: header, then Next
//
// Cells are the text that Excel shows in a system whose language is English, but:
//
//   - Numbers in the general, scientific and fraction formats keep all their digits, none is rounded for want of
//     room. A whole number of more than 15 digits is a fault: Excel has lost the others.
//   - Dates are written as 2026-03-04, times as 10:11:12, and both with a blank between, whatever their format: in
//     which order it has day and month, nobody could tell from the text. A format without a day, or without a time,
//     leaves that out. Durations are written in hours. A date that the cell holds as text stays as it is.
//   - The built-in currency formats, whose currency depends on the system, are written without one. Blanks that only
//     align a number are left out.
//   - Text is what was entered, whatever its format adds to it.
//   - An error, a formula that was never computed and a number that is no date but has the format of one are faults.
//
// Promises: memory does not grow with the workbook, except for the texts that its cells share, 64 MiB at most; a sheet
// that is damaged or cut is refused before its first row, by the checksums of the archive; no error quotes the file.
package xlsx

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

const sheetHint = "choose one with --sheet NAME, or with source.sheet of the mapping"

// Reader reads the rows of a workbook's sheet. The first that is not blank is the header. A merged area has its
// value in its first cell only, as the file has it; rows and columns that are hidden are read like all others.
type Reader struct {
	sheet   *sheetReader
	columns rows.Columns
	found   *rows.Found
	part    io.Closer // of the sheet
	hidden  int       // rows with data that are hidden or filtered away
	waits   bool      // the present row was read and not given: the sheet has no header

	fields []string     // of the present row: one for each column of the header, and behind them the cells beyond
	beyond int          // column of the first cell behind the header that holds something; 0: none
	faults []rows.Fault // of the present row's cells, by columns of the sheet
}

// Open reads what a workbook says of its sheets, chooses one, and reads up to its header. Its error is a
// *[rows.OpenError], or one of reading. The sheet is read once from end to end for the checksum of the archive,
// before the first row is given.
func Open(in io.ReaderAt, size int64, o rows.Options, found *rows.Found) (*Reader, error) {
	r := &Reader{found: found}
	err := damaged(r.open(in, size, o))
	if err != nil {
		r.Close()
	}
	return r, err
}

func (r *Reader) open(in io.ReaderAt, size int64, o rows.Options) error {
	parts, err := openArchive(in, size)
	if err != nil {
		return err
	}
	if !parts.isWorkbook() {
		return rows.Refuse("is a ZIP archive, but no Excel workbook of the kind .xlsx",
			"save a workbook of another kind (.xlsb, .ods) as .xlsx or as CSV in UTF-8; unpack any other archive first")
	}
	b, err := parts.book()
	if err != nil {
		return err
	}
	s, err := b.choose(o.Sheet)
	if err != nil {
		return err
	}
	if err := r.openSheet(b, s.part, o.MaxRecord); err != nil {
		return err
	}
	r.found.Sheets = b.labels(func(other sheet) bool { return other.part != s.part })
	if o.Sheet == "" && len(r.found.Sheets) > 0 {
		others := spelling.List(r.found.Sheets, mostNamed, nil)
		r.found.Warn("sheet %q was read; the workbook also holds %s (hint: %s)", s.name, others, sheetHint)
	}
	return r.begin(s.name, o)
}

// openSheet makes the reader of a sheet's rows. It reads the sheet once as it is packed, so that one that was
// damaged on its way is refused before a row of it is given.
func (r *Reader) openSheet(b *book, part string, limit int) error {
	shared := &sharedTexts{}
	styles, err := b.readStyles()
	if err == nil && b.strings != "" {
		err = b.parts.read(b.strings, shared.read)
	}
	if err == nil {
		err = b.parts.read(part, func(io.Reader) error { return nil })
	}
	if err != nil {
		return err
	}
	in, err := b.parts.open(part)
	if err != nil {
		return err
	}
	r.part = in
	r.sheet, err = newSheetReader(in, formatter{shared, styles, b.from1904, b.computes}, limit)
	return err
}

// begin takes the columns from the first row that is not blank, or from the options where the sheet has no header.
// Where it is that of a rejects file, what the options say around it is not true.
func (r *Reader) begin(name string, o rows.Options) error {
	err := r.advance()
	if err == nil && rows.IsOfRejects(strings.Join(r.fields, ",")) {
		o = o.OfRejects()
	}
	for err == nil && r.sheet.number <= o.SkipRows {
		err = r.advance()
	}
	names, line := o.Columns, 0
	switch {
	case errors.Is(err, io.EOF) && o.NoHeader: // and will end again
	case errors.Is(err, io.EOF):
		text, hint := fmt.Sprintf("is empty in sheet %q: it has no header", name), rows.HeaderHint
		if len(r.found.Sheets) > 0 {
			text, hint = text+"; the workbook also holds "+spelling.List(r.found.Sheets, mostNamed, nil), sheetHint
		}
		return rows.Refuse(text, hint)
	case err != nil:
		return err
	case o.NoHeader:
		r.waits = true
	case r.sheet.long:
		return rows.RefuseAt(r.sheet.number, rows.NoHeader+rows.TooLong(r.sheet.max).Text, "")
	case len(r.faults) > 0:
		return rows.RefuseAt(r.sheet.number, rows.NoHeader+r.faults[0].String(), "")
	default:
		names, line = r.header(), r.sheet.number
	}
	r.found.Blank = 0 // only rows behind the header count
	r.columns, err = rows.NewColumns(names, line, o, r.found)
	return err
}

// header takes the names of the columns from the present row, as far as they are together: behind that, something
// was left in the sheet that is none of the table.
func (r *Reader) header() (names []string) {
	const maxGap = 1000 // columns that may lack a name one behind the other
	text := string(r.sheet.text)
	for _, c := range r.sheet.cells {
		if c.column-len(names) > maxGap {
			r.found.Warn("%s of the header is far behind the others and is not taken as a column; "+
				"a row that holds something there is not read", r.where(c.column))
			break
		}
		for len(names) < c.column {
			names = append(names, "")
		}
		names = append(names, text[c.start:c.end])
	}
	return names
}

// Close ends the reading.
func (r *Reader) Close() error {
	if r.part == nil {
		return nil
	}
	return r.part.Close()
}

// Next reads the next row that holds data. Its error is io.EOF or a *[rows.LostError].
func (r *Reader) Next(row *rows.Row) error {
	const bytesPerCell = 16 // beside its text
	switch err := r.advance(); {
	case err == nil:
	case errors.Is(err, io.EOF):
		if r.hidden > 0 {
			r.found.Warn("%s of the sheet %s hidden or filtered away in Excel, and read like all others",
				english.Plural(r.hidden, "row", ""), english.PluralWord(r.hidden, "is", "are"))
		}
		return err
	default:
		text := "the workbook cannot be read any further: " + rows.Reason(err)
		return &rows.LostError{Line: r.sheet.number, Text: text, Err: err}
	}
	if r.sheet.hidden {
		r.hidden++
	}
	row.Line, row.Cells = r.sheet.number, rows.Cleared(row.Cells, len(r.columns.Keep))
	row.Size = len(r.sheet.text) + bytesPerCell*len(row.Cells)
	if row.Problem = rows.TooLong(r.sheet.max); !r.sheet.long {
		row.Problem = r.columns.Judge(r.fields, r.misfit(), row, r.found)
	}
	if row.Problem == nil {
		r.give(row)
	}
	if (row.Problem != nil || len(row.Faults) > 0) && row.Text == "" {
		row.Text = asCSV(r.fields)
	}
	return nil
}

// misfit is the problem of a row that holds something behind the header's columns, or nil.
func (r *Reader) misfit() *rows.Problem {
	if r.beyond == 0 {
		return nil
	}
	text := r.where(r.beyond) + " holds something, but the header has only "
	return rows.Flaw("columns", text+english.Plural(r.columns.Width, "column", ""), "")
}

func (r *Reader) give(row *rows.Row) {
	for i, column := range r.columns.Keep {
		if column < len(r.fields) {
			row.Cells[i] = r.fields[column]
		}
	}
	for _, f := range r.faults {
		if f.Column = slices.Index(r.columns.Keep, f.Column); f.Column >= 0 {
			row.Faults = append(row.Faults, f)
		}
	}
}

func asCSV(cells []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(cells) // into memory
	w.Flush()
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x00", `\x00`)
}

// advance goes on to the next row that holds something and makes text of its cells.
func (r *Reader) advance() error {
	for {
		if !r.waits {
			if err := r.sheet.next(); errors.Is(err, io.EOF) {
				return err
			} else if err != nil {
				return damaged(err)
			}
		}
		r.waits = false
		r.take()
		if r.sheet.long || len(r.faults) > 0 || !r.columns.Blank(r.fields) {
			return nil
		}
		r.found.Blank++
	}
}

// take makes r.fields of the cells that hold something. What is behind the header's columns may stand very far
// behind them: only the texts follow.
func (r *Reader) take() {
	width, text := r.columns.Width, string(r.sheet.text)
	r.fields, r.beyond, r.faults = slices.Grow(r.fields[:0], width)[:width], 0, r.faults[:0]
	clear(r.fields)
	for _, c := range r.sheet.cells {
		cell := text[c.start:c.end]
		if f := c.fault; f != nil {
			problem := fault(r.where(c.column)+" "+f.Text, f.Hint)
			r.faults = append(r.faults, rows.Fault{Column: c.column, Problem: *problem})
		}
		switch {
		case cell == "":
		case c.column < width:
			r.fields[c.column] = cell
		default:
			r.fields = append(r.fields, cell)
			if r.beyond == 0 && c.column >= width+r.columns.Nameless && c.fault == nil &&
				strings.TrimSpace(cell) != "" {
				r.beyond = c.column
			}
		}
	}
}

// where names a cell by its column, so that rows with the same fault are counted together.
func (r *Reader) where(column int) string {
	at := "the cell in column " + columnName(column)
	if i := slices.Index(r.columns.Keep, column); i >= 0 {
		return fmt.Sprintf("%s (%q)", at, r.columns.Header.Names[i])
	}
	return at
}
