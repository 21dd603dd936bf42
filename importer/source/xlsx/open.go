// Package xlsx reads rows of Excel workbooks (ECMA-376): archive, book, and row by row the cells of one sheet as
// Excel shows them.
//
//	archive ─▶ book: its sheets ─▶ choose one ─▶ Reader: header, then Next
//
// Cells are the text that Excel shows in a system whose language is English, but:
//
//   - Numbers in the general, scientific and fraction formats keep all their digits, none is rounded for want of
//     room. A whole number of more than 15 digits is a fault: Excel has lost the others.
//   - Dates are written as 2026-03-04, times as 10:11:12, and both with a blank between, whatever their format: in
//     which order it has day and month, nobody could tell from the text. A format without a day, or without a time,
//     leaves that out. Durations are written as their format says.
//   - The built-in currency formats, whose currency depends on the system, are written without one. Blanks that only
//     align a number are left out.
//   - Text is what was entered, whatever its format adds to it. Texts that look like dates, beside dates in one column,
//     are told of.
//   - An error, a formula that was never computed and a number that is no date but has the format of one are faults.
//
// Promises: memory does not grow with the workbook; a sheet that is damaged or cut is told before its first row, by
// the checksums of the archive; no error quotes the file.
package xlsx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

const (
	// Hint is what to do about other kinds of tables.
	Hint = "save the sheet as an Excel workbook (.xlsx) or as CSV in UTF-8"

	secretHint  = "open it in Excel, take the password away (File, Info, Protect Workbook), and save it anew"
	archiveHint = "unpack it first, and import the files in it"
	sheetHint   = "choose one with --sheet NAME, or with source.sheet of the mapping"
	repairHint  = "open the workbook in Excel, which may repair it, and save it anew, or save the sheet as CSV in UTF-8"
)

// Open reads what a workbook says of its sheets, chooses one, and reads up to its header. Its error is a
// *[rows.OpenError], or one of reading. The sheet is read once from end to end for the checksum of the archive,
// before the first row is given.
func Open(in io.ReaderAt, size int64, o rows.Options, found *rows.Found) (*Reader, error) {
	if err := refuseOther(in, size); err != nil {
		return nil, err
	}
	r := &Reader{found: found, frame: o.Frame, limit: o.MaxRecord}
	err := r.open(in, size, o)
	if err != nil {
		r.Close()
	}
	var broken *damage
	if errors.As(err, &broken) {
		err = &rows.OpenError{Text: "cannot be read: " + broken.text, Hint: repairHint, Err: broken}
	}
	return r, err
}

func (r *Reader) open(in io.ReaderAt, size int64, o rows.Options) error {
	parts, err := openArchive(in, size)
	if err != nil {
		return damaged(err)
	}
	if err := refuseArchive(parts); err != nil {
		return err
	}
	b, err := parts.book()
	if err != nil {
		return damaged(err)
	}
	s, err := b.choose(o.Sheet)
	if err != nil {
		return err
	}
	if err := r.openSheet(b, s); err != nil {
		return damaged(err)
	}
	r.found.Sheets = b.labels(func(other sheet) bool { return other.part != s.part && b.holdsCells(other) })
	if o.Sheet == "" && len(r.found.Sheets) > 0 {
		r.found.Warn("sheet %q was read; the workbook also holds %s (hint: %s)", s.name, spelling.List(r.found.Sheets, mostNamed, nil), sheetHint)
	}
	if (o.NoHeader || o.Frame != rows.Frame{}) && r.beginsRejects(b, s) { // what the mapping says of its file is not true of what we wrote
		o.NoHeader, o.Frame, r.frame = false, rows.Frame{}, rows.Frame{}
	}
	return r.begin(o)
}

// beginsRejects says that the first row of a sheet that is not blank is the header of a rejects file.
func (r *Reader) beginsRejects(b *book, s sheet) bool {
	part, err := b.parts.open(s.part)
	if err != nil {
		return false
	}
	defer part.Close()
	first := &Reader{format: r.format, limit: r.limit, found: &rows.Found{}}
	if first.sheet, err = newSheetReader(part, r.limit); err == nil {
		err = first.advance()
	}
	return err == nil && rows.IsOfRejects(strings.Join(first.fields, ","))
}

// SkipFooter is how many rows at the sheet's end are none of the table.
func (r *Reader) SkipFooter() int { return r.frame.SkipFooter }

// choose finds the sheet to read: the one that is named, in any case, else the first that can be seen.
func (b *book) choose(name string) (sheet, error) {
	find := func(fits func(s sheet) bool) int { return slices.IndexFunc(b.sheets, fits) }
	i, none := 0, "has no sheet of the name that was asked for"
	if name == "" {
		i = find(func(s sheet) bool { return s.cells && !s.hidden })
		none = "has no sheet that is visible and holds cells"
	} else if i = find(func(s sheet) bool { return s.name == name }); i < 0 {
		i = find(func(s sheet) bool { return strings.EqualFold(strings.TrimSpace(s.name), strings.TrimSpace(name)) })
	}
	switch {
	case i >= 0 && b.sheets[i].cells:
		return b.sheets[i], nil
	case i >= 0:
		none = fmt.Sprintf("has no cells in sheet %q: it is a chart, a dialog or a macro", b.sheets[i].name)
	default:
		if names := b.labels(func(sheet) bool { return true }); len(names) > 0 {
			none += "; it has " + spelling.List(names, mostNamed, nil)
		}
	}
	return sheet{}, &rows.OpenError{Text: none, Hint: sheetHint}
}

// mostNamed is how many names of sheets or columns are told.
const mostNamed = 20

// labels name the tables that are some of the sheets.
func (b *book) labels(some func(sheet) bool) (names []string) {
	for _, s := range b.sheets {
		if s.cells && some(s) {
			name := strconv.Quote(s.name)
			if s.hidden {
				name += " (hidden)"
			}
			names = append(names, name)
		}
	}
	return names
}

const (
	archiveMagic  = "PK\x03\x04"
	compoundMagic = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" // Microsoft's older container
)

// IsArchive says that a file begins as ZIP archives do, workbooks among them.
func IsArchive(head []byte) bool { return bytes.HasPrefix(head, []byte(archiveMagic)) }

// IsCompound says that a file begins as workbooks before Excel 2007 and those with a password do.
func IsCompound(head []byte) bool { return bytes.HasPrefix(head, []byte(compoundMagic)) }

// refuseOther knows by their first bytes the files that are no archives.
func refuseOther(in io.ReaderAt, size int64) error {
	head := make([]byte, len(compoundMagic))
	n, _ := in.ReadAt(head, 0)
	switch head = head[:n]; {
	case n == 0:
		return &rows.OpenError{Text: "is empty", Hint: Hint}
	case IsCompound(head):
		return refuseCompound(io.NewSectionReader(in, 0, size))
	case !IsArchive(head):
		return NoWorkbook()
	}
	return nil
}

// NoWorkbook refuses a file that was said to be a workbook.
func NoWorkbook() error {
	return &rows.OpenError{Text: "is not an Excel workbook", Hint: "if it is text, name its format: --format csv, tsv or jsonl"}
}

// refuseCompound tells apart the files in the older container by the names in its directory, which stand in UTF-16
// somewhere in it.
func refuseCompound(in io.Reader) error {
	const block, overlap = 128 << 10, 64 // no name is cut
	secret, old := utf16le("EncryptedPackage"), utf16le("Workbook")
	buf, kept, isOld := make([]byte, block), 0, false
	for {
		n, err := io.ReadFull(in, buf[kept:])
		text := buf[:kept+n]
		if bytes.Contains(text, secret) {
			return &rows.OpenError{Text: "is encrypted with a password", Hint: secretHint}
		}
		isOld = isOld || bytes.Contains(text, old)
		if err != nil {
			break
		}
		kept = copy(buf, text[len(text)-overlap:])
	}
	if isOld {
		return &rows.OpenError{Text: "is an old Excel workbook (.xls), which cannot be read", Hint: Hint}
	}
	return &rows.OpenError{Text: "is an old Office document or an e-mail, which cannot be read", Hint: Hint}
}

func utf16le(text string) []byte {
	return []byte(strings.Join(strings.Split(text, ""), "\x00"))
}

// refuseArchive knows by their parts the archives that are no workbooks.
func refuseArchive(parts archive) error {
	for _, other := range []struct{ part, and, text, hint string }{
		{"xl/workbook.bin", "", "is a binary workbook (.xlsb), which cannot be read", Hint},
		{"word/document.xml", "", "is a Word document, not a workbook", Hint},
		{"ppt/presentation.xml", "", "is a PowerPoint presentation, not a workbook", Hint},
		{"mimetype", "content.xml", "is an OpenDocument file (.ods), which cannot be read", Hint},
		{"index/document.iwa", "", "is a Numbers document, which cannot be read", "export it as an Excel workbook (.xlsx) or as CSV in UTF-8"},
		{"index.zip", "", "is a Numbers document, which cannot be read", "export it as an Excel workbook (.xlsx) or as CSV in UTF-8"},
	} {
		if parts[other.part] != nil && (other.and == "" || parts[other.and] != nil) {
			return &rows.OpenError{Text: other.text, Hint: other.hint}
		}
	}
	if parts["[content_types].xml"] != nil && parts["_rels/.rels"] != nil {
		return nil
	}
	text := "is a ZIP archive, not a workbook"
	for name := range parts {
		if len(parts) == 1 && strings.HasSuffix(name, ".csv") {
			text += "; it holds a CSV file"
		}
	}
	return &rows.OpenError{Text: text, Hint: archiveHint}
}
