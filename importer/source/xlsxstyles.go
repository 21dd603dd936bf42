package source

import "strings"

var errStyle = &damage{"the workbook is damaged: a cell points to a number format that is not there"}

// styles are the number formats of a workbook, by the styles of its cells.
type styles struct {
	formats []*numberFormat // one for each style; nil until it is needed
	ids     []int
	codes   map[int]string // formats that the workbook has of its own
}

// maxFormatCode is how long Excel lets a number format be, in characters.
const maxFormatCode = 255

// readStyles reads the part with the styles; a workbook may have none.
func (b *workbook) readStyles() (*styles, error) {
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
