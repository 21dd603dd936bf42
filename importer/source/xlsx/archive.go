// Package xlsx reads Excel workbooks (ECMA-376): archive, sheets, and row by row the
// cells of one sheet as Excel shows them.
//
// It stands below source, which makes rows and problems of the cells, and knows no
// header:
//
//	OpenArchive ─▶ Archive ─▶ Book: its sheets ─▶ Open one ─▶ Rows: Next, Cell
//
// Cells are the text that Excel shows in a system whose language is English, but:
//
//   - Numbers in the general and scientific formats keep all their digits, none
//     is rounded for want of room. A whole number of more than 15 digits is a
//     fault: Excel has lost the others.
//   - Dates in formats that look different from system to system (14 to 22, and
//     those of East Asia, among the built-in ones) are written as 2026-03-04,
//     10:11:12 or both, and so are those with words, years or digits of a language
//     that is not known here. All other formats are written as they say.
//   - The built-in currency formats, whose currency depends on the system, are
//     written without one. Blanks that only align a number are left out.
//   - Text is what was entered, whatever its format adds to it.
//   - An error, a formula that was never computed and a number that is no date
//     but has the format of one are faults.
//
// Promises: memory does not grow with the workbook; a sheet that is damaged or cut is
// told before its first row, by the checksums of the archive; no error quotes the file.
package xlsx

import (
	"archive/zip"
	"compress/flate"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	slashed "path"
	"strings"
)

// MaxUnpacked is how many bytes the parts of a workbook may have together. This and
// the other limits are far above what Excel writes: what is beyond is made to fill
// memory or disk.
const MaxUnpacked = 1 << 30

const (
	maxRatio     = 100      // times that a part may grow when it is unpacked
	maxBlank     = 32 << 20 // bytes to which it may grow in any case
	maxParts     = 10_000
	maxDirectory = 8 << 20  // bytes of the archive's own directory
	maxSmallPart = 16 << 20 // bytes of a part that is kept in memory
)

var (
	errManyParts = &Damage{fmt.Sprintf("the workbook holds more than %d parts", maxParts)}
	errUnpacked  = &Damage{fmt.Sprintf("the workbook has more than %d bytes when it is unpacked", MaxUnpacked)}
	errGrowth    = &Damage{fmt.Sprintf("a part of the workbook grows more than %d times when it is unpacked", maxRatio)}
	errTwice     = &Damage{"the workbook is damaged: it holds two parts of one name"}
	errSmallPart = &Damage{fmt.Sprintf("a part that describes the workbook has more than %d bytes", maxSmallPart)}
	errSecret    = &Damage{"the parts of the workbook are encrypted"}
)

// Archive is what a ZIP archive holds: parts, by names in lower case without
// leading slash.
type Archive map[string]*zip.File

// OpenArchive reads the directory of an archive and holds it to the limits. Its error,
// as all of this package that are not those of a disk, is a [*Damage].
func OpenArchive(in io.ReaderAt, size int64) (Archive, error) {
	a, err := openParts(in, size)
	return a, damaged(err)
}

// Has tells whether the archive holds a part.
func (p Archive) Has(name string) bool { return p[name] != nil }

// Only is the name of the one part that the archive holds, or "".
func (p Archive) Only() string {
	for name := range p {
		if len(p) == 1 {
			return name
		}
	}
	return ""
}

func openParts(in io.ReaderAt, size int64) (Archive, error) {
	if size > MaxUnpacked {
		return nil, errUnpacked
	}
	within := &bounded{in: in, left: maxDirectory}
	archive, err := zip.NewReader(within, size)
	if within.spent {
		return nil, errManyParts
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	within.left = -1
	if len(archive.File) > maxParts {
		return nil, errManyParts
	}
	return index(archive.File, size)
}

func index(files []*zip.File, size int64) (Archive, error) {
	p := make(Archive, len(files))
	var total uint64
	for _, file := range files {
		unpacked := file.UncompressedSize64
		if unpacked > MaxUnpacked || total+unpacked > MaxUnpacked {
			return nil, errUnpacked
		}
		total += unpacked
		if unpacked > maxBlank && unpacked/maxRatio > file.CompressedSize64 {
			return nil, errGrowth
		}
		name := partName(file.Name)
		if p[name] != nil {
			return nil, errTwice
		}
		p[name] = file
	}
	// Parts may overlap in the archive, and say each that they are small.
	if total > maxBlank && total/maxRatio > uint64(size) {
		return nil, errGrowth
	}
	return p, nil
}

// partName makes the names that an archive and the references inside it use
// comparable: Excel takes them in any case, and some writers use backslashes.
func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(slashed.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
}

// open opens a part. Its reader checks length and checksum when the end is reached.
func (p Archive) open(name string) (io.ReadCloser, error) {
	file := p[name]
	switch {
	case file == nil:
		return nil, errMissing
	case file.Flags&1 != 0:
		return nil, errSecret
	}
	return file.Open()
}

// decode reads a part that describes the workbook into v.
func (p Archive) decode(name string, v any) error {
	in, err := p.open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if p[name].UncompressedSize64 > maxSmallPart {
		return errSmallPart
	}
	if err := newXMLDecoder(in).Decode(v); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // the checksum comes at the end
	return err
}

// bounded gives up after so many bytes; -1 is no limit. An archive's directory
// is read as a whole before its entries can be counted.
type bounded struct {
	in    io.ReaderAt
	left  int64
	spent bool
}

func (b *bounded) ReadAt(p []byte, offset int64) (int, error) {
	if b.left < 0 {
		return b.in.ReadAt(p, offset)
	}
	if int64(len(p)) > b.left {
		b.spent = true
		return 0, errManyParts
	}
	b.left -= int64(len(p))
	return b.in.ReadAt(p, offset)
}

const (
	maxToken = 12 << 20 // bytes of one tag or one text; Excel's cells hold 32,767 characters
	maxNest  = 64       // levels of elements
)

var (
	errMissing   = &Damage{"the workbook is damaged: a part is missing"}
	errDoctype   = &Damage{"a part of the workbook declares a document type, as no workbook does"}
	errNest      = &Damage{"the workbook is damaged: elements are nested too deep"}
	errHugeToken = &Damage{fmt.Sprintf("the workbook holds a text of more than %d bytes; Excel allows 32767 characters a cell", maxToken)}
)

// guard hands out the tokens of a workbook's part as long as each is of a
// sensible length and depth. A document type, and with it every entity of its
// own, is refused.
type guard struct {
	tokens *xml.Decoder
	in     io.Reader
	left   int // bytes until the token is too long
	depth  int
}

func newXMLDecoder(in io.Reader) *xml.Decoder {
	g := &guard{in: in}
	g.tokens = xml.NewDecoder(g)
	return xml.NewTokenDecoder(g)
}

// Read lets the decoder below have the bytes of one token.
func (g *guard) Read(p []byte) (int, error) {
	if g.left <= 0 {
		return 0, errHugeToken
	}
	n, err := g.in.Read(p)
	g.left -= n
	return n, err
}

// Token gives the next token; the decoder above matches start and end tags.
func (g *guard) Token() (xml.Token, error) {
	g.left = maxToken
	t, err := g.tokens.RawToken()
	if err != nil {
		return nil, err
	}
	switch t.(type) {
	case xml.Directive:
		return nil, errDoctype
	case xml.StartElement:
		if g.depth++; g.depth > maxNest {
			return nil, errNest
		}
	case xml.EndElement:
		g.depth--
	}
	return t, nil
}

// Damage says why a workbook cannot be read. It keeps no cause: the texts of an
// XML decoder quote the file.
type Damage struct{ text string }

// Error is a sentence about the workbook, without its begin and end.
func (d *Damage) Error() string { return d.text }

// damaged makes of an error of the libraries one that can be shown.
func damaged(err error) error {
	if err == nil {
		return nil
	}
	var shown *Damage
	var disk *fs.PathError
	var packed flate.CorruptInputError
	text := "its XML is broken, cut or not that of a workbook"
	switch {
	case errors.As(err, &shown), errors.As(err, &disk):
		return err
	case errors.Is(err, zip.ErrChecksum):
		text = "a checksum is wrong"
	case errors.Is(err, zip.ErrFormat), errors.As(err, &packed), errors.Is(err, io.ErrUnexpectedEOF):
		text = "the archive is broken or cut"
	case errors.Is(err, zip.ErrAlgorithm):
		text = "a part is packed in an unknown way"
	}
	return &Damage{"the workbook is damaged: " + text}
}
