package source

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// xlsxRows reads the rows of a workbook's sheet. The first that is not blank is
// the header. A merged area has its value in its first cell only, as the file
// has it; rows and columns that are hidden are read like all others.
type xlsxRows struct {
	layout
	shower

	opened []io.Closer
	sheet  string
	max    int // bytes a row
	fields []string
	notes  notes
	fault  *Problem // of the present row
	faults []Fault  // of its cells, by columns of the sheet
	warn   func(...string)
	ended  bool
	lost   error // what ended the reading too early
	chunk  chunk
}

// next reads the next row that holds data.
func (x *xlsxRows) next(r *Row) error {
	if x.lost != nil {
		return x.lost
	}
	switch err := x.row(); {
	case errors.Is(err, io.EOF):
		return err
	case err != nil:
		x.lost = &LostError{Line: x.present.number, Text: "the workbook cannot be read any further: " + reason(err), Err: err}
		return x.lost
	}
	if x.present.hidden {
		x.notes.hidden++
	}
	r.Line, r.Size, r.Cells = x.present.number, len(x.present.text), x.chunk.take(r.Cells, len(x.keep))
	r.Problem = x.fault
	if r.Problem == nil {
		r.Problem = x.uncorrected(x.fields, r)
	}
	if r.Problem == nil {
		r.Problem = x.beyond()
	}
	if r.Problem == nil {
		x.give(r)
	}
	if (r.Problem != nil || len(r.Faults) > 0) && r.Text == "" {
		r.Text = asCSV(x.fields)
	}
	return nil
}

// give fills the cells of a row, and tells which of them are faulty.
func (x *xlsxRows) give(r *Row) {
	for i, column := range x.keep {
		if column < len(x.fields) {
			r.Cells[i] = x.fields[column]
		}
	}
	r.Repeats = x.repeats(x.fields)
	r.Faults = nil
	for _, f := range x.faults {
		if i := x.index(f.Column); i >= 0 {
			r.Faults = append(r.Faults, Fault{i, f.Problem})
		}
	}
}

// asCSV writes cells as a record of CSV, for people.
func asCSV(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.ContainsAny(cell, ",\"\r\n") {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		b.WriteString(strings.ReplaceAll(cell, "\x00", `\x00`))
	}
	return b.String()
}

// row goes on to the next row that holds something and makes text of its cells.
func (x *xlsxRows) row() error {
	for {
		err := io.EOF
		if !x.ended {
			err = x.present.next()
		}
		switch {
		case errors.Is(err, io.EOF):
			x.end()
			return io.EOF
		case err != nil:
			return damaged(err)
		}
		blank, err := x.convert()
		if err != nil {
			return damaged(err)
		}
		if !blank {
			return nil
		}
		if x.header != nil {
			x.blanks++
		}
	}
}

// end tells what has been noted, once.
func (x *xlsxRows) end() {
	if x.ended {
		return
	}
	x.ended = true
	x.notes.merged, x.notes.hiddenColumns = x.present.merged, x.present.hiddenColumns
	x.notes.tell(x.header, x.keep, x.warn)
}

// convert makes x.fields of the cells of the present row, up to the last that
// holds something.
func (x *xlsxRows) convert() (blank bool, err error) {
	x.fields, x.fault, x.faults = x.fields[:0], nil, x.faults[:0]
	size := 0
	for column := range x.present.cells {
		cell, err := x.show(&x.present.cells[column])
		if err != nil {
			return false, err
		}
		if size += len(cell.text); size > x.max {
			x.present.long = true
			break
		}
		if cell.fault != nil {
			x.faults = append(x.faults, Fault{column, x.refuse(column, cell)})
		}
		if cell.text != "" {
			for len(x.fields) < column {
				x.fields = append(x.fields, "")
			}
			x.fields = append(x.fields, cell.text)
		}
		x.notes.see(column, x.present.number, cell, x.header != nil)
	}
	if x.present.long {
		x.fault = tooLong(x.max)
	}
	return x.fault == nil && len(x.faults) == 0 && x.blank(x.fields), nil
}

// refuse is the problem of a cell that cannot be taken.
func (x *xlsxRows) refuse(column int, cell cellText) Problem {
	text := cell.fault.text
	if cell.fault == faultError && knownErrors[cell.text] {
		text = "holds the error " + cell.text
	}
	return Problem{Code: "cell", Text: fmt.Sprintf("%s %s (hint: %s)", x.where(column), text, cell.fault.hint)}
}

// knownErrors are the errors of Excel. Anything else is not repeated.
var knownErrors = map[string]bool{
	"#DIV/0!": true, "#N/A": true, "#NAME?": true, "#NULL!": true, "#NUM!": true, "#REF!": true, "#VALUE!": true,
	"#GETTING_DATA": true, "#SPILL!": true, "#CALC!": true, "#FIELD!": true, "#BLOCKED!": true,
	"#CONNECT!": true, "#UNKNOWN!": true, "#BUSY!": true, "#EXTERNAL!": true, "#PYTHON!": true,
}

// index is the place of a column in the header; -1 where it has none.
func (x *xlsxRows) index(column int) int {
	for i, kept := range x.keep {
		if kept == column {
			return i
		}
	}
	return -1
}

// where names a cell of the present row by its place and its column's name.
func (x *xlsxRows) where(column int) string {
	at := fmt.Sprintf("cell %s%d", columnName(column), x.present.number)
	if x.header == nil || x.index(column) < 0 {
		return at
	}
	return fmt.Sprintf("%s of column %s", at, quote(x.header.Names[x.index(column)]))
}

// beyond finds a cell behind the header's last that holds something, but for
// what is no value.
func (x *xlsxRows) beyond() *Problem {
	for column := x.width; column < len(x.fields); column++ {
		faulty := slices.ContainsFunc(x.faults, func(f Fault) bool { return f.Column == column })
		if !faulty && strings.TrimSpace(x.fields[column]) != "" {
			return &Problem{Code: "columns", Text: fmt.Sprintf("%s holds something, but the header has only %s", x.where(column), count(x.width, "column"))}
		}
	}
	return nil
}

// begin takes the columns from the first row that is not blank, or from the
// options where the sheet has no header.
func (x *xlsxRows) begin(o Options) *OpenError {
	names, line := o.Columns, 0
	if !o.NoHeader {
		err := x.row()
		switch {
		case errors.Is(err, io.EOF):
			return &OpenError{Text: "is empty in sheet " + quote(x.sheet) + ": it has no header", Hint: "the first row must name the columns"}
		case err != nil:
			return unusable(err)
		case x.fault != nil:
			return &OpenError{Line: x.present.number, Text: "the header cannot be read: " + x.fault.Text}
		case len(x.faults) > 0:
			return &OpenError{Line: x.present.number, Text: "the header cannot be read: " + x.faults[0].Text}
		}
		names, line = x.fields, x.present.number
	}
	of, e := newLayout(names, line, o)
	x.layout = of
	x.warn(of.warnings...)
	return e
}

// Close ends the reading and removes what was kept for it.
func (x *xlsxRows) Close() error {
	var errs []error
	for _, c := range x.opened {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
