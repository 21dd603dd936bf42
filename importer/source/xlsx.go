package source

import (
	"errors"
	"io"
	"io/fs"
	"strings"
)

const (
	xlsxHint    = "save the sheet as an Excel workbook (.xlsx) or as CSV in UTF-8"
	secretHint  = "open it in Excel, take the password away (File, Info, Protect Workbook), and save it anew"
	archiveHint = "unpack it first, and import the files in it"
)

// beginXLSX makes one sheet of a workbook the rows of the file. Its cells are
// the text that Excel shows in a system whose language is English, but:
//
//   - Numbers in the general and scientific formats keep all their digits, none
//     is rounded for want of room. A whole number of more than 15 digits is a
//     problem of its row: Excel has lost the others.
//   - Dates in formats that look different from system to system (14 to 22, and
//     those of East Asia, among the built-in ones) are written as 2026-03-04,
//     10:11:12 or both. All other formats are written as they say.
//   - The built-in currency formats, whose currency depends on the system, are
//     written without one. Blanks that only align a number are left out.
//   - Text is what was entered, whatever its format adds to it.
//   - An error, a formula that was never computed and a number that is no date
//     but has the format of one are problems of their rows.
//
// The file is read once from end to end for its checksum, and the sheet once
// for that of the archive, before the first row is given. Excelize is used to
// write numbers in dates and fractions; the sheet is not read with it, because
// it tells neither the kind of a cell nor that a sheet is cut, and keeps all
// shared texts in memory.
func (f *File) beginXLSX(o Options) *OpenError {
	f.format, f.delim, f.encoding = XLSX, 0, ""
	in, size, err := f.archive()
	if err != nil {
		return unusable(err)
	}
	if e := refuseOther(in, size); e != nil {
		return e
	}
	held, err := openParts(in, size)
	if err != nil {
		return unusable(damaged(err))
	}
	if e := held.refuse(); e != nil {
		return e
	}
	book, err := openWorkbook(held)
	if err != nil {
		return unusable(damaged(err))
	}
	of, e := book.choose(o.Sheet)
	if e != nil {
		return e
	}
	rows, err := book.rows(of, o.MaxRecord)
	f.closers = append(f.closers, rows)
	if err != nil {
		return unusable(damaged(err))
	}
	rows.warn = f.warn
	if others := book.others(of); o.Sheet == "" && len(others) > 0 {
		rows.warn("sheet " + quote(of.name) + " was read; the workbook also holds " + listed(others) + " (hint: " + sheetHint + ")")
	}
	if e := rows.begin(o); e != nil {
		return e
	}
	f.header, f.rows, f.blanks = rows.header, rows, &rows.blanks
	return nil
}

// archive reads the whole input through the meter and gives it as something
// that can be read anywhere. Standard input is kept for that.
func (f *File) archive() (io.ReaderAt, int64, error) {
	if f.disk != nil {
		f.meter = newMeter(io.NewSectionReader(f.disk, 0, 1<<62))
		size, err := io.Copy(io.Discard, f.meter)
		return f.disk, size, err
	}
	kept := &scratch{}
	f.closers = append(f.closers, kept)
	size, err := io.Copy(kept, io.LimitReader(f.meter, maxUnpacked+1))
	return kept, size, err
}

// rows makes the reader of a sheet, which has to be closed after an error, too.
func (b *workbook) rows(of sheet, limit int) (*xlsxRows, error) {
	x := &xlsxRows{sheet: of.name, max: limit}
	x.calendar.from1904 = b.from1904
	var err error
	if x.styles, err = b.readStyles(); err != nil {
		return x, err
	}
	if x.shared, err = b.readTexts(); err != nil {
		return x, err
	}
	x.opened = append(x.opened, &x.shared.store)
	if err := b.verify(of); err != nil {
		return x, err
	}
	part, err := b.parts.open(of.part)
	if err != nil {
		return x, err
	}
	x.opened = append(x.opened, part)
	x.present, err = newSheetReader(part, limit)
	if errors.Is(err, io.EOF) { // it has no rows
		x.ended, err = true, nil
	}
	return x, err
}

// readTexts reads the shared texts; a workbook without texts may lack them.
func (b *workbook) readTexts() (*sharedTexts, error) {
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

// verify reads a sheet as it is packed, so that a workbook that was damaged on
// its way is refused before a row of it is sent.
func (b *workbook) verify(of sheet) error {
	in, err := b.parts.open(of.part)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(io.Discard, in)
	return err
}

// unusable is the refusal of a workbook that is damaged or cannot be read.
func unusable(err error) *OpenError {
	var shown *damage
	if errors.As(err, &shown) {
		return &OpenError{Text: "cannot be read: " + shown.text, Hint: repairsHint, Err: err}
	}
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return unreadable(err)
	}
	return &OpenError{Text: "cannot be read: " + reason(err), Err: err}
}

// refuse knows by their parts the archives that are no workbooks.
func (p parts) refuse() *OpenError {
	has := func(name string) bool { return p[name] != nil }
	switch {
	case has("xl/workbook.bin"):
		return &OpenError{Text: "is a binary workbook (.xlsb), which cannot be read", Hint: xlsxHint}
	case has("word/document.xml"):
		return &OpenError{Text: "is a Word document, not a workbook", Hint: xlsxHint}
	case has("ppt/presentation.xml"):
		return &OpenError{Text: "is a PowerPoint presentation, not a workbook", Hint: xlsxHint}
	case has("mimetype") && has("content.xml"):
		return &OpenError{Text: "is an OpenDocument file (.ods), which cannot be read", Hint: xlsxHint}
	case has("index/document.iwa"), has("index.zip"):
		return &OpenError{Text: "is a Numbers document, which cannot be read", Hint: "export it as an Excel workbook (.xlsx) or as CSV in UTF-8"}
	case !has("[content_types].xml") || !has("_rels/.rels"):
		return &OpenError{Text: "is a ZIP archive, not a workbook" + p.single(), Hint: archiveHint}
	}
	return nil
}

// single tells of an archive with one file in it which kind of file that is.
func (p parts) single() string {
	for name := range p {
		if len(p) == 1 && strings.HasSuffix(name, ".csv") {
			return "; it holds a CSV file"
		}
	}
	return ""
}
