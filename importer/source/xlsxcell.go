package source

import (
	"math"
	"strconv"
	"strings"
)

// cellFault says why a cell cannot be taken as it is shown, and what to do.
type cellFault struct{ text, hint string }

var (
	faultError   = &cellFault{"holds an error", "mend its formula, or empty the cell"}
	faultFormula = &cellFault{"holds a formula without its result", "open the workbook in Excel, which computes it, and save it anew"}
	faultDigits  = &cellFault{"holds a number of more than 15 digits, of which Excel keeps only 15", "format the column as text and enter the number again"}
	faultDate    = &cellFault{"holds a number that is no date but has the format of one", "enter the date again, or change the format of the cell"}
	faultNumber  = &cellFault{"holds something else where a number has to be", "open the workbook in Excel, which may repair it, and save it anew"}
	faultNUL     = &cellFault{"holds a NUL character", "remove it"}
)

// cellText is a cell as it is shown.
type cellText struct {
	text    string
	fault   *cellFault // or nil
	number  bool       // a number as it is, that may have lost zeros before it
	written bool       // the format shows an exponent, the text does not
	blanked bool       // the format shows nothing of it
}

// shower makes text of cells.
type shower struct {
	shared   *sharedTexts
	styles   *styles
	calendar calendar
	present  *sheetReader
}

// show gives the text of a cell of the present row. The error says that the
// workbook is damaged.
func (s *shower) show(c *rawCell) (cellText, error) {
	value := s.present.text[c.start:c.end]
	switch c.kind {
	case "":
		return cellText{}, nil
	case "e":
		return cellText{text: string(value), fault: faultError}, nil
	}
	if c.formula && !c.value {
		return cellText{fault: faultFormula}, nil
	}
	switch c.kind {
	case "n":
		return s.number(strings.TrimSpace(string(value)), c.style)
	case "s":
		return s.sharedText(strings.TrimSpace(string(value)))
	case "b":
		return boolean(strings.TrimSpace(string(value)))
	case "str", "inlineStr":
		return plainText(string(unescape(value))), nil
	case "d": // a date in ISO 8601, which some programs write
		return plainText(string(value)), nil
	}
	return cellText{}, errKind
}

var errKind = &damage{"the workbook is damaged: a cell is of an unknown kind"}

func (s *shower) sharedText(value string) (cellText, error) {
	if value == "" {
		return cellText{}, nil
	}
	index, err := strconv.Atoi(value)
	if err != nil {
		return cellText{}, errShared
	}
	text, err := s.shared.get(index)
	return plainText(text), err
}

func plainText(text string) cellText {
	if strings.IndexByte(text, 0) >= 0 {
		return cellText{text: text, fault: faultNUL}
	}
	return cellText{text: text}
}

func boolean(value string) (cellText, error) {
	switch value {
	case "":
		return cellText{}, nil
	case "0", "false":
		return cellText{text: "FALSE"}, nil
	case "1", "true":
		return cellText{text: "TRUE"}, nil
	}
	return cellText{}, errKind
}

// number writes a number as its format says. All digits are kept where Excel
// would round them away for want of room: the general and scientific formats
// turn an identifier into 1.23E+13.
func (s *shower) number(value string, style int) (cellText, error) {
	if value == "" {
		return cellText{}, nil
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || strings.Trim(value, "0123456789+-.eE") != "" || math.IsInf(v, 0) {
		return cellText{text: value, fault: faultNumber}, nil
	}
	format, err := s.styles.of(style)
	if err != nil {
		return cellText{}, err
	}
	c := s.formatted(v, format)
	if c.fault != nil {
		c.text = value // as it is written
	}
	return c, nil
}

// formatted is a number as a format shows it.
func (s *shower) formatted(v float64, format *numberFormat) cellText {
	section, shown := format.choose(v)
	if section == nil {
		return s.plainNumber(v)
	}
	switch {
	case section.kind.isDate():
		return s.date(v, section)
	case section.kind == digits, section.kind == fraction:
		return s.filled(v, shown, section)
	}
	c := s.plainNumber(v)
	c.written = section.kind == scientific
	return c
}

func (s *shower) plainNumber(v float64) cellText {
	if loses(v) {
		return cellText{fault: faultDigits}
	}
	return cellText{text: exact(v), number: true}
}

// filled writes a number into places for digits.
func (s *shower) filled(v, shown float64, of *section) cellText {
	if loses(v) {
		return cellText{fault: faultDigits}
	}
	if of.kind == fraction {
		return cellText{text: of.divide(shown)}
	}
	text := of.fill(shown)
	return cellText{text: text, number: !of.places.padded(), blanked: text == ""}
}

func (s *shower) date(v float64, of *section) cellText {
	switch {
	case !s.calendar.shows(v):
		return cellText{fault: faultDate}
	case of.kind == codedDate:
		return cellText{text: of.clock(s.calendar, v)}
	}
	return cellText{text: s.calendar.write(v, of.kind)}
}
