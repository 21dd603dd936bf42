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

// Reader reads the rows of a workbook's sheet. The first that is not blank is the header. A merged area has its
// value in its first cell only, as the file has it; rows and columns that are hidden are read like all others.
type Reader struct {
	sheet   *sheetReader
	format  formatter
	columns rows.Columns
	found   *rows.Found
	frame   rows.Frame
	limit   int       // bytes a row
	part    io.Closer // of the sheet
	notes   notes
	line    int   // of the row that was given last
	waits   bool  // the present row was read and not given: the sheet has no header
	ended   error // what ended the reading
	shown
}

// shown is the present row as Excel shows it.
type shown struct {
	held   []heldCell    // cells that hold something
	text   []byte        // theirs
	size   int           // bytes of all texts
	fields []string      // one for each column of the header, and behind them the cells beyond
	beyond int           // column of the first cell behind the header that holds something; 0: none
	fault  *rows.Problem // of the row
	faults []rows.Fault  // of its cells, by columns of the sheet
}

// heldCell is a cell that holds something.
type heldCell struct {
	column, start, end int // in the text of its row
	faulty             bool
}

// openSheet makes the reader of a sheet's rows. It reads the sheet once as it is packed, so that one that was
// damaged on its way is refused before a row of it is given.
func (r *Reader) openSheet(b *book, of sheet) error {
	var err error
	r.format.from1904, r.format.computes = b.from1904, b.computes
	if r.format.styles, err = b.readStyles(); err != nil {
		return err
	}
	if r.format.shared, err = b.sharedTexts(r.limit); err != nil {
		return err
	}
	if err := b.parts.verify(of.part); err != nil {
		return err
	}
	r.format.shared.left = max(MaxUnpacked, maxRatio*int64(b.parts[of.part].UncompressedSize64))
	part, err := b.parts.open(of.part)
	if err != nil {
		return err
	}
	r.part = part
	r.notes.name = of.name
	r.sheet, err = newSheetReader(part, r.limit)
	return err
}

// begin takes the columns from the first row that is not blank, or from the options where the sheet has no header.
// Where it is that of a rejects file, what the options say around it is not true.
func (r *Reader) begin(o rows.Options) error {
	err := r.advance()
	if err == nil && rows.IsOfRejects(strings.Join(r.fields, ",")) {
		o = o.OfRejects()
	}
	for r.frame = o.Frame; err == nil && r.sheet.number <= o.SkipRows; {
		err = r.advance()
	}
	names, line := o.Columns, 0
	switch {
	case errors.Is(err, io.EOF):
		r.ended = err
		if o.NoHeader {
			break
		}
		text, hint := o.Frame.Empty(fmt.Sprintf("is empty in sheet %q: it has no header", r.notes.name), "the first row must name the columns")
		if len(r.found.Sheets) > 0 {
			text, hint = text+"; the workbook also holds "+spelling.List(r.found.Sheets, mostNamed, nil), sheetHint
		}
		return &rows.OpenError{Text: text, Hint: hint}
	case err != nil:
		return err
	case o.NoHeader:
		r.waits = true
	case r.fault != nil:
		return &rows.OpenError{Line: r.sheet.number, Text: "the header cannot be read: " + r.fault.Text}
	case len(r.faults) > 0:
		return &rows.OpenError{Line: r.sheet.number, Text: "the header cannot be read: " + r.faults[0].String()}
	default:
		names, line = r.header(), r.sheet.number
	}
	r.notes.columns, r.found.Blank = nil, 0 // only rows behind the header count
	r.columns, err = rows.NewColumns(names, line, o, r.found)
	return err
}

// Frame is what stands around the rows.
func (r *Reader) Frame() rows.Frame { return r.frame }

// Line is the sheet's row that was given last.
func (r *Reader) Line() int { return r.line }

// header takes the names of the columns from the present row, as far as they stand together: behind that, something
// was left in the sheet that is none of the table.
func (r *Reader) header() (names []string) {
	const maxGap = 1000 // columns that may lack a name one behind the other
	text := string(r.text)
	for _, c := range r.held {
		if c.column-len(names) > maxGap {
			r.found.Warn("%s of the header stands far behind the others, and is taken for no column; a row that holds something there is not read", r.where(c.column))
			break
		}
		for len(names) < c.column {
			names = append(names, "")
		}
		names = append(names, text[c.start:c.end])
	}
	return names
}

// Next reads the next row that holds data. Its error is io.EOF or a *[rows.LostError].
func (r *Reader) Next(row *rows.Row) error {
	const bytesPerCell = 16 // beside its text
	err := r.advance()
	switch {
	case err == nil:
	case r.ended != nil:
		return err
	case errors.Is(err, io.EOF):
		r.notes.tell(r.sheet, &r.columns, r.found)
		r.ended = err
		return err
	default:
		r.ended = &rows.LostError{Line: r.sheet.number, Text: "the workbook cannot be read any further: " + rows.Reason(err), Err: err}
		return r.ended
	}
	row.Ends = r.frame.EndsAt(r.fields)
	if r.sheet.hidden {
		r.notes.hidden++
	}
	r.line = r.sheet.number
	row.Line, row.Cells = r.line, rows.Cleared(row.Cells, len(r.columns.Keep))
	row.Size = r.size + bytesPerCell*len(row.Cells)
	row.Problem = r.problem(row)
	if row.Problem == nil {
		row.Repeats = r.columns.HeaderAgain(r.fields)
		r.give(row)
		if r.columns.HasUnnamed() {
			r.columns.CountUnnamed(r.fields, row.Line, r.found)
		}
	}
	if (row.Problem != nil || len(row.Faults) > 0) && row.Text == "" {
		row.Text = asCSV(r.fields)
	}
	return nil
}

func (r *Reader) problem(row *rows.Row) *rows.Problem {
	if r.fault != nil {
		return r.fault
	}
	if p := r.columns.Uncorrected(r.fields, row); p != nil {
		return p
	}
	if r.beyond > 0 {
		return &rows.Problem{Code: "columns", Text: fmt.Sprintf("%s holds something, but the header has only %s", r.where(r.beyond), english.Plural(r.columns.Width, "column", ""))}
	}
	return nil
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
	for r.ended == nil {
		var err error
		if !r.waits {
			err = r.sheet.next()
		}
		r.waits = false
		if errors.Is(err, io.EOF) {
			return err
		}
		if err == nil {
			err = r.convert()
		}
		if err != nil {
			return damaged(err)
		}
		r.spread()
		if r.fault != nil || len(r.faults) > 0 || !r.columns.Blank(r.fields) {
			return nil
		}
		r.found.Blank++
	}
	return r.ended
}

func (r *Reader) convert() error {
	r.held, r.text, r.size, r.fault, r.faults = r.held[:0], r.text[:0], 0, nil, r.faults[:0]
	long := r.sheet.long
	for i := range r.sheet.cells {
		raw := &r.sheet.cells[i]
		cell, err := r.format.cell(raw, r.sheet.text[raw.start:raw.end])
		if err != nil {
			return err
		}
		if r.size += len(cell.text); r.size > r.limit || cell.tooLong {
			long = true
			break
		}
		if f := cell.fault; f != nil {
			problem := rows.Problem{Code: "cell", Text: r.where(raw.column) + " " + f.text, Hint: f.hint}
			r.faults = append(r.faults, rows.Fault{Column: raw.column, Problem: problem})
		}
		filled := len(cell.text) > 0
		if filled {
			start := len(r.text)
			r.text = append(r.text, cell.text...)
			r.held = append(r.held, heldCell{raw.column, start, len(r.text), cell.fault != nil})
		}
		if cell.fault == nil && (filled || cell.number != nil) {
			r.notes.see(raw.column, r.sheet.number, &cell)
		}
	}
	if long {
		r.fault = rows.TooLong(r.limit)
	}
	return nil
}

// spread makes r.fields of the cells that hold something. What stands behind the header's columns may stand very far
// behind them: only the texts follow.
func (r *Reader) spread() {
	width, text := r.columns.Width, string(r.text)
	r.fields, r.beyond = slices.Grow(r.fields[:0], width)[:width], 0
	clear(r.fields)
	for _, c := range r.held {
		cell := text[c.start:c.end]
		if c.column < width {
			r.fields[c.column] = cell
			continue
		}
		r.fields = append(r.fields, cell)
		if r.beyond == 0 && c.column >= width+r.columns.Nameless && !c.faulty && strings.TrimSpace(cell) != "" {
			r.beyond = c.column
		}
	}
}

// where names a cell of the present row by its place and its column's name.
func (r *Reader) where(column int) string {
	at := fmt.Sprintf("cell %s%d", columnName(column), r.sheet.number)
	if i := slices.Index(r.columns.Keep, column); i >= 0 {
		return fmt.Sprintf("%s of column %q", at, r.columns.Header.Names[i])
	}
	return at
}

// Close ends the reading.
func (r *Reader) Close() error {
	if r.part == nil {
		return nil
	}
	return r.part.Close()
}
