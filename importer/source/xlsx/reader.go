// Package xlsx reads rows of Excel workbooks (ECMA-376): the archive, the book, then the cells of one sheet by rows.
//
//	archive ─▶ book: its sheets ─▶ choose one ─▶ Reader: header, then Next
//
// Cells are the text that Excel shows on a system in English, with these exceptions:
//
//   - Numbers in the general, scientific and fraction formats keep all their digits; none is rounded to fit a column.
//     A number of more than 15 digits before the point is a fault: Excel has lost the other digits.
//   - Dates with times are written as 2026-03-04 10:11:12, because Excel's own text would not show whether day or
//     month is first. A day or time that the format does not show is left out. Durations are written as hours,
//     minutes and seconds. A date that the cell holds as text stays as it is.
//   - The built-in currency formats, whose currency depends on the system, are written without a currency. Blanks
//     that only align a number are left out.
//   - Text is what was entered, without what its format adds.
//   - Faults are: an error, a formula that was never computed, and a number with a date's format that is not a date.
//
// Promises: memory does not grow with the workbook, except for the texts that its cells share, at most 64 MiB. A sheet
// that is damaged or cut is refused before its first row, by the checksums of the archive. No error quotes the file.
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

// Reader reads the rows of a workbook's sheet. The first row that is not blank is the header. A merged area has its
// value in its first cell only, as in the file. Hidden rows and columns are read like all others.
type Reader struct {
	sheet   *sheetReader
	columns rows.Columns
	found   *rows.Found
	part    io.Closer // of the sheet
	hidden  int       // rows with data that are hidden or filtered out
	waits   bool      // Next must return the current row: a sheet without header begins with it

	fields []string     // of the current row: one for each column of the header, then the cells after them
	beyond int          // column of the first cell after the header's columns that holds something; 0: none
	faults []rows.Fault // of the current row's cells; Column is that of the sheet
}

// Open chooses a sheet of a workbook, reads all of it once to check its checksum, and then again up to its header. Its
// error is a *[rows.OpenError], or a read error.
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

// openSheet makes the reader of a sheet's rows. It first reads the whole sheet, to refuse a damaged one before any row.
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

// begin takes the columns from the first row that is not blank, or from the options if the sheet has no header. For a
// rejects file it ignores the frame in the options.
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
	case errors.Is(err, io.EOF) && o.NoHeader: // Next returns io.EOF again
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
	r.found.Blank = 0 // only rows after the header count
	r.columns, err = rows.NewColumns(names, line, o, r.found)
	return err
}

// header takes the names of the columns from the current row. Cells after a large gap are left-overs, not names.
func (r *Reader) header() (names []string) {
	const maxGap = 1000 // columns without a name, side by side
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

// Close closes the sheet.
func (r *Reader) Close() error {
	if r.part == nil {
		return nil
	}
	return r.part.Close()
}

// Next reads the next row that holds data. Its error is io.EOF or a *[rows.LostError].
func (r *Reader) Next(row *rows.Row) error {
	const bytesPerCell = 16 // besides its text
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
	if r.sheet.long {
		row.Problem = rows.TooLong(r.sheet.max)
	} else if row.Problem = r.columns.Judge(r.fields, r.misfit(), row, r.found); row.Problem == nil {
		r.setCells(row)
	}
	if (row.Problem != nil || len(row.Faults) > 0) && row.Text == "" {
		row.Text = asCSV(r.fields)
	}
	return nil
}

// misfit returns the problem of a row that has a cell after the header's columns, or nil.
func (r *Reader) misfit() *rows.Problem {
	if r.beyond == 0 {
		return nil
	}
	text := r.where(r.beyond) + " holds something, but the header has only "
	return rows.Flaw("columns", text+english.Plural(r.columns.Width, "column", ""), "")
}

func (r *Reader) setCells(row *rows.Row) {
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
	_ = w.Write(cells) // writing into memory cannot fail
	w.Flush()
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x00", `\x00`)
}

// advance goes to the next row that holds something and makes text of its cells.
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

// take fills r.fields. Cells after the header's columns follow without gaps, since they may be very far to the right.
func (r *Reader) take() {
	width, text := r.columns.Width, string(r.sheet.text)
	r.fields, r.beyond, r.faults = rows.Cleared(r.fields, width), 0, r.faults[:0]
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

// where names a cell by its column only, so that rows with the same fault are counted together.
func (r *Reader) where(column int) string {
	at := "the cell in column " + columnName(column)
	if i := slices.Index(r.columns.Keep, column); i >= 0 {
		return fmt.Sprintf("%s (%q)", at, r.columns.Header.Names[i])
	}
	return at
}
