package xlsx

import (
	"errors"
	"io"
	slashed "path"
	"strings"

	"leadferry/importer/source/xlsx/numfmt"
)

// book is what a workbook's parts say of its sheets, before any cell is read.
type book struct {
	sheets []sheet

	parts    archive
	strings  string // name of the part with the shared texts, or ""
	styles   string // name of the part with the number formats, or ""
	from1904 bool   // days are counted from 1904, not from 1900
}

// sheet is one tab of a workbook.
type sheet struct {
	name   string
	part   string
	cells  bool // it is a table of cells, no chart, macro or dialog
	hidden bool
}

// relation leads from one part of a workbook to another.
type relation struct {
	ID     string `xml:"Id,attr"`
	Type   string `xml:"Type,attr"`
	Target string `xml:"Target,attr"`
}

// kind is the last word of the relation's type: transitional and strict workbooks have different ones before it.
func (r relation) kind() string { return slashed.Base(r.Type) }

// relations reads where a part leads to, with targets as names of parts.
func (a archive) relations(part string) ([]relation, error) {
	dir, file := slashed.Split(part)
	var list struct {
		Relationship []relation `xml:"Relationship"`
	}
	if err := a.decode(partName(dir+"_rels/"+file+".rels"), &list); err != nil {
		return nil, err
	}
	for i, r := range list.Relationship {
		target := strings.ReplaceAll(r.Target, `\`, "/")
		if !strings.HasPrefix(target, "/") {
			target = dir + target
		}
		list.Relationship[i].Target = partName(target)
	}
	return list.Relationship, nil
}

// book finds the sheets of an archive that is a workbook.
func (a archive) book() (*book, error) {
	roots, err := a.relations("")
	if err != nil {
		return nil, err
	}
	for _, r := range roots {
		if r.kind() == "officeDocument" {
			return a.bookIn(r.Target)
		}
	}
	return nil, errMissing
}

func (a archive) bookIn(part string) (*book, error) {
	var main struct {
		Properties struct {
			Date1904 string `xml:"date1904,attr"`
		} `xml:"workbookPr"`
		Sheets []struct {
			Name  string `xml:"name,attr"`
			State string `xml:"state,attr"`
			ID    string `xml:"id,attr"`
		} `xml:"sheets>sheet"`
	}
	if err := a.decode(part, &main); err != nil {
		return nil, err
	}
	relations, err := a.relations(part)
	if err != nil {
		return nil, err
	}
	b := &book{parts: a, from1904: truth(main.Properties.Date1904)}
	byID := make(map[string]relation, len(relations))
	for _, r := range relations {
		byID[r.ID] = r
		switch r.kind() {
		case "sharedStrings":
			b.strings = r.Target
		case "styles":
			b.styles = r.Target
		}
	}
	for _, s := range main.Sheets {
		of := byID[s.ID]
		b.sheets = append(b.sheets, sheet{
			name: s.Name, part: of.Target, cells: of.kind() == "worksheet",
			hidden: s.State != "" && s.State != "visible",
		})
	}
	return b, nil
}

// truth reads a boolean attribute.
func truth(text string) bool {
	switch strings.TrimSpace(text) {
	case "1", "true", "on":
		return true
	}
	return false
}

// verify reads a part to its end for its checksum.
func (a archive) verify(part string) error {
	in, err := a.open(part)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(io.Discard, in)
	return err
}

// holdsCells looks at the beginning of a sheet only. What it cannot read, or does not see the end of, may well hold
// something.
func (b *book) holdsCells(s sheet) bool {
	in, err := b.parts.open(s.part)
	if err != nil {
		return false
	}
	defer in.Close()
	const glance = 1 << 20
	rows, err := newSheetReader(io.LimitReader(in, glance), glance)
	for err == nil {
		if err = rows.next(); err == nil && rows.holdsText() {
			return true
		}
	}
	return !errors.Is(err, io.EOF)
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
