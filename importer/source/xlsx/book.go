package xlsx

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	slashed "path"
	"slices"
	"strconv"
	"strings"

	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

// maxUnpacked is how many bytes the parts of a workbook may have together. All limits are far above what Excel writes:
// somebody made a larger file to fill memory or disk.
const maxUnpacked = 1 << 30

const (
	maxRatio     = 100      // times that a workbook may grow when unpacked
	maxBlank     = 32 << 20 // bytes unpacked up to which maxRatio does not count
	maxParts     = 10_000
	maxSmallPart = 16 << 20 // bytes of a part that describes the workbook
)

const repairHint = "open the workbook in Excel, which may repair it, and save it again; or save the sheet as UTF-8 CSV"

// broken says why a workbook cannot be read. It keeps no cause: error texts of an XML decoder quote the file.
func broken(text string) error { return rows.Refuse("it is damaged: "+text, repairHint) }

// tooLarge is the error of a workbook that is larger than any of Excel's.
func tooLarge() error { return rows.Refuse("it is too large when it is unpacked", repairHint) }

// misplaced is the error of a row or a cell in the wrong place.
func misplaced() error {
	return broken("a row or a cell is not in its place, or beyond the last one of Excel")
}

// damaged turns an error of the libraries into one that can be shown. It keeps errors of the disk.
func damaged(err error) error {
	switch {
	case err == nil, errors.As(err, new(*fs.PathError)), errors.As(err, new(*rows.OpenError)):
		return err
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrChecksum), errors.Is(err, zip.ErrAlgorithm),
		errors.As(err, new(flate.CorruptInputError)), errors.Is(err, io.ErrUnexpectedEOF):
		return broken("the archive is broken or cut")
	}
	return broken("its XML is broken, cut or not that of a workbook")
}

// archive holds the parts of a ZIP archive, by names in lower case without a leading slash.
type archive map[string]*zip.File

// openArchive reads the directory of an archive and checks its limits.
func openArchive(in io.ReaderAt, size int64) (archive, error) {
	directory, err := zip.NewReader(in, size)
	switch {
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return nil, err
	case len(directory.File) > maxParts:
		return nil, tooLarge()
	}
	parts := make(archive, len(directory.File))
	var total uint64
	for _, file := range directory.File {
		unpacked := file.UncompressedSize64
		total += min(unpacked, 2*maxUnpacked)
		// The total counts, too, because small parts may share the same packed bytes.
		if total > maxUnpacked || unpacked > maxBlank && unpacked/maxRatio > file.CompressedSize64 ||
			total > maxBlank && total/maxRatio > uint64(size) {
			return nil, tooLarge()
		}
		parts[partName(file.Name)] = file
	}
	return parts, nil
}

// isWorkbook reports whether the parts are those of a workbook, and not of another archive or a binary workbook.
func (a archive) isWorkbook() bool {
	return a["[content_types].xml"] != nil && a["_rels/.rels"] != nil && a["xl/workbook.bin"] == nil
}

// IsArchive reports whether a file begins like a ZIP archive, as workbooks do.
func IsArchive(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// partName makes names in an archive comparable: Excel ignores their case, and some programs write backslashes.
func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(slashed.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
}

// open opens a part. Its reader checks length and checksum at the end.
func (a archive) open(name string) (io.ReadCloser, error) {
	file := a[name]
	switch {
	case file == nil:
		return nil, broken("a part is missing")
	case file.Flags&1 != 0:
		return nil, rows.Refuse("its parts are encrypted", repairHint)
	}
	return file.Open()
}

// read calls read with a part, then reads the rest of the part, so that its checksum is checked.
func (a archive) read(name string, read func(io.Reader) error) error {
	in, err := a.open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := read(in); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// decode reads a part that describes the workbook into v.
func (a archive) decode(name string, v any) error {
	return a.read(name, func(in io.Reader) error {
		return xml.NewDecoder(io.LimitReader(in, maxSmallPart)).Decode(v)
	})
}

// book is what the parts of a workbook say about its sheets, before any cell is read.
type book struct {
	sheets []sheet

	parts    archive
	strings  string // name of the part with the shared texts, or ""
	styles   string // name of the part with the number formats, or ""
	from1904 bool   // days are counted from 1904, not from 1900
	computes bool   // Excel computes all formulas when it opens the workbook: stored results may be missing
}

// sheet is one tab of a workbook.
type sheet struct {
	name   string
	part   string
	cells  bool // it is a table of cells, not a chart, macro or dialog
	hidden bool
}

// relation says that one part of a workbook uses another.
type relation struct {
	ID     string `xml:"Id,attr"`
	Type   string `xml:"Type,attr"`
	Target string `xml:"Target,attr"`
}

// kind returns the last word of the relation's type. The rest differs between transitional and strict workbooks.
func (r relation) kind() string { return slashed.Base(r.Type) }

// relations reads the relations of a part, with targets as names of parts.
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

// book finds the sheets of a workbook.
func (a archive) book() (*book, error) {
	roots, err := a.relations("")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(roots, func(r relation) bool { return r.kind() == "officeDocument" })
	if i < 0 {
		return nil, broken("a part is missing")
	}
	part := roots[i].Target
	var main struct {
		Properties struct {
			Date1904 string `xml:"date1904,attr"`
		} `xml:"workbookPr"`
		Calculation struct {
			OnLoad string `xml:"fullCalcOnLoad,attr"`
		} `xml:"calcPr"`
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
	b := &book{parts: a, from1904: truth(main.Properties.Date1904), computes: truth(main.Calculation.OnLoad)}
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
		of, hidden := byID[s.ID], s.State != "" && s.State != "visible"
		b.sheets = append(b.sheets, sheet{s.Name, of.Target, of.kind() == "worksheet", hidden})
	}
	return b, nil
}

func truth(text string) bool {
	return slices.Contains([]string{"1", "true", "on"}, strings.TrimSpace(text))
}

// choose finds the sheet to read: the one with this name, in any case, or the first visible one if name is "".
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
	return sheet{}, rows.Refuse(none, sheetHint)
}

// mostNamed is how many sheets a message names.
const mostNamed = 20

// labels returns the quoted names of those sheets with cells for which some returns true.
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
