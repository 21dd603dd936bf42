package xlsx

import (
	"errors"
	"io"
	"slices"
)

// Rows reads the rows of a sheet, one after another. It serves one goroutine.
type Rows struct {
	formatter
	opened []io.Closer
	ended  bool
}

// Next goes on to the next row that the sheet has, blank or not; io.EOF after the last,
// when the sheet is whole.
func (r *Rows) Next() error {
	if r.ended {
		return io.EOF
	}
	err := r.sheet.next()
	if errors.Is(err, io.EOF) {
		r.ended = true
		return io.EOF
	}
	return damaged(err)
}

// Number is where the present row stands in the sheet, from 1; 0 before the first.
func (r *Rows) Number() int { return r.sheet.number }

// Hidden tells whether the present row is hidden or filtered away.
func (r *Rows) Hidden() bool { return r.sheet.hidden }

// Long tells whether the present row has more text than it may have; its cells are not
// complete then.
func (r *Rows) Long() bool { return r.sheet.long }

// Size is how many bytes of text the cells of the present row have, those of shared texts
// apart.
func (r *Rows) Size() int { return len(r.sheet.text) }

// Width is how many columns the present row has, up to its last cell.
func (r *Rows) Width() int { return len(r.sheet.cells) }

// Cell is a cell of the present row, by its column from 0; empty where there is none.
func (r *Rows) Cell(column int) (Cell, error) {
	c, err := r.cell(&r.sheet.cells[column])
	return c, damaged(err)
}

// Merged is how many areas of merged cells the sheet has, known at its end. Only the
// first cell of each holds the value.
func (r *Rows) Merged() int { return r.sheet.merged }

// Hides tells whether a column is hidden.
func (r *Rows) Hides(column int) bool {
	return slices.ContainsFunc(r.sheet.hiddenColumns, func(s span) bool { return s.first <= column && column <= s.last })
}

// Close ends the reading and removes what was kept for it.
func (r *Rows) Close() error {
	var errs []error
	for _, c := range r.opened {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
