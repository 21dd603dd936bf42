package source

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"
)

// calendar turns numbers into dates, days counted from 1900 or from 1904.
type calendar struct{ from1904 bool }

// The days after the last one that Excel shows, 9999-12-31.
const (
	endOf1900 = 2958466
	endOf1904 = 2957004
)

// shows tells whether Excel shows a number as a date; it fills the cell with #
// for those before the first day and after the last.
func (c calendar) shows(v float64) bool {
	if c.from1904 {
		return v >= 0 && v < endOf1904
	}
	return v >= 0 && v < endOf1900
}

// write gives date and time of a number in ISO 8601, to the second.
func (c calendar) write(v float64, kind formatKind) string {
	day, second := math.Floor(v), math.Round((v-math.Floor(v))*86400)
	if second == 86400 {
		day, second = day+1, 0
	}
	if kind == isoAny {
		switch {
		case second == 0:
			kind = isoDate
		case day == 0:
			kind = isoTime
		default:
			kind = isoDateTime
		}
	}
	clock := time.Time{}.Add(time.Duration(second) * time.Second).Format(time.TimeOnly)
	switch kind {
	case isoTime:
		return clock
	case isoDate:
		return c.date(int(day))
	}
	return c.date(int(day)) + " " + clock
}

// date writes a day. Excel takes 1900 for a leap year, and calls the day before
// the first one 1900-01-00.
func (c calendar) date(day int) string {
	first := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case c.from1904:
		first = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case day == 0:
		return "1900-01-00"
	case day == 60:
		return "1900-02-29"
	case day < 60:
		day++
	}
	return first.AddDate(0, 0, day).Format(time.DateOnly)
}

// writer has excelize write numbers in formats that are not made of digits
// alone. It holds an empty workbook with one cell for each format.
type writer struct {
	calendar
	book  *excelize.File    // nil until it is needed
	cells map[string]string // by the code of the format
}

const writerSheet = "Sheet1"

func newWriter(c calendar) *writer {
	return &writer{calendar: c, cells: map[string]string{}}
}

// open makes the workbook.
func (w *writer) open() error {
	if w.book != nil {
		return nil
	}
	w.book = excelize.NewFile()
	return w.book.SetWorkbookProps(&excelize.WorkbookPropsOptions{Date1904: &w.from1904})
}

// Close ends the use of excelize.
func (w *writer) Close() error {
	if w.book == nil {
		return nil
	}
	return w.book.Close()
}

// write gives the text of a number; false where excelize cannot tell it. It has
// panicked on formats made to do so.
func (w *writer) write(v float64, code string) (text string, ok bool) {
	defer func() {
		if recover() != nil {
			text, ok = "", false
		}
	}()
	cell, err := w.cell(code)
	if err != nil {
		return "", false
	}
	number := strconv.FormatFloat(v, 'f', -1, 64)
	if err := w.book.SetCellDefault(writerSheet, cell, number); err != nil {
		return "", false
	}
	text, err = w.book.GetCellValue(writerSheet, cell)
	// A format that it does not know gives the number back.
	return strings.TrimSpace(text), err == nil && text != number
}

// cell finds the cell that has this format.
func (w *writer) cell(code string) (string, error) {
	if cell, ok := w.cells[code]; ok {
		return cell, nil
	}
	if err := w.open(); err != nil {
		return "", err
	}
	// Without a language excelize looks through all that it knows, for each cell anew.
	said := code
	if !strings.Contains(code, "[$") {
		said = "[$-409]" + code
	}
	style, err := w.book.NewStyle(&excelize.Style{CustomNumFmt: &said})
	if err != nil {
		return "", err
	}
	cell := fmt.Sprintf("A%d", len(w.cells)+1)
	if err := w.book.SetCellStyle(writerSheet, cell, cell, style); err != nil {
		return "", err
	}
	w.cells[code] = cell
	return cell, nil
}
