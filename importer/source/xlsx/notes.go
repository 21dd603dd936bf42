package xlsx

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

// notes gather what a person should know of a sheet that was read.
type notes struct {
	name    string // of the sheet
	hidden  int    // rows with data that are hidden or filtered away
	columns []columnNotes
}

// columnNotes are the notes on one column.
type columnNotes struct {
	plain, blanked, dates, dateTexts tally
	long                             int  // plain numbers of ten digits or more
	filled                           bool // something stands in it
	zeros                            bool // texts of digits that begin with a zero or a plus
}

// tally counts cells and remembers where the first stands.
type tally struct{ cells, row int }

func (t *tally) add(row int) {
	if t.cells++; t.cells == 1 {
		t.row = row
	}
}

// see notes a cell that is not empty, or seems to be.
func (n *notes) see(column, row int, cell *cell) {
	const longNumber = 10 // digits, as phone numbers have, and amounts seldom
	for len(n.columns) <= column {
		n.columns = append(n.columns, columnNotes{})
	}
	c, text := &n.columns[column], cell.text
	c.filled = true
	shown := cell.number
	switch {
	case shown == nil:
		c.text(row, text)
	case shown.Blanked:
		c.blanked.add(row)
	case shown.Date:
		c.dates.add(row)
	case !shown.Number:
		c.text(row, text)
	case allDigits(text):
		c.plain.add(row)
		if len(text) >= longNumber {
			c.long++
		}
	}
}

// text notes a text that tells something of the others of its column.
func (c *columnNotes) text(row int, text []byte) {
	const maxTelling = 40 // bytes of a text with a date or a number
	if len(text) < 3 || len(text) > maxTelling || text[0] != '+' && (text[0] < '0' || text[0] > '9') {
		return
	}
	switch {
	case allDigits(text[1:]):
		c.zeros = c.zeros || text[0] == '0' || text[0] == '+'
	case looksLikeDate(text):
		c.dateTexts.add(row)
	}
}

// looksLikeDate says that a text begins with three numbers as dates do, but not as those of ISO 8601 do, as which
// dates are written here.
func looksLikeDate(text []byte) bool {
	var digits [3]int
	part, sign := 0, byte(0)
	for _, b := range text {
		switch {
		case '0' <= b && b <= '9':
			digits[part]++
		case part < 2 && digits[part] > 0 && strings.IndexByte("./-", b) >= 0 && (part == 0 || b == sign):
			part, sign = part+1, b
		default:
			return part == 2 && digits[2] > 0 && (b == ' ' || b == 'T' || b == ',') && isDate(digits, sign)
		}
	}
	return part == 2 && isDate(digits, sign)
}

func isDate(digits [3]int, sign byte) bool {
	year := digits[2]
	if digits[0] == 4 {
		digits[0], year = digits[2], 4
		if sign == '-' && digits[0] == 2 && digits[1] == 2 {
			return false
		}
	}
	return (year == 2 || year == 4) && digits[0] > 0 && digits[0] <= 2 && digits[1] <= 2
}

func allDigits(text []byte) bool {
	for _, b := range text {
		if b < '0' || b > '9' {
			return false
		}
	}
	return true
}

func (n *notes) tell(s *sheetReader, columns *rows.Columns, found *rows.Found) {
	if n.hidden > 0 {
		found.Warn("%s of the sheet %s hidden or filtered away in Excel, and read like all others", english.Plural(n.hidden, "row", ""), are(n.hidden))
	}
	var hidden []string
	for i, column := range columns.Keep {
		if column < len(n.columns) && n.columns[column].filled && s.hides(column) {
			hidden = append(hidden, strconv.Quote(columns.Header.Names[i]))
		}
	}
	if len(hidden) > 0 {
		found.Warn("the sheet hides %s %s, which %s read like all others", english.PluralWord(len(hidden), "column", ""), spelling.List(hidden, mostNamed, nil), are(len(hidden)))
	}
	if s.merged > 0 {
		found.Warn("the sheet has %s of merged cells: only the first cell of each holds the value, the others are empty", english.Plural(s.merged, "area", ""))
	}
	for i, column := range columns.Keep {
		if column < len(n.columns) {
			n.columns[column].tell(columns.Header.Names[i], found)
		}
	}
}

func (c columnNotes) tell(name string, found *rows.Found) {
	if t := c.plain; t.cells > 0 && (c.zeros || c.long == t.cells) {
		found.Warn("column %q looks like phone numbers, postal codes or other identifiers, but %s, first in row %d: zeros at the beginning may be lost (hint: format the column as text before data are entered)",
			name, t.holdNumbers(), t.row)
	}
	if t := c.dateTexts; t.cells > 0 && c.dates.cells > 0 {
		found.Warn("column %q: %s, first in row %d, that Excel did not take for dates as it did with others: in these day and month may be swapped, and they are written as 2026-03-04 (hint: step date of the mapping reads several layouts, as in \"date:YYYY-MM-DD|DD.MM.YYYY\")",
			name, t.lookLikeDates(), t.row)
	}
	if t := c.blanked; t.cells > 0 {
		found.Warn("column %q: %s, first in row %d, hidden by the format of the cell; such a cell counts as empty", name, t.holdNumbers(), t.row)
	}
}

func (t tally) holdNumbers() string {
	return english.PluralWord(t.cells, "1 cell holds a number", fmt.Sprintf("%d cells hold numbers", t.cells))
}

func (t tally) lookLikeDates() string {
	return english.PluralWord(t.cells, "1 text looks like a date", fmt.Sprintf("%d texts look like dates", t.cells))
}

func are(n int) string { return english.PluralWord(n, "is", "are") }
