package xlsx

import (
	"errors"
	"io"
	slashed "path"
	"strings"
)

// maxGlance is how many bytes of a sheet are looked at to see whether it holds anything.
const maxGlance = 1 << 20

// Book is what a workbook's parts say of its sheets, before any cell is read.
type Book struct {
	Sheets []Sheet

	parts    Archive
	strings  string // name of the part with the shared texts, or ""
	styles   string // name of the part with the number formats, or ""
	from1904 bool   // days are counted from 1904, not from 1900
}

// Sheet is one tab of a workbook.
type Sheet struct {
	Name   string
	Cells  bool // it is a table of cells, no chart, macro or dialog
	Hidden bool

	part string
}

// Is tells whether both stand for the same cells.
func (s Sheet) Is(other Sheet) bool { return s.part == other.part }

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
func (p Archive) relations(part string) ([]relation, error) {
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

// Book finds the sheets of an archive that is a workbook.
func (p Archive) Book() (*Book, error) {
	roots, err := p.relations("")
	if err != nil {
		return nil, damaged(err)
	}
	for _, r := range roots {
		if r.kind() == "officeDocument" {
			book, err := p.book(r.Target)
			return book, damaged(err)
		}
	}
	return nil, errMissing
}

func (p Archive) book(part string) (*Book, error) {
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
	book := &Book{parts: p, from1904: truth(main.Properties.Date1904)}
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
		book.Sheets = append(book.Sheets, Sheet{
			Name: s.Name, part: of.Target, Cells: of.kind() == "worksheet",
			Hidden: s.State != "" && s.State != "visible",
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

// Open makes the reader of a sheet, whose rows have at most so many bytes of text. It
// reads the sheet once as it is packed, so that one that was damaged on its way is
// refused before a row of it is given.
func (b *Book) Open(of Sheet, limit int) (*Rows, error) {
	r := &Rows{formatter: formatter{sheet: &sheetReader{}}}
	if err := b.open(r, of, limit); err != nil {
		r.Close()
		return nil, damaged(err)
	}
	return r, nil
}

func (b *Book) open(r *Rows, of Sheet, limit int) error {
	r.calendar.from1904 = b.from1904
	var err error
	if r.styles, err = b.readStyles(); err != nil {
		return err
	}
	if r.shared, err = b.readTexts(); err != nil {
		return err
	}
	r.opened = append(r.opened, &r.shared.store)
	if err := b.verify(of); err != nil {
		return err
	}
	part, err := b.parts.open(of.part)
	if err != nil {
		return err
	}
	r.opened = append(r.opened, part)
	sheet, err := newSheetReader(part, limit)
	if errors.Is(err, io.EOF) { // it has no rows
		r.ended = true
		return nil
	}
	if err == nil {
		r.sheet = sheet
	}
	return err
}

// readTexts reads the shared texts; a workbook without texts may lack them.
func (b *Book) readTexts() (*sharedTexts, error) {
	if b.strings == "" {
		return &sharedTexts{}, nil
	}
	in, err := b.parts.open(b.strings)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	shared, err := readShared(in)
	if err != nil {
		shared.store.Close()
		return nil, err
	}
	return shared, nil
}

func (b *Book) verify(of Sheet) error {
	in, err := b.parts.open(of.part)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(io.Discard, in)
	return err
}

// HoldsCells looks at the beginning of a sheet only. What it cannot read, or
// does not see the end of, may well hold something.
func (b *Book) HoldsCells(s Sheet) bool {
	in, err := b.parts.open(s.part)
	if err != nil {
		return false
	}
	defer in.Close()
	glance := &io.LimitedReader{R: in, N: maxGlance}
	rows, err := newSheetReader(glance, maxGlance)
	for err == nil {
		if err = rows.next(); err == nil && rows.holdsText() {
			return true
		}
	}
	return !errors.Is(err, io.EOF)
}
