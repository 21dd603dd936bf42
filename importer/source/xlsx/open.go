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
//     leaves that out. Durations are written as their format says. A date that the cell holds as text stays as it is.
//   - The built-in currency formats, whose currency depends on the system, are written without one. Blanks that only
//     align a number are left out.
//   - Text is what was entered, whatever its format adds to it. Texts that look like dates, beside dates in one column,
//     are told of.
//   - An error, a formula that was never computed and a number that is no date but has the format of one are faults.
//
// Promises: memory does not grow with the workbook, but for the texts that its cells share, 64 MiB at most; a sheet that is damaged or cut is told before its first row, by
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

	archiveHint = "unpack it first, and import the files in it"
	sheetHint   = "choose one with --sheet NAME, or with source.sheet of the mapping"
	repairHint  = "open the workbook in Excel, which may repair it, and save it anew, or save the sheet as CSV in UTF-8"
)

// Open reads what a workbook says of its sheets, chooses one, and reads up to its header. Its error is a
// *[rows.OpenError], or one of reading. The sheet is read once from end to end for the checksum of the archive,
// before the first row is given.
func Open(in io.ReaderAt, size int64, o rows.Options, found *rows.Found) (*Reader, error) {
	r := &Reader{found: found, limit: o.MaxRecord}
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
	return r.begin(o)
}

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

// IsArchive says that a file begins as ZIP archives do, workbooks among them.
func IsArchive(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// NoWorkbook refuses a file that was said to be a workbook.
func NoWorkbook() error {
	return &rows.OpenError{Text: "is not an Excel workbook", Hint: "if it is text, name its format: --format csv, tsv or jsonl"}
}

// refuseArchive knows by their parts the archives that are no workbooks.
func refuseArchive(parts archive) error {
	text, hint := "is a ZIP archive, not a workbook", archiveHint
	switch {
	case parts["xl/workbook.bin"] != nil:
		text, hint = "is a binary workbook (.xlsb), which cannot be read", Hint
	case parts["mimetype"] != nil && parts["content.xml"] != nil:
		text, hint = "is an OpenDocument file (.ods), which cannot be read", Hint
	case parts["[content_types].xml"] != nil && parts["_rels/.rels"] != nil:
		return nil
	}
	return &rows.OpenError{Text: text, Hint: hint}
}
