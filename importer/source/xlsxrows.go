package source

import (
	"errors"
	"fmt"
	"io"
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
	warn   func(...string)
	ended  bool
	lost   error // what ended the reading too early
	chunk  chunk
}

// next reads the next row that is not blank.
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
	r.Line, r.Cells = x.present.number, x.chunk.take(r.Cells, len(x.keep))
	if x.present.hidden {
		x.notes.hidden++
	}
	for i, column := range x.keep {
		if column < len(x.fields) {
			r.Cells[i] = x.fields[column]
		}
	}
	if r.Problem = x.fault; r.Problem == nil {
		r.Problem = x.beyond()
	}
	if r.Problem != nil && r.Problem.Code == "too_long" {
		clear(r.Cells)
	}
	return nil
}

// row goes on to the next row that is not blank and makes text of its cells.
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
	x.fields, x.fault, blank = x.fields[:0], nil, true
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
			x.refuse(column, cell)
		}
		if cell.text != "" {
			for len(x.fields) < column {
				x.fields = append(x.fields, "")
			}
			x.fields = append(x.fields, cell.text)
		}
		blank = blank && cell.fault == nil && strings.Trim(cell.text, " ") == ""
		x.notes.see(column, x.present.number, cell, x.header != nil)
	}
	if x.present.long {
		x.fault, x.fields = tooLong(x.max), x.fields[:0]
		return false, nil
	}
	return blank, nil
}

// refuse makes the row's problem of its first cell that cannot be taken.
func (x *xlsxRows) refuse(column int, cell cellText) {
	if x.fault != nil || !x.judged(column) {
		return
	}
	text := cell.fault.text
	if cell.fault == faultError && knownErrors[cell.text] {
		text = "holds the error " + cell.text
	}
	x.fault = &Problem{Code: "cell", Text: fmt.Sprintf("%s %s (hint: %s)", x.where(column), text, cell.fault.hint)}
}

// knownErrors are the errors of Excel. Anything else is not repeated.
var knownErrors = map[string]bool{
	"#DIV/0!": true, "#N/A": true, "#NAME?": true, "#NULL!": true, "#NUM!": true, "#REF!": true, "#VALUE!": true,
	"#GETTING_DATA": true, "#SPILL!": true, "#CALC!": true, "#FIELD!": true, "#BLOCKED!": true,
	"#CONNECT!": true, "#UNKNOWN!": true, "#BUSY!": true, "#EXTERNAL!": true, "#PYTHON!": true,
}

// judged tells whether a column's faults count: those that a rejects file has
// added are no columns of the rows.
func (x *xlsxRows) judged(column int) bool {
	if x.header == nil || column >= x.width {
		return true
	}
	return x.index(column) >= 0
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

// beyond finds a cell behind the header's last that holds something.
func (x *xlsxRows) beyond() *Problem {
	for column := x.width; column < len(x.fields); column++ {
		if strings.TrimSpace(x.fields[column]) != "" {
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
		}
		names, line = x.fields, x.present.number
	}
	of, e := newLayout(names, line)
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
