package xlsx

import (
	"encoding/xml"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// How many rows and columns a sheet of Excel has.
const (
	maxSheetRows = 1 << 20
	maxColumns   = 1 << 14
)

var (
	errRowOrder = broken("the rows of the sheet are not in order or beyond the last row of Excel")
	errCellAt   = broken("a cell does not stand where it says, or two stand in one place")
	errNoSheet  = broken("the part of the sheet is no sheet")
)

// sheetReader reads a sheet's rows one after another, as the file holds them.
type sheetReader struct {
	xml    *xmlReader
	max    int  // bytes of text a row
	inData bool // among the rows

	number        int  // of the present row in the sheet, from 1
	hidden        bool // the present row is
	long          bool // the present row has more text than max; its cells are not complete
	cells         []rawCell
	text          []byte // of all cells of the present row
	last          int    // column of the cell read last
	merged        int    // areas of merged cells, known at the end
	hiddenColumns []span // columns that are hidden
}

// rawCell is a cell as it is written. A row has one for each column up to its last.
type rawCell struct {
	kind       string // "n" number, "s" shared text, "str", "inlineStr", "b", "e", "d"; "": no cell here
	style      int
	start, end int // of its value in the reader's text
	formula    bool
	value      bool // a value is written, which may be empty
}

// span is a run of columns, counted from 0.
type span struct{ first, last int }

// newSheetReader reads the beginning of a sheet.
func newSheetReader(in io.Reader, limit int) (*sheetReader, error) {
	s := &sheetReader{xml: newXMLReader(in), max: limit}
	root, _, err := s.xml.nextChild()
	if err == nil && root.Name.Local != "worksheet" {
		err = errNoSheet
	}
	return s, unexpected(err)
}

// next reads the next row; io.EOF after the last, when the sheet is whole.
func (s *sheetReader) next() error {
	for {
		e, more, err := s.xml.nextChild()
		switch {
		case err != nil:
		case !more && s.inData:
			s.inData = false
		case !more: // what follows is read for the checksum of the part
			for err == nil {
				_, err = s.xml.Token()
			}
			return err
		case s.inData && e.Name.Local == "row":
			return s.row(e)
		case e.Name.Local == "sheetData":
			s.inData = true
		case e.Name.Local == "cols":
			err = s.xml.children(s.column)
		case e.Name.Local == "mergeCells":
			err = s.xml.children(s.mergedArea)
		default:
			err = s.xml.skip()
		}
		if err != nil {
			return unexpected(err)
		}
	}
}

func (s *sheetReader) mergedArea(xml.StartElement) error {
	s.merged++
	return s.xml.skip()
}

// column notes of columns whether they are hidden.
func (s *sheetReader) column(e xml.StartElement) error {
	first, _ := strconv.Atoi(attribute(e, "min"))
	last, _ := strconv.Atoi(attribute(e, "max"))
	if truth(attribute(e, "hidden")) && len(s.hiddenColumns) < maxColumns {
		s.hiddenColumns = append(s.hiddenColumns, span{first - 1, last - 1})
	}
	return s.xml.skip()
}

// hides tells whether a column is hidden.
func (s *sheetReader) hides(column int) bool {
	return slices.ContainsFunc(s.hiddenColumns, func(s span) bool { return s.first <= column && column <= s.last })
}

// row reads the cells of a row. Rows and cells may leave out where they stand: then they stand behind the one
// before.
func (s *sheetReader) row(e xml.StartElement) error {
	number := s.number + 1
	if at := attribute(e, "r"); at != "" {
		n, err := strconv.Atoi(at)
		if err != nil || n < number {
			return errRowOrder
		}
		number = n
	}
	if number > maxSheetRows {
		return errRowOrder
	}
	s.number, s.hidden, s.long, s.last = number, truth(attribute(e, "hidden")), false, -1
	s.cells, s.text = s.cells[:0], s.text[:0]
	return s.xml.children(s.cell)
}

// cell reads a cell into its column; those passed over are no cells.
func (s *sheetReader) cell(e xml.StartElement) error {
	if e.Name.Local != "c" {
		return s.xml.skip()
	}
	c, column := rawCell{kind: "n", start: len(s.text)}, s.last+1
	for _, a := range e.Attr {
		switch a.Name.Local {
		case "r":
			at, row, ok := reference(a.Value)
			if !ok || row != s.number {
				return errCellAt
			}
			column = at
		case "s":
			style, err := strconv.Atoi(a.Value)
			if err != nil {
				return errStyle
			}
			c.style = style
		case "t":
			c.kind = a.Value
		}
	}
	if column >= maxColumns {
		return errCellAt
	}
	if err := s.content(&c); err != nil {
		return err
	}
	c.end = len(s.text)
	for len(s.cells) <= column {
		s.cells = append(s.cells, rawCell{})
	}
	if s.cells[column].kind != "" {
		return errCellAt
	}
	s.cells[column], s.last = c, column
	return nil
}

// content reads what is in a cell: its value, or the text that is written in it.
func (s *sheetReader) content(c *rawCell) error {
	return s.xml.children(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "v":
			c.value = true
			return s.xml.characters(s.gather)
		case "is":
			c.value = true
			return s.xml.richText(s.gather)
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

// holdsText tells whether a cell of the present row has a value.
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
var escapes = regexp.MustCompile(`_x[dD][89abAB][[:xdigit:]]{2}__x[dD][c-fC-F][[:xdigit:]]{2}_|_x[[:xdigit:]]{4}_`)

// unescape decodes them. What is no character stays as it is.
func unescape(text string) string {
	if !strings.Contains(text, "_x") {
		return text
	}
	return escapes.ReplaceAllStringFunc(text, func(escape string) string {
		var units []uint16
		for _, hex := range []string{escape[2:6], escape[max(0, len(escape)-5) : len(escape)-1]} {
			unit, _ := strconv.ParseUint(hex, 16, 16)
			units = append(units, uint16(unit))
		}
		runes := utf16.Decode(units[:len(escape)/7])
		if runes[0] == utf8.RuneError {
			return escape
		}
		return string(runes)
	})
}
