package xlsx

import (
	"math"
	"strconv"
	"strings"
)

var errStyle = &Damage{"the workbook is damaged: a cell points to a number format that is not there"}

// styles are the number formats of a workbook, by the styles of its cells.
type styles struct {
	formats []*numberFormat // one for each style; nil until it is needed
	ids     []int
	codes   map[int]string // formats that the workbook has of its own
}

// maxFormatCode is how long Excel lets a number format be, in characters.
const maxFormatCode = 255

// readStyles reads the part with the styles; a workbook may have none.
func (b *Book) readStyles() (*styles, error) {
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
	s := &styles{codes: map[int]string{}}
	if b.styles == "" {
		return s, nil
	}
	if err := b.parts.decode(b.styles, &part); err != nil {
		return nil, err
	}
	for _, f := range part.Formats {
		if f.Code16 != "" {
			f.Code = f.Code16
		}
		s.codes[f.ID] = f.Code
	}
	for _, c := range part.Cells {
		s.ids = append(s.ids, c.Format)
	}
	s.formats = make([]*numberFormat, len(s.ids))
	return s, nil
}

// of gives the number format of a style.
func (s *styles) of(style int) (*numberFormat, error) {
	if len(s.ids) == 0 {
		return generalFormat, nil
	}
	if style < 0 || style >= len(s.ids) {
		return nil, errStyle
	}
	if s.formats[style] == nil {
		s.formats[style] = s.find(s.ids[style])
	}
	return s.formats[style], nil
}

// find gives the number format of an identifier. A workbook's own code goes
// before the one that is built in.
func (s *styles) find(id int) *numberFormat {
	if code, ok := s.codes[id]; ok {
		return compileFormat(code)
	}
	switch {
	case id >= 14 && id <= 17:
		return &numberFormat{kind: isoDate}
	case id >= 18 && id <= 21:
		return &numberFormat{kind: isoTime}
	case id == 22:
		return &numberFormat{kind: isoDateTime}
	case id >= 27 && id <= 36, id >= 50 && id <= 58, id >= 71 && id <= 81:
		return &numberFormat{kind: isoAny} // dates of East Asia and Thailand, which differ by language
	}
	return compileFormat(builtIn(id))
}

// builtIn is the code of a number format that workbooks do not write out, as
// ECMA-376 part 1, 18.8.30 lists them. The currency of 5 to 8, 42 and 44 is that
// of the system on which a workbook is shown; the number stands without it here.
func builtIn(id int) string {
	const accounting = `_(* #,##0_);_(* \(#,##0\);_(* "-"_);_(@_)`
	switch id {
	case 1, 59:
		return "0"
	case 2, 60:
		return "0.00"
	case 3, 61:
		return "#,##0"
	case 4, 62:
		return "#,##0.00"
	case 5, 6, 37, 38:
		return "#,##0_);(#,##0)"
	case 7, 8, 39, 40:
		return "#,##0.00_);(#,##0.00)"
	case 9, 67:
		return "0%"
	case 10, 68:
		return "0.00%"
	case 11:
		return "0.00E+00"
	case 12, 69:
		return "# ?/?"
	case 13, 70:
		return "# ??/??"
	case 41, 42:
		return accounting
	case 43, 44:
		return strings.ReplaceAll(accounting, "#,##0", "#,##0.00")
	case 45:
		return "mm:ss"
	case 46:
		return "[h]:mm:ss"
	case 47:
		return "mm:ss.0"
	case 48:
		return "##0.0E+0"
	}
	return "General"
}

// formatKind says how the number of a cell becomes text.
type formatKind uint8

const (
	general    formatKind = iota // all its digits
	digits                       // places for digits
	fraction                     // numerator and denominator
	scientific                   // with an exponent, which the text does not have: all its digits
	codedDate                    // a date, time or duration as the code says; these and all below are dates
	isoDate                      // a date whose looks depend on the system, or cannot be written here
	isoTime
	isoDateTime
	isoAny
)

func (k formatKind) isDate() bool { return k >= codedDate }

// numberFormat is a number format: one kind for all numbers, or sections.
type numberFormat struct {
	kind     formatKind
	sections []section
}

// section is the part of a number format for some numbers.
type section struct {
	kind    formatKind
	forText bool   // it has a place for text
	test    string // "<", "<=", "=", "<>", ">=", ">" or ""
	limit   float64
	tokens  []formatToken
	places  places
	words   *dateWords // of a coded date
	ratio   ratio      // of a fraction
}

var generalFormat = &numberFormat{kind: general}

// compileFormat reads the code of a number format.
func compileFormat(code string) *numberFormat {
	if len(code) > 4*maxFormatCode {
		return generalFormat
	}
	f := &numberFormat{}
	for _, part := range splitSections(code) {
		f.sections = append(f.sections, compileSection(part))
	}
	// The last section is for text when it has a place for text.
	if last := len(f.sections) - 1; last > 2 || last > 0 && f.sections[last].forText {
		f.sections = f.sections[:min(last, 3)]
	}
	return f
}

// splitSections parts a code at the semicolons that are not quoted.
func splitSections(code string) []string {
	var parts []string
	start := 0
	for i := 0; i < len(code); i++ {
		switch code[i] {
		case '\\', '_', '*':
			i++
		case '"':
			if end := strings.IndexByte(code[i+1:], '"'); end >= 0 {
				i += end + 1
			} else {
				i = len(code)
			}
		case '[':
			i += max(strings.IndexByte(code[i:], ']'), 0)
		case ';':
			parts, start = append(parts, code[start:i]), i+1
		}
	}
	return append(parts, code[start:])
}

// choose finds the section for a number, and the number that it shows: those
// for negative numbers show them without sign. There may be none.
func (f *numberFormat) choose(v float64) (s *section, shown float64) {
	if len(f.sections) == 0 {
		return &section{kind: f.kind}, v
	}
	tested := false
	for i := range f.sections {
		s := &f.sections[i]
		if s.test != "" {
			tested = true
			if s.holds(v) {
				return s, v
			}
		}
	}
	n := len(f.sections)
	switch {
	case tested && f.sections[n-1].test == "":
		return &f.sections[n-1], v
	case tested:
		return nil, v
	case v < 0 && n > 1:
		return &f.sections[1], -v
	case v == 0 && n > 2:
		return &f.sections[2], v
	}
	return &f.sections[0], v
}

func (s *section) holds(v float64) bool {
	switch s.test {
	case "<":
		return v < s.limit
	case "<=":
		return v <= s.limit
	case "=":
		return v == s.limit
	case "<>":
		return v != s.limit
	case ">=":
		return v >= s.limit
	}
	return v > s.limit
}

// exact is a number with the 15 digits that Excel holds, never with an exponent.
func exact(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
	if err != nil {
		rounded = v
	}
	if rounded == 0 {
		return "0"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// exactLimit is the first whole number that has more digits than Excel holds.
const exactLimit = 1e15

// loses tells whether Excel has lost digits of a number: none of those behind
// the point count, which no phone number and no identifier has.
func loses(v float64) bool { return math.Abs(v) >= exactLimit }
