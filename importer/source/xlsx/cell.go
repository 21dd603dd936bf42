package xlsx

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"leadferry/importer/source/xlsx/numfmt"
	"leadferry/internal/spelling"
)

// fault says why a cell cannot be taken as it is shown, and what to do.
type fault struct{ text, hint string }

var (
	faultFormula  = &fault{"holds a formula without its result", "open the workbook in Excel, which computes it, and save it anew"}
	faultComputed = &fault{"holds a formula whose result, 0, may never have been computed: the workbook leaves that to Excel", faultFormula.hint}
	faultDigits   = &fault{"holds " + numfmt.ErrDigits.Error(), "format the column as text and enter the number again"}
	faultDate     = &fault{"holds " + numfmt.ErrDate.Error(), "enter the date again, or change the format of the cell"}
	faultNumber   = &fault{"holds something else where a number has to be", "open the workbook in Excel, which may repair it, and save it anew"}
	faultNUL      = &fault{"holds a NUL character", "remove it"}
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

// kindOf is a kind of cell, "" one that is not known.
func kindOf(name string) string {
	for _, kind := range [...]string{"s", "n", "str", "inlineStr", "b", "e", "d"} {
		if name == kind {
			return kind
		}
	}
	return ""
}

// cell is a cell as it is shown. Its text stands until the next one is made.
type cell struct {
	text    []byte
	tooLong bool          // the text is longer than a row may be
	number  *numfmt.Shown // of a number; else nil
	fault   *fault        // or nil
}

// formatter makes text of cells.
type formatter struct {
	shared   *sharedTexts
	styles   *styles
	from1904 bool
	computes bool         // the results of formulas may not be computed yet
	shown    numfmt.Shown // the last number
}

var errKind = broken("a cell is of an unknown kind")

// cell gives the text of a cell with this value. The error says that the workbook is damaged.
func (f *formatter) cell(c *rawCell, value []byte) (cell, error) {
	switch {
	case c.kind == "e":
		return cell{text: value, fault: faultOf(string(value))}, nil
	case c.formula && !c.value:
		return cell{fault: faultFormula}, nil
	case c.formula && f.computes && c.kind == "n" && string(bytes.TrimSpace(value)) == "0": // which XlsxWriter and others put there
		return cell{text: value, fault: faultComputed}, nil
	case c.kind == "str", c.kind == "inlineStr", c.kind == "d": // a date in ISO 8601, which some programs write
		return textCell(unescape(value)), nil
	}
	switch bare := bytes.TrimSpace(value); {
	case c.kind == "":
		return cell{}, errKind
	case len(bare) == 0:
		return cell{}, nil
	case c.kind == "n":
		return f.number(bare, c.style)
	case c.kind == "s":
		index, err := strconv.Atoi(string(bare))
		if err != nil {
			return cell{}, errShared
		}
		return f.shared.get(index)
	case string(bare) == "0", string(bare) == "false":
		return cell{text: []byte("FALSE")}, nil
	case string(bare) == "1", string(bare) == "true":
		return cell{text: []byte("TRUE")}, nil
	}
	return cell{}, errKind
}

func textCell(text []byte) cell {
	if bytes.IndexByte(text, 0) >= 0 {
		return cell{text: text, fault: faultNUL}
	}
	return cell{text: text}
}

// number writes a number as its format says; one with a fault as it is written.
func (f *formatter) number(value []byte, style int) (cell, error) {
	format, err := f.styles.of(style)
	if err != nil {
		return cell{}, err
	}
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil || len(bytes.Trim(value, "0123456789+-.eE")) > 0 || math.IsInf(v, 0) {
		return cell{text: value, fault: faultNumber}, nil
	}
	switch f.shown, err = format.Show(v, f.from1904); {
	case errors.Is(err, numfmt.ErrDigits):
		return cell{text: value, fault: faultDigits}, nil
	case err != nil:
		return cell{text: value, fault: faultDate}, nil
	}
	return cell{text: []byte(f.shown.Text), number: &f.shown}, nil
}

// styles are the number formats of a workbook, by the styles of its cells.
type styles struct {
	formats []numfmt.Format // one for each style; nil until it is needed
	ids     []int
	codes   map[int]string // formats that the workbook has of its own
}

var errStyle = broken("a cell points to a number format that is not there")

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
