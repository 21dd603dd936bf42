package xlsx

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// How many rows and columns a sheet of Excel has.
const (
	maxSheetRows = 1 << 20
	maxColumns   = 1 << 14
)

var (
	errRowOrder = &Damage{"the workbook is damaged: the rows of the sheet are not in order or beyond the last row of Excel"}
	errCellAt   = &Damage{"the workbook is damaged: a cell does not stand where it says, or two stand in one place"}
	errNoSheet  = &Damage{"the workbook is damaged: the part of the sheet is no sheet"}
)

// sheetReader reads a sheet's rows one after another, as the file holds them.
type sheetReader struct {
	xml *xml.Decoder
	max int // bytes of text a row

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

// newSheetReader reads up to the first row; io.EOF when there is none.
func newSheetReader(in io.Reader, limit int) (*sheetReader, error) {
	s := &sheetReader{xml: newXMLDecoder(in), max: limit}
	root, err := s.element()
	if err != nil {
		return nil, unexpected(err)
	}
	if root == nil || root.Name.Local != "worksheet" {
		return nil, errNoSheet
	}
	for {
		e, err := s.element()
		switch {
		case err != nil:
			return nil, err
		case e == nil:
			return s, s.end()
		case e.Name.Local == "sheetData":
			return s, nil
		case e.Name.Local == "cols":
			err = s.columns()
		default:
			err = s.xml.Skip()
		}
		if err != nil {
			return nil, err
		}
	}
}

// element goes on to the next element inside the present one; nil where that ends.
func (s *sheetReader) element() (*xml.StartElement, error) {
	for {
		t, err := s.xml.Token()
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			return &t, nil
		case xml.EndElement:
			return nil, nil
		}
	}
}

// columns notes which columns are hidden.
func (s *sheetReader) columns() error {
	for {
		e, err := s.element()
		if e == nil || err != nil {
			return err
		}
		first, last, hidden := 0, 0, false
		for _, a := range e.Attr {
			switch a.Name.Local {
			case "min":
				first, _ = strconv.Atoi(a.Value)
			case "max":
				last, _ = strconv.Atoi(a.Value)
			case "hidden":
				hidden = truth(a.Value)
			}
		}
		if hidden && len(s.hiddenColumns) < maxColumns {
			s.hiddenColumns = append(s.hiddenColumns, span{first - 1, last - 1})
		}
		if err := s.xml.Skip(); err != nil {
			return err
		}
	}
}

// next reads the next row; io.EOF after the last, when the sheet is whole.
func (s *sheetReader) next() error {
	for {
		e, err := s.element()
		if err != nil {
			return unexpected(err)
		}
		if e == nil {
			return s.end()
		}
		if e.Name.Local == "row" {
			return unexpected(s.row(e))
		}
		if err := s.xml.Skip(); err != nil {
			return unexpected(err)
		}
	}
}

// end reads what follows the rows, so that every byte and the checksum are seen.
func (s *sheetReader) end() error {
	for {
		t, err := s.xml.Token()
		if err != nil {
			return err
		}
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "mergeCell" {
			s.merged++
		}
	}
}

// unexpected keeps an end in the midst of a row from looking like the end of the sheet.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// row reads the cells of a row. Rows and cells may leave out where they stand:
// then they stand behind the one before.
func (s *sheetReader) row(e *xml.StartElement) error {
	number, hidden := s.number+1, false
	for _, a := range e.Attr {
		switch a.Name.Local {
		case "r":
			n, err := strconv.Atoi(a.Value)
			if err != nil || n < number {
				return errRowOrder
			}
			number = n
		case "hidden":
			hidden = truth(a.Value)
		}
	}
	if number > maxSheetRows {
		return errRowOrder
	}
	s.number, s.hidden, s.long, s.last = number, hidden, false, -1
	s.cells, s.text = s.cells[:0], s.text[:0]
	for {
		e, err := s.element()
		if e == nil || err != nil {
			return err
		}
		if e.Name.Local != "c" {
			err = s.xml.Skip()
		} else {
			err = s.cell(e)
		}
		if err != nil {
			return err
		}
	}
}

func (s *sheetReader) cell(e *xml.StartElement) error {
	c, column := rawCell{kind: "n"}, s.last+1
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
	c.start = len(s.text)
	if err := s.content(&c); err != nil {
		return err
	}
	c.end = len(s.text)
	return s.place(column, c)
}

// place puts a cell into its column; those passed over are no cells.
func (s *sheetReader) place(column int, c rawCell) error {
	for len(s.cells) <= column {
		s.cells = append(s.cells, rawCell{})
	}
	if s.cells[column].kind != "" {
		return errCellAt
	}
	s.cells[column], s.last = c, column
	return nil
}

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

// ColumnName is the reverse for a column: "AB".
func ColumnName(column int) string {
	var name []byte
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		name = append([]byte{byte('A' + (n-1)%26)}, name...)
	}
	return string(name)
}

// content reads what is in a cell: its value, or the text that is written in it.
func (s *sheetReader) content(c *rawCell) error {
	for {
		e, err := s.element()
		if e == nil || err != nil {
			return err
		}
		switch e.Name.Local {
		case "v":
			c.value = true
			err = s.gather()
		case "is":
			c.value = true
			err = richText(s.xml, s.gather)
		case "f":
			c.formula = true
			err = s.xml.Skip()
		default:
			err = s.xml.Skip()
		}
		if err != nil {
			return err
		}
	}
}

// gather appends the text of the present element, up to the row's limit.
func (s *sheetReader) gather() error {
	return characters(s.xml, func(text []byte) {
		if len(s.text)+len(text) > s.max {
			s.long = true
			return
		}
		s.text = append(s.text, text...)
	})
}

// characters gives the text of the present element to add, piece by piece.
func characters(in *xml.Decoder, add func([]byte)) error {
	for {
		t, err := in.Token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.CharData:
			add(t)
		case xml.StartElement:
			if err := in.Skip(); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		}
	}
}

// richText calls gather for each text of an element that holds one, or many in
// several fonts. Readings of Japanese words (rPh) are no part of the text.
func richText(in *xml.Decoder, gather func() error) error {
	for depth := 0; ; {
		t, err := in.Token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch {
			case t.Name.Local == "t":
				err = gather()
			case t.Name.Local == "r" && depth == 0:
				depth++
			default:
				err = in.Skip()
			}
		case xml.EndElement:
			if depth == 0 {
				return nil
			}
			depth--
		}
		if err != nil {
			return err
		}
	}
}

// holdsText tells whether a cell of the present row has a value.
func (s *sheetReader) holdsText() bool { return s.long || len(s.text) > 0 }

// unescape decodes the characters that a workbook writes as _xHHHH_, one for
// each unit of UTF-16. What is no character stays as it is.
func unescape(text []byte) []byte {
	at := bytes.Index(text, []byte("_x"))
	if at < 0 {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:at]...)
	for text = text[at:]; len(text) > 0; {
		unit, ok := escaped(text)
		size := 7
		if low, two := escaped(text[min(size, len(text)):]); ok && utf16.IsSurrogate(unit) {
			unit = utf16.DecodeRune(unit, low)
			ok = two && unit != utf8.RuneError
			size = 14
		}
		if ok {
			out, text = utf8.AppendRune(out, unit), text[size:]
		} else {
			out, text = append(out, text[0]), text[1:]
		}
	}
	return out
}

// escaped reads an escape that text begins with.
func escaped(text []byte) (unit rune, ok bool) {
	if len(text) < 7 || text[0] != '_' || text[1] != 'x' || text[6] != '_' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
