package xlsx

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"leadferry/internal/spelling"
)

// How many rows and columns a sheet of Excel has.
const (
	maxSheetRows = 1 << 20
	maxColumns   = 1 << 14
)

var (
	errRowOrder = broken("the rows of the sheet are not in order or beyond the last row of Excel")
	errCellAt   = broken("a cell does not stand where it says, or not behind the one before it")
	errNoSheet  = broken("the part of the sheet is no sheet")
)

// sheetReader reads a sheet's rows one after another, as the file holds them.
type sheetReader struct {
	xml    *tokens
	max    int  // bytes of text a row
	inData bool // among the rows

	number        int  // of the present row in the sheet, from 1
	hidden        bool // the present row is
	long          bool // the present row has more text than max; its cells are not complete
	cells         []rawCell
	text          []byte // of all cells of the present row
	merged        int    // areas of merged cells, known at the end
	hiddenColumns []span // columns that are hidden
}

// rawCell is a cell as it is written.
type rawCell struct {
	column     int    // from 0
	kind       string // "n" number, "s" shared text, "str", "inlineStr", "b", "e", "d"
	style      int
	start, end int // of its value in the reader's text
	formula    bool
	value      bool // a value is written, which may be empty
}

// span is a run of columns, counted from 0.
type span struct{ first, last int }

func newSheetReader(in io.Reader, limit int) (*sheetReader, error) {
	s := &sheetReader{xml: newTokens(in), max: limit}
	more, err := s.xml.nextChild()
	if err == nil && (!more || s.xml.name() != "worksheet") {
		err = errNoSheet
	}
	return s, unexpected(err)
}

// next reads the next row; io.EOF after the last, when the sheet is whole.
func (s *sheetReader) next() error {
	for {
		more, err := s.xml.nextChild()
		name := s.xml.name()
		switch {
		case err != nil:
		case !more && s.inData:
			s.inData = false
		case !more: // what follows is read for the checksum of the part
			for err == nil {
				_, err = s.xml.next(false)
			}
			return err
		case s.inData && name == "row":
			return s.row()
		case name == "sheetData":
			s.inData = true
		case name == "cols":
			err = s.xml.children(s.column)
		case name == "mergeCells":
			err = s.xml.children(func() error {
				s.merged++
				return s.xml.skip()
			})
		default:
			err = s.xml.skip()
		}
		if err != nil {
			return unexpected(err)
		}
	}
}

func (s *sheetReader) column() error {
	first, _ := strconv.Atoi(s.xml.attribute("min"))
	last, _ := strconv.Atoi(s.xml.attribute("max"))
	if truth(s.xml.attribute("hidden")) && len(s.hiddenColumns) < maxColumns {
		s.hiddenColumns = append(s.hiddenColumns, span{first - 1, last - 1})
	}
	return s.xml.skip()
}

func (s *sheetReader) hides(column int) bool {
	return slices.ContainsFunc(s.hiddenColumns, func(s span) bool { return s.first <= column && column <= s.last })
}

// row reads the cells of a row. Rows and cells may leave out where they stand: then they stand behind the one before.
func (s *sheetReader) row() error {
	number := s.number + 1
	if at := s.xml.attribute("r"); len(at) > 0 {
		n, err := strconv.Atoi(at)
		if err != nil || n < number {
			return errRowOrder
		}
		number = n
	}
	if number > maxSheetRows {
		return errRowOrder
	}
	s.number, s.hidden, s.long = number, truth(s.xml.attribute("hidden")), false
	s.cells, s.text = s.cells[:0], s.text[:0]
	return unexpected(s.xml.children(func() error {
		if s.xml.name() == "c" {
			return s.cell()
		}
		return s.xml.skip()
	}))
}

// cell reads a cell; those passed over are no cells.
func (s *sheetReader) cell() error {
	c, last := rawCell{kind: "n", start: len(s.text)}, -1
	if n := len(s.cells); n > 0 {
		last = s.cells[n-1].column
	}
	c.column = last + 1
	for _, a := range s.xml.start.Attr {
		switch a.Name.Local {
		case "r":
			at, row, ok := reference(a.Value)
			if !ok || row != s.number {
				return errCellAt
			}
			c.column = at
		case "s":
			style, err := strconv.Atoi(a.Value)
			if err != nil {
				return errStyle
			}
			c.style = style
		case "t":
			c.kind = kindOf(a.Value)
		}
	}
	if c.column >= maxColumns || c.column <= last {
		return errCellAt
	}
	err := s.content(&c)
	c.end = len(s.text)
	s.cells = append(s.cells, c)
	return err
}

// content reads what is in a cell: the text that is written in it, or else its value.
func (s *sheetReader) content(c *rawCell) error {
	inline := false
	return s.xml.children(func() error {
		switch s.xml.name() {
		case "v":
			if inline {
				return s.xml.skip()
			}
			c.value = true
			return s.xml.characters(s.gather)
		case "is":
			c.value, inline = true, true
			s.text = s.text[:c.start]
			return richText(s.xml, s.gather)
		case "f":
			c.formula = true
		}
		return s.xml.skip()
	})
}

// gather appends a piece of text, up to the row's limit.
func (s *sheetReader) gather(text []byte) error {
	if len(s.text)+len(text) > s.max {
		s.long = true
	} else {
		s.text = append(s.text, text...)
	}
	return nil
}

func (s *sheetReader) holdsText() bool { return s.long || len(s.text) > 0 }

// reference reads a cell's name, as "AB12", with the column counted from 0.
func reference(name string) (column, row int, ok bool) {
	i := 0
	for ; i < len(name) && i < 3; i++ {
		letter := name[i] &^ 0x20
		if letter < 'A' || letter > 'Z' {
			break
		}
		column = column*26 + int(letter-'A') + 1
	}
	row, err := strconv.Atoi(name[i:])
	return column - 1, row, i > 0 && err == nil && row > 0
}

// columnName is the reverse for a column: "AB".
func columnName(column int) string {
	var name []byte
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		name = append([]byte{byte('A' + (n-1)%26)}, name...)
	}
	return string(name)
}

// escapes are the characters that a workbook writes as _xHHHH_, one for each unit of UTF-16.
var escapes = spelling.Form(`_x[dD][89abAB][[:xdigit:]]{2}__x[dD][c-fC-F][[:xdigit:]]{2}_|_x[[:xdigit:]]{4}_`)

// unescape decodes them. What is no character stays as it is.
func unescape(text []byte) []byte {
	if !bytes.Contains(text, []byte("_x")) {
		return text
	}
	return escapes().ReplaceAllFunc(text, func(escape []byte) []byte {
		var units []uint16
		for _, hex := range [][]byte{escape[2:6], escape[max(0, len(escape)-5) : len(escape)-1]} {
			unit, _ := strconv.ParseUint(string(hex), 16, 16)
			units = append(units, uint16(unit))
		}
		runes := utf16.Decode(units[:len(escape)/7])
		if runes[0] == utf8.RuneError {
			return escape
		}
		return []byte(string(runes))
	})
}
