package xlsx

import (
	"math"
	"strconv"
	"strings"
)

// Fault says why a cell cannot be taken as it is shown, and what to do.
type Fault struct{ Text, Hint string }

var (
	faultFormula = &Fault{"holds a formula without its result", "open the workbook in Excel, which computes it, and save it anew"}
	faultDigits  = &Fault{"holds a number of more than 15 digits, of which Excel keeps only 15", "format the column as text and enter the number again"}
	faultDate    = &Fault{"holds a number that is no date but has the format of one", "enter the date again, or change the format of the cell"}
	faultNumber  = &Fault{"holds something else where a number has to be", "open the workbook in Excel, which may repair it, and save it anew"}
	faultNUL     = &Fault{"holds a NUL character", "remove it"}
)

// knownErrors are the errors of Excel. Anything else is not repeated.
var knownErrors = map[string]bool{
	"#DIV/0!": true, "#N/A": true, "#NAME?": true, "#NULL!": true, "#NUM!": true, "#REF!": true, "#VALUE!": true,
	"#GETTING_DATA": true, "#SPILL!": true, "#CALC!": true, "#FIELD!": true, "#BLOCKED!": true,
	"#CONNECT!": true, "#UNKNOWN!": true, "#BUSY!": true, "#EXTERNAL!": true, "#PYTHON!": true,
}

// faultOf is the fault of a cell that shows an error.
func faultOf(shown string) *Fault {
	const hint = "mend its formula, or empty the cell"
	if knownErrors[shown] {
		return &Fault{"holds the error " + shown, hint}
	}
	return &Fault{"holds an error", hint}
}

// Cell is a cell as it is shown.
type Cell struct {
	Text     string
	Fault    *Fault // or nil
	Number   bool   // a number as it is, that may have lost zeros before it
	Exponent bool   // the format shows an exponent, the text does not
	Blanked  bool   // the format shows nothing of it
}

// formatter makes text of cells.
type formatter struct {
	shared   *sharedTexts
	styles   *styles
	calendar calendar
	sheet    *sheetReader
}

// cell gives the text of a cell of the present row. The error says that the
// workbook is damaged.
func (f *formatter) cell(c *rawCell) (Cell, error) {
	value := f.sheet.text[c.start:c.end]
	switch c.kind {
	case "":
		return Cell{}, nil
	case "e":
		return Cell{Text: string(value), Fault: faultOf(string(value))}, nil
	}
	if c.formula && !c.value {
		return Cell{Fault: faultFormula}, nil
	}
	switch c.kind {
	case "n":
		return f.number(strings.TrimSpace(string(value)), c.style)
	case "s":
		return f.sharedText(strings.TrimSpace(string(value)))
	case "b":
		return boolean(strings.TrimSpace(string(value)))
	case "str", "inlineStr":
		return plainText(string(unescape(value))), nil
	case "d": // a date in ISO 8601, which some programs write
		return plainText(string(value)), nil
	}
	return Cell{}, errKind
}

var errKind = &Damage{"the workbook is damaged: a cell is of an unknown kind"}

func (f *formatter) sharedText(value string) (Cell, error) {
	if value == "" {
		return Cell{}, nil
	}
	index, err := strconv.Atoi(value)
	if err != nil {
		return Cell{}, errShared
	}
	text, err := f.shared.get(index)
	return plainText(text), err
}

func plainText(text string) Cell {
	if strings.IndexByte(text, 0) >= 0 {
		return Cell{Text: text, Fault: faultNUL}
	}
	return Cell{Text: text}
}

func boolean(value string) (Cell, error) {
	switch value {
	case "":
		return Cell{}, nil
	case "0", "false":
		return Cell{Text: "FALSE"}, nil
	case "1", "true":
		return Cell{Text: "TRUE"}, nil
	}
	return Cell{}, errKind
}

// number writes a number as its format says. All digits are kept where Excel
// would round them away for want of room: the general and scientific formats
// turn an identifier into 1.23E+13.
func (f *formatter) number(value string, style int) (Cell, error) {
	if value == "" {
		return Cell{}, nil
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || strings.Trim(value, "0123456789+-.eE") != "" || math.IsInf(v, 0) {
		return Cell{Text: value, Fault: faultNumber}, nil
	}
	format, err := f.styles.of(style)
	if err != nil {
		return Cell{}, err
	}
	c := f.formatted(v, format)
	if c.Fault != nil {
		c.Text = value // as it is written
	}
	return c, nil
}

// formatted is a number as a format shows it.
func (f *formatter) formatted(v float64, format *numberFormat) Cell {
	section, shown := format.choose(v)
	if section == nil {
		return f.plainNumber(v)
	}
	switch {
	case section.kind.isDate():
		return f.date(v, section)
	case section.kind == digits, section.kind == fraction:
		return f.filled(v, shown, section)
	}
	c := f.plainNumber(v)
	c.Exponent = section.kind == scientific
	return c
}

func (f *formatter) plainNumber(v float64) Cell {
	if loses(v) {
		return Cell{Fault: faultDigits}
	}
	return Cell{Text: exact(v), Number: true}
}

// filled writes a number into places for digits.
func (f *formatter) filled(v, shown float64, of *section) Cell {
	if loses(v) {
		return Cell{Fault: faultDigits}
	}
	if of.kind == fraction {
		return Cell{Text: of.divide(shown)}
	}
	text := of.fill(shown)
	return Cell{Text: text, Number: !of.places.padded(), Blanked: text == ""}
}

func (f *formatter) date(v float64, of *section) Cell {
	switch {
	case !f.calendar.shows(v):
		return Cell{Fault: faultDate}
	case of.kind == codedDate:
		return Cell{Text: of.clock(f.calendar, v)}
	}
	return Cell{Text: f.calendar.write(v, of.kind)}
}
