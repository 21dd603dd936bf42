package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf16"

	"leadferry/importer/source/xlsx"
)

const (
	xlsxHint    = "save the sheet as an Excel workbook (.xlsx) or as CSV in UTF-8"
	secretHint  = "open it in Excel, take the password away (File, Info, Protect Workbook), and save it anew"
	archiveHint = "unpack it first, and import the files in it"
)

// beginXLSX makes one sheet of a workbook the rows of the file, its cells as package
// xlsx shows them; a cell's fault is one of its row.
//
// The file is read once from end to end for its checksum, and the sheet once
// for that of the archive, before the first row is given.
func (f *File) beginXLSX(o Options) *OpenError {
	f.format, f.delim, f.encoding = XLSX, 0, ""
	in, size, err := f.archive()
	if err != nil {
		return unusable(err)
	}
	if e := refuseOther(in, size); e != nil {
		return e
	}
	held, err := xlsx.OpenArchive(in, size)
	if err != nil {
		return unusable(err)
	}
	if e := refuseArchive(held); e != nil {
		return e
	}
	book, err := held.Book()
	if err != nil {
		return unusable(err)
	}
	of, e := choose(book, o.Sheet)
	if e != nil {
		return e
	}
	sheet, err := book.Open(of, o.MaxRecord)
	if err != nil {
		return unusable(err)
	}
	f.closers = append(f.closers, sheet)
	rows := &xlsxRows{in: sheet, sheet: of.Name, max: o.MaxRecord, warn: f.warn}
	if others := others(book, of); o.Sheet == "" && len(others) > 0 {
		rows.warn("sheet " + quote(of.Name) + " was read; the workbook also holds " + listed(others) + " (hint: " + sheetHint + ")")
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
	kept := &xlsx.Scratch{}
	f.closers = append(f.closers, kept)
	size, err := io.Copy(kept, io.LimitReader(f.meter, xlsx.MaxUnpacked+1))
	return kept, size, err
}

// unusable is the refusal of a workbook that is damaged or cannot be read.
func unusable(err error) *OpenError {
	var shown *xlsx.Damage
	if errors.As(err, &shown) {
		return &OpenError{Text: "cannot be read: " + shown.Error(), Hint: repairsHint, Err: err}
	}
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return unreadable(err)
	}
	return &OpenError{Text: "cannot be read: " + reason(err), Err: err}
}

// refuseArchive knows by their parts the archives that are no workbooks.
func refuseArchive(held xlsx.Archive) *OpenError {
	has := held.Has
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
		return &OpenError{Text: "is a ZIP archive, not a workbook" + single(held), Hint: archiveHint}
	}
	return nil
}

// single tells of an archive with one file in it which kind of file that is.
func single(held xlsx.Archive) string {
	if strings.HasSuffix(held.Only(), ".csv") {
		return "; it holds a CSV file"
	}
	return ""
}

const (
	maxNamed    = 20 // sheets that a message names
	sheetHint   = "choose one with --sheet NAME, or with source.sheet of the mapping"
	repairsHint = "open the workbook in Excel, which may repair it, and save it anew, or save the sheet as CSV in UTF-8"
)

// choose finds the sheet of this name, which Excel takes in any case, or the
// first table that is not hidden.
func choose(b *xlsx.Book, name string) (xlsx.Sheet, *OpenError) {
	if name == "" {
		for _, s := range b.Sheets {
			if s.Cells && !s.Hidden {
				return s, nil
			}
		}
		return xlsx.Sheet{}, &OpenError{Text: "has no sheet that is visible and holds cells" + list(b, "; it has "), Hint: sheetHint}
	}
	for _, same := range []func(a, b string) bool{
		func(a, b string) bool { return a == b },
		func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) },
	} {
		for _, s := range b.Sheets {
			if same(s.Name, name) {
				return s, refuseSheet(s)
			}
		}
	}
	return xlsx.Sheet{}, &OpenError{Text: "has no sheet of the name that was asked for" + list(b, "; it has "), Hint: sheetHint}
}

func refuseSheet(s xlsx.Sheet) *OpenError {
	if s.Cells {
		return nil
	}
	return &OpenError{Text: "has no cells in sheet " + quote(s.Name) + ": it is a chart, a dialog or a macro", Hint: sheetHint}
}

// list names the sheets that can be read.
func list(b *xlsx.Book, before string) string {
	var names []string
	for _, s := range b.Sheets {
		if s.Cells {
			names = append(names, label(s))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return before + listed(names)
}

func label(s xlsx.Sheet) string {
	if s.Hidden {
		return quote(s.Name) + " (hidden)"
	}
	return quote(s.Name)
}

func quote(name string) string { return `"` + name + `"` }

// listed joins names, the first of them only where there are many.
func listed(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed:maxNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// others are the labels of the sheets beside one that hold something, too.
func others(b *xlsx.Book, read xlsx.Sheet) []string {
	var names []string
	for _, s := range b.Sheets {
		if s.Cells && !s.Is(read) && b.HoldsCells(s) {
			names = append(names, label(s))
		}
	}
	return names
}

const compoundMagic = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"

// refuseOther knows by their first bytes the files that are no archives.
func refuseOther(in io.ReaderAt, size int64) *OpenError {
	head := make([]byte, len(compoundMagic))
	n, _ := in.ReadAt(head, 0)
	switch head = head[:n]; {
	case n == 0:
		return &OpenError{Text: "is empty", Hint: xlsxHint}
	case isCompound(head):
		return refuseCompound(in, size)
	case !isArchive(head):
		return &OpenError{Text: "is not an Excel workbook", Hint: "if it is text, name its format: --format csv, tsv or jsonl"}
	}
	return nil
}

func isCompound(head []byte) bool { return bytes.HasPrefix(head, []byte(compoundMagic)) }

// refuseCompound tells apart the files in Microsoft's older container: encrypted
// workbooks and those of Excel before 2007. Which of them it is, the names in
// the container's directory say, which stand in UTF-16 somewhere in it.
func refuseCompound(in io.ReaderAt, size int64) *OpenError {
	secret, old := utf16le("EncryptedPackage"), utf16le("Workbook")
	buf := make([]byte, block+64) // with so much of the next block that no name is cut
	isOld := false
	for offset := int64(0); offset < size; offset += block {
		n, err := in.ReadAt(buf, offset)
		if bytes.Contains(buf[:n], secret) {
			return &OpenError{Text: "is encrypted with a password", Hint: secretHint}
		}
		isOld = isOld || bytes.Contains(buf[:n], old)
		if err != nil {
			break
		}
	}
	if isOld {
		return &OpenError{Text: "is an old Excel workbook (.xls), which cannot be read", Hint: xlsxHint}
	}
	return &OpenError{Text: "is an old Office document or an e-mail, which cannot be read", Hint: xlsxHint}
}

func utf16le(text string) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return out
}
