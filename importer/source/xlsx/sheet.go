package xlsx

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

// maxSheetRows is how many rows a sheet of Excel can have.
const maxSheetRows = 1 << 20

// sheetReader reads a sheet's rows one after another, with their cells as Excel shows them.
type sheetReader struct {
	xml    *elements
	format formatter
	max    int  // bytes of text that a row may have
	inData bool // the rows have begun

	number int    // of the current row in the sheet, from 1
	hidden bool   // the current row is hidden
	long   bool   // the current row has more text than max; its cells are incomplete
	column int    // of the last cell read, from 0; -1: none
	cells  []cell // cells of the current row that hold something
	text   []byte // their texts, one after another
	raw    []byte // the value of the last cell, as written
}

// cell is a cell that holds something.
type cell struct {
	column, start, end int           // the column counts from 0; row text[start:end] is the cell's
	fault              *rows.Problem // why it cannot be used, or nil
}

// rawCell is what the file says about a cell, besides its value.
type rawCell struct {
	kind    string // "n" number, "s" shared text, "str", "inlineStr", "b", "e", "d"
	style   string // its index
	formula bool
	value   bool // it has a value, perhaps an empty one
}

func newSheetReader(in io.Reader, format formatter, limit int) (*sheetReader, error) {
	s := &sheetReader{xml: newElements(in), format: format, max: limit}
	root, _, err := s.xml.next()
	if err == nil && root.Name.Local != "worksheet" {
		err = broken("the part of the sheet is no sheet")
	}
	return s, err
}

// next reads the next row; io.EOF after the last one.
func (s *sheetReader) next() error {
	for {
		start, begins, err := s.xml.next()
		switch {
		case err != nil:
		case !begins: // what follows the rows is not part of the table
			return io.EOF
		case s.inData && start.Name.Local == "row":
			return s.row(start)
		case !s.inData && start.Name.Local == "sheetData":
			s.inData = true
		default:
			err = s.xml.Skip()
		}
		if err != nil {
			return err
		}
	}
}

// row reads the cells of a row. A row or cell without a place follows the one before it.
func (s *sheetReader) row(start xml.StartElement) error {
	number := s.number + 1
	s.hidden, s.long, s.column, s.cells, s.text = false, false, -1, s.cells[:0], s.text[:0]
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "r":
			n, err := strconv.Atoi(a.Value)
			if err != nil || n < number {
				return misplaced()
			}
			number = n
		case "hidden":
			s.hidden = truth(a.Value)
		}
	}
	if number > maxSheetRows {
		return misplaced()
	}
	s.number = number
	return s.xml.each(func(start xml.StartElement) error {
		if start.Name.Local == "c" {
			return s.cell(start)
		}
		return s.xml.Skip()
	})
}

// cell reads a cell.
func (s *sheetReader) cell(start xml.StartElement) error {
	c, column := rawCell{kind: "n", style: "0"}, s.column+1
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "r":
			at, row, ok := reference(a.Value)
			if !ok || row != s.number {
				return misplaced()
			}
			column = at
		case "s":
			c.style = a.Value
		case "t":
			c.kind = a.Value
		}
	}
	if column >= rows.MaxColumns || column <= s.column {
		return misplaced()
	}
	s.column = column
	if err := s.content(&c); err != nil {
		return err
	}
	if s.long = s.long || len(s.text)+len(s.raw) > s.max; s.long {
		return nil
	}
	text, fault, err := s.format.show(&c, s.raw)
	if from := len(s.text); len(text) > 0 || fault != nil {
		s.text = append(s.text, text...)
		s.cells = append(s.cells, cell{column, from, len(s.text), fault})
	}
	s.long = len(s.text) > s.max
	return err
}

// content reads the content of a cell: its inline text (is) or, without one, its value (v).
func (s *sheetReader) content(c *rawCell) error {
	s.raw = s.raw[:0]
	inline := false
	return s.xml.each(func(start xml.StartElement) (err error) {
		switch of := start.Name.Local; {
		case of == "is":
			c.value, inline = true, true
			s.raw, err = s.xml.richText(s.raw[:0])
		case of == "v" && !inline:
			c.value = true
			s.raw, err = s.xml.text(s.raw)
		default:
			c.formula = c.formula || of == "f"
			err = s.xml.Skip()
		}
		return err
	})
}

// reference reads a cell's name, for example "AB12". The column counts from 0.
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

// columnName writes a column as letters, for example "AB".
func columnName(column int) string {
	var name []byte
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		name = append([]byte{byte('A' + (n-1)%26)}, name...)
	}
	return string(name)
}

// escapes match characters written as _xHHHH_ in a workbook.
var escapes = spelling.Form(`_x[[:xdigit:]]{4}_`)

// unescape decodes escapes. It keeps an escape that is not a valid character.
func unescape(text []byte) []byte {
	if !bytes.Contains(text, []byte("_x")) {
		return text
	}
	return escapes().ReplaceAllFunc(text, func(escape []byte) []byte {
		r, _ := strconv.ParseUint(string(escape[2:6]), 16, 16)
		if !utf8.ValidRune(rune(r)) {
			return escape
		}
		return []byte(string(rune(r)))
	})
}

// fault returns the problem of a cell that cannot be used, with what to do.
func fault(text, hint string) *rows.Problem { return rows.Flaw("cell", text, hint) }

const computeHint = "open the workbook in Excel, which computes it, and save it again"

// errorForm matches the errors of Excel, for example #REF!. Messages quote no other content of a cell.
var errorForm = spelling.Form(`^#[A-Z_/0]{2,15}[!?]?$`)

// formatter writes the text of cells.
type formatter struct {
	shared   *sharedTexts
	styles   []format // none if the workbook has no styles
	from1904 bool     // days are counted from 1904, not from 1900
	computes bool     // formulas may have no computed results yet
}

// show returns the text of a cell with this value, and what is wrong with the cell. err means a damaged workbook.
func (f *formatter) show(c *rawCell, value []byte) (text []byte, wrong *rows.Problem, err error) {
	bare := bytes.TrimSpace(value)
	is := string(bare)
	switch {
	case c.kind == "e":
		named := "holds an error"
		if errorForm().Match(value) {
			named = "holds the error " + string(value)
		}
		return value, fault(named, "correct its formula, or empty the cell"), nil
	case c.formula && (!c.value || is == "" && c.kind != "str"): // openpyxl writes an empty number
		return nil, fault("holds a formula without its result", computeHint), nil
	case c.formula && f.computes && c.kind == "n" && is == "0": // XlsxWriter and others write 0 as the result
		const zero = "holds a formula with the result 0, which Excel may not have computed yet"
		return value, fault(zero, computeHint), nil
	case c.kind == "str", c.kind == "inlineStr", c.kind == "d": // "d" is a date in ISO 8601, as some programs write it
		text = unescape(value)
	case is == "" && (c.kind == "n" || c.kind == "s" || c.kind == "b"):
	case c.kind == "n":
		return f.number(bare, c.style)
	case c.kind == "s":
		text, err = f.shared.get(is)
	case c.kind == "b" && (is == "0" || is == "false"):
		text = []byte("FALSE")
	case c.kind == "b" && (is == "1" || is == "true"):
		text = []byte("TRUE")
	default:
		err = broken("a cell is of an unknown kind")
	}
	if bytes.IndexByte(text, 0) >= 0 {
		wrong = fault("holds a NUL character", "remove it")
	}
	return text, wrong, err
}

// number writes a number in its format. A number with a fault is written as in the file.
func (f *formatter) number(value []byte, style string) (text []byte, wrong *rows.Problem, err error) {
	as := general
	if len(f.styles) > 0 {
		i, err := strconv.Atoi(style)
		if err != nil || i < 0 || i >= len(f.styles) {
			return nil, nil, broken("a cell points to a number format that is not there")
		}
		as = f.styles[i]
	}
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil || len(bytes.Trim(value, "0123456789+-.eE")) > 0 || math.IsInf(v, 0) {
		return value, fault("holds something else where a number has to be",
			"open the workbook in Excel, which may repair it, and save it again"), nil
	}
	shown, wrong := as.show(v, f.from1904)
	if wrong != nil {
		return value, wrong, nil
	}
	return []byte(shown), nil, nil
}
