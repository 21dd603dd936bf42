package xlsx

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"leadferry/importer/source/xlsx/numfmt"
	"leadferry/internal/spelling"
)

// How many rows and columns a sheet of Excel has.
const (
	maxSheetRows = 1 << 20
	maxColumns   = 1 << 14
)

// sheetReader reads a sheet's rows one after another, and their cells as Excel shows them.
type sheetReader struct {
	xml    *tokens
	format formatter
	max    int  // bytes of text a row
	inData bool // among the rows

	number int    // of the present row in the sheet, from 1
	hidden bool   // the present row is
	long   bool   // the present row has more text than max; its cells are not complete
	column int    // of the last cell that was read, from 0; -1: none
	cells  []cell // of the present row that hold something
	text   []byte // theirs
	raw    []byte // the value of the last cell as it is written
}

// cell is a cell that holds something.
type cell struct {
	column, start, end int    // from 0; where its text is in that of its row
	fault              *fault // why it cannot be taken, or nil
}

// rawCell is what is written of a cell beside its value.
type rawCell struct {
	column  int
	kind    string // "n" number, "s" shared text, "str", "inlineStr", "b", "e", "d"
	style   int
	formula bool
	value   bool // a value is written, which may be empty
}

func newSheetReader(in io.Reader, format formatter, limit int) (*sheetReader, error) {
	s := &sheetReader{xml: newTokens(in), format: format, max: limit}
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
		default:
			err = s.xml.skip()
		}
		if err != nil {
			return unexpected(err)
		}
	}
}

// row reads the cells of a row. Rows and cells may leave out where they are: then they are behind the one before.
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
	s.column, s.cells, s.text = -1, s.cells[:0], s.text[:0]
	return s.xml.children(func() error {
		if s.xml.name() == "c" {
			return s.cell()
		}
		return s.xml.skip()
	})
}

// cell reads a cell; those passed over are no cells.
func (s *sheetReader) cell() error {
	c := rawCell{kind: "n", column: s.column + 1}
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
			c.kind = a.Value
		}
	}
	if c.column >= maxColumns || c.column <= s.column {
		return errCellAt
	}
	s.column = c.column
	if err := s.content(&c); err != nil || s.long {
		return err
	}
	shown, err := s.format.show(&c, s.raw)
	if start := len(s.text); len(shown.text) > 0 || shown.fault != nil {
		s.text = append(s.text, shown.text...)
		s.cells = append(s.cells, cell{c.column, start, len(s.text), shown.fault})
	}
	s.long = len(s.text) > s.max
	return err
}

// content reads what is in a cell: the text that is written in it, or else its value.
func (s *sheetReader) content(c *rawCell) error {
	s.raw = s.raw[:0]
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
			s.raw = s.raw[:0]
			return s.xml.richText(s.gather)
		case "f":
			c.formula = true
		}
		return s.xml.skip()
	})
}

// gather appends a piece of a cell's value, up to the row's limit.
func (s *sheetReader) gather(text []byte) error {
	if s.long = s.long || len(s.text)+len(s.raw)+len(text) > s.max; !s.long {
		s.raw = append(s.raw, text...)
	}
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

// columnName is the reverse for a column: "AB".
func columnName(column int) string {
	var name []byte
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		name = append([]byte{byte('A' + (n-1)%26)}, name...)
	}
	return string(name)
}

// escapes are the characters that a workbook writes as _xHHHH_.
var escapes = spelling.Form(`_x[[:xdigit:]]{4}_`)

// unescape decodes them. What is no character stays as it is.
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

// fault says why a cell cannot be taken as it is shown, and what to do.
type fault struct{ text, hint string }

var (
	faultFormula = &fault{
		"holds a formula without its result",
		"open the workbook in Excel, which computes it, and save it again",
	}
	faultComputed = &fault{
		"holds a formula with the result 0, which Excel may not have computed yet",
		faultFormula.hint,
	}
	faultDigits = &fault{"holds " + numfmt.ErrDigits.Error(), "format the column as text and enter the number again"}
	faultDate   = &fault{"holds " + numfmt.ErrDate.Error(), "enter the date again, or change the format of the cell"}
	faultNumber = &fault{
		"holds something else where a number has to be",
		"open the workbook in Excel, which may repair it, and save it again",
	}
	faultNUL = &fault{"holds a NUL character", "remove it"}
)

// errorForm is what the errors of Excel look like. Anything else is not repeated.
var errorForm = spelling.Form(`^#[A-Z_/0]{2,15}[!?]?$`)

func faultOf(shown string) *fault {
	text := "holds an error"
	if errorForm().MatchString(shown) {
		text = "holds the error " + shown
	}
	return &fault{text, "mend its formula, or empty the cell"}
}

// shown is a cell's value as it is shown. Its text is valid until the next one is made.
type shown struct {
	text  []byte
	fault *fault // or nil
}

// formatter makes text of cells.
type formatter struct {
	shared   *sharedTexts
	styles   *styles
	from1904 bool
	computes bool // the results of formulas may not be computed yet
}

// show gives the text of a cell with this value. The error says that the workbook is damaged.
func (f *formatter) show(c *rawCell, value []byte) (shown, error) {
	bare := bytes.TrimSpace(value)
	is := string(bare)
	switch {
	case c.kind == "e":
		return shown{text: value, fault: faultOf(string(value))}, nil
	case c.formula && !c.value:
		return shown{fault: faultFormula}, nil
	case c.formula && f.computes && c.kind == "n" && is == "0": // which XlsxWriter and others put there
		return shown{text: value, fault: faultComputed}, nil
	case c.kind == "str", c.kind == "inlineStr", c.kind == "d": // a date in ISO 8601, which some programs write
		return textOf(unescape(value)), nil
	case is == "" && (c.kind == "n" || c.kind == "s" || c.kind == "b"):
		return shown{}, nil
	case c.kind == "n":
		return f.number(bare, c.style)
	case c.kind == "s":
		index, err := strconv.Atoi(is)
		if err != nil {
			return shown{}, errShared
		}
		text, err := f.shared.get(index)
		return textOf(text), err
	case c.kind == "b" && (is == "0" || is == "false"):
		return shown{text: []byte("FALSE")}, nil
	case c.kind == "b" && (is == "1" || is == "true"):
		return shown{text: []byte("TRUE")}, nil
	}
	return shown{}, errKind
}

func textOf(text []byte) shown {
	if bytes.IndexByte(text, 0) >= 0 {
		return shown{text: text, fault: faultNUL}
	}
	return shown{text: text}
}

// number writes a number as its format says; one with a fault as it is written.
func (f *formatter) number(value []byte, style int) (shown, error) {
	format, err := f.styles.of(style)
	if err != nil {
		return shown{}, err
	}
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil || len(bytes.Trim(value, "0123456789+-.eE")) > 0 || math.IsInf(v, 0) {
		return shown{text: value, fault: faultNumber}, nil
	}
	text, err := format.Show(v, f.from1904)
	switch {
	case errors.Is(err, numfmt.ErrDigits):
		return shown{text: value, fault: faultDigits}, nil
	case err != nil:
		return shown{text: value, fault: faultDate}, nil
	}
	return shown{text: []byte(text)}, nil
}

// styles are the number formats of a workbook, by the styles of its cells.
type styles struct {
	formats []numfmt.Format // one for each style; nil until it is needed
	ids     []int
	codes   map[int]string // formats that the workbook has of its own
}

// readStyles reads the part with the styles; a workbook may have none.
func (b *book) readStyles() (*styles, error) {
	s := &styles{codes: map[int]string{}}
	if b.styles == "" {
		return s, nil
	}
	var part struct {
		Formats []struct {
			ID     int    `xml:"numFmtId,attr"`
			Code   string `xml:"formatCode,attr"`
			Code16 string `xml:"formatCode16,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			Format int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	if err := b.parts.decode(b.styles, &part); err != nil {
		return nil, err
	}
	for _, f := range part.Formats {
		s.codes[f.ID] = f.Code
		if f.Code16 != "" {
			s.codes[f.ID] = f.Code16
		}
	}
	for _, c := range part.Cells {
		s.ids = append(s.ids, c.Format)
	}
	s.formats = make([]numfmt.Format, len(s.ids))
	return s, nil
}

// of gives the number format of a style. A workbook's own code goes before the one that is built in.
func (s *styles) of(style int) (numfmt.Format, error) {
	if len(s.ids) == 0 {
		return numfmt.General, nil
	}
	if style < 0 || style >= len(s.ids) {
		return nil, errStyle
	}
	if s.formats[style] == nil {
		id := s.ids[style]
		if code, own := s.codes[id]; own {
			s.formats[style] = numfmt.Compile(code)
		} else {
			s.formats[style] = numfmt.BuiltIn(id)
		}
	}
	return s.formats[style], nil
}
