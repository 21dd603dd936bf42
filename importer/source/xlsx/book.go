package xlsx

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	slashed "path"
	"slices"
	"strings"
)

// book is what a workbook's parts say of its sheets, before any cell is read.
type book struct {
	sheets []sheet

	parts    archive
	strings  string // name of the part with the shared texts, or ""
	styles   string // name of the part with the number formats, or ""
	from1904 bool   // days are counted from 1904, not from 1900
	computes bool   // its writer leaves it to Excel to compute all formulas when it opens the workbook
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
		of := byID[s.ID]
		b.sheets = append(b.sheets, sheet{
			name: s.Name, part: of.Target, cells: of.kind() == "worksheet",
			hidden: s.State != "" && s.State != "visible",
		})
	}
	return b, nil
}

func truth(text string) bool {
	return slices.Contains([]string{"1", "true", "on"}, strings.TrimSpace(text))
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

// MaxUnpacked is how many bytes the parts of a workbook may have together. This and the other limits are far above
// what Excel writes: what is beyond is made to fill memory or disk.
const MaxUnpacked = 1 << 30

const (
	maxRatio     = 100      // times that a part may grow when it is unpacked
	maxBlank     = 32 << 20 // bytes to which it may grow in any case
	maxParts     = 10_000
	maxDirectory = 8 << 20  // bytes of the archive's own directory
	maxSmallPart = 16 << 20 // bytes of a part that is kept in memory
)

// damage says why a workbook cannot be read, in a sentence about it. It keeps no cause: the texts of an XML decoder
// quote the file.
type damage struct{ text string }

func (d *damage) Error() string { return d.text }

func broken(text string) *damage { return &damage{"the workbook is damaged: " + text} }

var (
	errManyParts = &damage{fmt.Sprintf("the workbook holds more than %d parts", maxParts)}
	errUnpacked  = &damage{fmt.Sprintf("the workbook has more than %d bytes when it is unpacked", MaxUnpacked)}
	errGrowth    = &damage{fmt.Sprintf("a part of the workbook grows more than %d times when it is unpacked", maxRatio)}
	errSmallPart = &damage{fmt.Sprintf("a part that describes the workbook has more than %d bytes", maxSmallPart)}
	errSecret    = &damage{"the parts of the workbook are encrypted"}
	errTwice     = broken("it holds two parts of one name")
	errMissing   = broken("a part is missing")
	errXML       = broken("its XML is broken, cut or not that of a workbook")
)

// damaged makes of an error of the libraries one that can be shown. Errors of a disk stay.
func damaged(err error) error {
	var shown *damage
	var disk *fs.PathError
	var packed flate.CorruptInputError
	switch {
	case err == nil, errors.As(err, &shown), errors.As(err, &disk):
		return err
	case errors.Is(err, zip.ErrChecksum):
		return broken("a checksum is wrong")
	case errors.Is(err, zip.ErrFormat), errors.As(err, &packed), errors.Is(err, io.ErrUnexpectedEOF):
		return broken("the archive is broken or cut")
	case errors.Is(err, zip.ErrAlgorithm):
		return broken("a part is packed in an unknown way")
	}
	return errXML
}

// unexpected keeps an end in the midst of something from looking like the end of it.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// archive is what a ZIP archive holds: parts, by names in lower case without leading slash.
type archive map[string]*zip.File

// openArchive reads the directory of an archive and holds it to the limits.
func openArchive(in io.ReaderAt, size int64) (archive, error) {
	if size > MaxUnpacked {
		return nil, errUnpacked
	}
	within := &bounded{in: in, left: maxDirectory}
	directory, err := zip.NewReader(within, size)
	if within.spent {
		return nil, errManyParts
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	within.left = math.MaxInt64 // the parts are bounded one by one
	if len(directory.File) > maxParts {
		return nil, errManyParts
	}
	parts := make(archive, len(directory.File))
	var total uint64
	for _, file := range directory.File {
		unpacked, name := file.UncompressedSize64, partName(file.Name)
		total += min(unpacked, 2*MaxUnpacked)
		switch {
		case total > MaxUnpacked:
			return nil, errUnpacked
		case unpacked > maxBlank && unpacked/maxRatio > file.CompressedSize64:
			return nil, errGrowth
		case parts[name] != nil:
			return nil, errTwice
		}
		parts[name] = file
	}
	// Parts may overlap in the archive, and say each that they are small.
	if total > maxBlank && total/maxRatio > uint64(size) {
		return nil, errGrowth
	}
	return parts, nil
}

// bounded gives up after so many bytes. An archive's directory is read as a whole before its entries can be counted.
type bounded struct {
	in    io.ReaderAt
	left  int64
	spent bool
}

func (b *bounded) ReadAt(p []byte, offset int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		b.spent = true
		return 0, errManyParts
	}
	return b.in.ReadAt(p, offset)
}

// partName makes the names that an archive and the references inside it use comparable: Excel takes them in any
// case, and some writers use backslashes.
func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(slashed.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
}

// open opens a part. Its reader checks length and checksum when the end is reached.
func (a archive) open(name string) (io.ReadCloser, error) {
	file := a[name]
	switch {
	case file == nil:
		return nil, errMissing
	case file.Flags&1 != 0:
		return nil, errSecret
	}
	return file.Open()
}
