package xlsx

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"leadferry/importer/source/xlsx/numfmt"
)

// fault says why a cell cannot be taken as it is shown, and what to do.
type fault struct{ text, hint string }

var (
	faultFormula = &fault{"holds a formula without its result", "open the workbook in Excel, which computes it, and save it anew"}
	faultDigits  = &fault{"holds " + numfmt.ErrDigits.Error(), "format the column as text and enter the number again"}
	faultDate    = &fault{"holds " + numfmt.ErrDate.Error(), "enter the date again, or change the format of the cell"}
	faultNumber  = &fault{"holds something else where a number has to be", "open the workbook in Excel, which may repair it, and save it anew"}
	faultNUL     = &fault{"holds a NUL character", "remove it"}
)

// knownErrors are the errors of Excel. Anything else is not repeated.
var knownErrors = map[string]bool{
	"#DIV/0!": true, "#N/A": true, "#NAME?": true, "#NULL!": true, "#NUM!": true, "#REF!": true, "#VALUE!": true,
	"#GETTING_DATA": true, "#SPILL!": true, "#CALC!": true, "#FIELD!": true, "#BLOCKED!": true,
	"#CONNECT!": true, "#UNKNOWN!": true, "#BUSY!": true, "#EXTERNAL!": true, "#PYTHON!": true,
}

// faultOf is the fault of a cell that shows an error.
func faultOf(shown string) *fault {
	text := "holds an error"
	if knownErrors[shown] {
		text = "holds the error " + shown
	}
	return &fault{text, "mend its formula, or empty the cell"}
}

// cell is a cell as it is shown.
type cell struct {
	numfmt.Shown
	fault *fault // or nil
}

// formatter makes text of cells.
type formatter struct {
	shared   *sharedTexts
	styles   *styles
	from1904 bool
}

var errKind = broken("a cell is of an unknown kind")

// cell gives the text of a cell with this value. The error says that the workbook is damaged.
func (f *formatter) cell(c rawCell, value string) (cell, error) {
	switch {
	case c.kind == "":
		return cell{}, nil
	case c.kind == "e":
		return faulty(value, faultOf(value)), nil
	case c.formula && !c.value:
		return faulty("", faultFormula), nil
	}
	switch bare := strings.TrimSpace(value); {
	case c.kind == "str", c.kind == "inlineStr":
		return textCell(unescape(value)), nil
	case c.kind == "d": // a date in ISO 8601, which some programs write
		return textCell(value), nil
	case c.kind != "n" && c.kind != "s" && c.kind != "b":
		return cell{}, errKind
	case bare == "":
		return cell{}, nil
	case c.kind == "n":
		return f.number(bare, c.style)
	case c.kind == "s":
		index, err := strconv.Atoi(bare)
		if err != nil {
			return cell{}, errShared
		}
		text, err := f.shared.get(index)
		return textCell(text), err
	case bare == "0", bare == "false":
		return textCell("FALSE"), nil
	case bare == "1", bare == "true":
		return textCell("TRUE"), nil
	}
	return cell{}, errKind
}

func faulty(text string, f *fault) cell { return cell{numfmt.Shown{Text: text}, f} }

func textCell(text string) cell {
	if strings.IndexByte(text, 0) >= 0 {
		return faulty(text, faultNUL)
	}
	return faulty(text, nil)
}

// number writes a number as its format says; one with a fault as it is written.
func (f *formatter) number(value string, style int) (cell, error) {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || strings.Trim(value, "0123456789+-.eE") != "" || math.IsInf(v, 0) {
		return faulty(value, faultNumber), nil
	}
	format, err := f.styles.of(style)
	if err != nil {
		return cell{}, err
	}
	switch shown, err := format.Show(v, f.from1904); {
	case errors.Is(err, numfmt.ErrDigits):
		return faulty(value, faultDigits), nil
	case err != nil:
		return faulty(value, faultDate), nil
	default:
		return cell{Shown: shown}, nil
	}
}
