package source

import (
	slashed "path"
	"strings"
)

// workbook is what a workbook's parts say of its sheets, before any cell is read.
type workbook struct {
	parts    parts
	sheets   []sheet
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

// kind is the last word of the relation's type: transitional and strict
// workbooks have different ones before it.
func (r relation) kind() string { return slashed.Base(r.Type) }

// relations reads where a part leads to, with targets as names of parts.
func (p parts) relations(part string) ([]relation, error) {
	dir, file := slashed.Split(part)
	var list struct {
		Relationship []relation `xml:"Relationship"`
	}
	if err := p.decode(partName(dir+"_rels/"+file+".rels"), &list); err != nil {
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

// openWorkbook finds the sheets of an archive that is a workbook.
func openWorkbook(p parts) (*workbook, error) {
	roots, err := p.relations("")
	if err != nil {
		return nil, err
	}
	for _, r := range roots {
		if r.kind() == "officeDocument" {
			return p.workbook(r.Target)
		}
	}
	return nil, errMissing
}

func (p parts) workbook(part string) (*workbook, error) {
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
	if err := p.decode(part, &main); err != nil {
		return nil, err
	}
	relations, err := p.relations(part)
	if err != nil {
		return nil, err
	}
	book := &workbook{parts: p, from1904: truth(main.Properties.Date1904)}
	byID := make(map[string]relation, len(relations))
	for _, r := range relations {
		byID[r.ID] = r
		switch r.kind() {
		case "sharedStrings":
			book.strings = r.Target
		case "styles":
			book.styles = r.Target
		}
	}
	for _, s := range main.Sheets {
		of := byID[s.ID]
		book.sheets = append(book.sheets, sheet{
			name: s.Name, part: of.Target, cells: of.kind() == "worksheet",
			hidden: s.State != "" && s.State != "visible",
		})
	}
	return book, nil
}

// truth reads a boolean attribute.
func truth(text string) bool {
	switch strings.TrimSpace(text) {
	case "1", "true", "on":
		return true
	}
	return false
}
