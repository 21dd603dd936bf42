package source

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"leadferry/importer/source/xlsx"
	"leadferry/internal/spelling"
)

const (
	packedHint = "unpack it first, or send the unpacked text through standard input"
	exportHint = "export the rows as CSV in UTF-8, or as an Excel workbook (.xlsx)"
	readable   = "CSV, TSV, JSON and Excel workbooks (.xlsx) can be read, also packed with gzip or zstd"
)

// magic is what files of a kind begin with, in one way or another.
type magic struct {
	text, hint string
	begins     []string
}

// refuseContent knows by their first bytes the files that hold no rows.
func refuseContent(head []byte) error {
	if xlsx.IsCompound(head) {
		return &OpenError{Text: "is an old Excel workbook (.xls), or one with a password, which cannot be read", Hint: xlsx.Hint}
	}
	const tar, tarAt = "ustar", 257
	if len(head) > tarAt && bytes.HasPrefix(head[tarAt:], []byte(tar)) {
		return &OpenError{Text: "is a tar archive", Hint: packedHint}
	}
	return refuseMagic(head, []magic{
		{"is packed with bzip2, which cannot be read", packedHint, []string{"BZh91AY&SY"}},
		{"is packed with xz, which cannot be read", packedHint, []string{"\xFD7zXZ\x00"}},
		{"is packed with lz4, which cannot be read", packedHint, []string{"\x04\x22\x4D\x18"}},
		{"is packed with compress, which cannot be read", packedHint, []string{"\x1F\x9D"}},
		{"is packed with gzip in a way that is not known", packedHint, []string{"\x1F\x8B"}},
		{"is a 7-Zip archive, which cannot be read", packedHint, []string{"7z\xBC\xAF\x27\x1C"}},
		{"is a RAR archive, which cannot be read", packedHint, []string{"Rar!\x1A\x07"}},
		{"is an Excel workbook or another ZIP archive", "if it is a workbook, name its format: --format xlsx; else unpack it first", []string{"PK\x03\x04"}},
		{"is an empty ZIP archive", readable, []string{"PK\x05\x06"}},
		{"is a part of a ZIP archive", packedHint, []string{"PK\x07\x08"}},
		{"is a PDF document", exportHint, []string{"%PDF-"}},
		{"is a text document (RTF)", exportHint, []string{`{\rtf`}},
		{"is an image", readable, []string{"\x89PNG\r\n", "\xFF\xD8\xFF", "GIF87a", "GIF89a", "II*\x00"}},
		{"is a program", readable, []string{"\x7FELF", "MZ\x90\x00"}},
		{"is an SQLite database", exportHint, []string{"SQLite format 3\x00"}},
		{"is a Parquet file", exportHint, []string{"PAR1\x15"}},
		{"is an Avro file", exportHint, []string{"Obj\x01"}},
		{"is text in UTF-32, which cannot be read", "save it as UTF-8", []string{"\xFF\xFE\x00\x00", "\x00\x00\xFE\xFF"}},
	})
}

// refuseText knows pages and other markup by their text, which begins so, and the files whose lines end with a lone
// CR by the first line, which then is the whole file or longer than a record may be.
func refuseText(line []byte) error {
	if bytes.IndexByte(line, '\r') >= 0 && bytes.IndexByte(line, '\n') < 0 {
		return &OpenError{Line: 1, Text: "the lines end with CR alone, as on old Macintosh systems", Hint: "save the file with line ends LF or CR LF"}
	}
	text := bytes.ToLower(bytes.TrimLeft(line[:min(len(line), sniffBytes)], " \t\r\n"))
	return refuseMagic(text, []magic{
		{"is an HTML page, perhaps one that asks to sign in", "download the file itself, or export the rows anew", []string{"<!doctype html", "<html"}},
		{"is an HTML table, as some programs write under the name .xls", "open it in Excel and save it as .xlsx or as CSV in UTF-8", []string{"<table"}},
		{"is an XML document", exportHint, []string{"<?xml", "<?mso"}},
	})
}

func refuseMagic(text []byte, kinds []magic) error {
	for _, m := range kinds {
		if slices.ContainsFunc(m.begins, func(begin string) bool { return bytes.HasPrefix(text, []byte(begin)) }) {
			return &OpenError{Text: m.text, Hint: m.hint}
		}
	}
	return nil
}

const ownHint = "name the file that holds the rows; the mapping goes behind -m, a checkpoint behind --checkpoint"

// checkpointMagic stands in the first page of checkpoints, and of what a sandbox holds.
const checkpointMagic, checkpointMagicAt = "\xED\xDA\x0C\xED", 16

var mappingHead = spelling.Form(`^\x{FEFF}*(?:[ \t]*(?:#[^\n]*)?\r?\n|---[ \t]*\r?\n)*version:[ \t]`)

// refuseOwn knows the files that stand beside an input in a command, and are easily named in its place.
func refuseOwn(name string, head []byte) error {
	text := ""
	switch extension := strings.ToLower(filepath.Ext(name)); {
	case len(head) > checkpointMagicAt && bytes.HasPrefix(head[checkpointMagicAt:], []byte(checkpointMagic)):
		text = "is " + KindCheckpoint + ", or what a sandbox holds, and no table"
	case mappingHead().Match(head), extension == ".yaml", extension == ".yml":
		text = "is " + KindMapping + ", and no table"
	default:
		return nil
	}
	return &OpenError{Text: text, Hint: ownHint}
}

// Kinds that KindOf gives of files which stand beside the inputs in a command.
const (
	KindMapping    = "a mapping or another YAML file"
	KindCheckpoint = "a checkpoint"
)

// KindBytes is how many of a file's first bytes KindOf wants to see.
const KindBytes = 512

// KindOf says what kind of file one is, by its name and its first bytes, where that is known: it may be named in the
// place of another. "" stands for a text of which nothing is known.
func KindOf(name string, head []byte) string {
	if packingOf(head) != "" {
		return "a packed file"
	}
	err := cmp.Or(refuseContent(head), refuseText(bytes.ReplaceAll(head, []byte("\r"), nil)), refuseOwn(name, head))
	if known, ok := errors.AsType[*OpenError](err); ok {
		text, _, _ := strings.Cut(strings.TrimPrefix(known.Text, "is "), ", ")
		return text
	}
	if namedFormat(name) == "" || strings.EqualFold(filepath.Ext(name), ".json") {
		return ""
	}
	return "a table by its name"
}

const (
	// The rows of a file fill it to a hundredth at best; more is a trap. What is below a first allowance takes no
	// time worth speaking of, so that files of one row many times over, or of blanks, are read.
	maxRatio = 100
	maxFree  = 64 << 20 // bytes of a packed text
	// Every program that writes zstd keeps to this window unless told otherwise.
	maxWindow = 8 << 20
)

// packingOf names the way in which a file that begins so is packed; "" if it is not.
func packingOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x1F\x8B\x08")):
		return "gzip"
	case bytes.HasPrefix(head, []byte("\x28\xB5\x2F\xFD")),
		len(head) > 4 && head[0]&0xF0 == 0x50 && string(head[1:4]) == "\x2A\x4D\x18": // a frame to be skipped
		return "zstd"
	}
	return ""
}

func (f *File) unpack(in *bufio.Reader, packing string) (*bufio.Reader, []byte, error) {
	u := &unpacker{packing: packing, packed: f.meter}
	if err := u.begin(in); err != nil {
		return nil, nil, err
	}
	f.closers = append(f.closers, u)
	inner, head, err := sniff(u)
	switch twice := packingOf(head); {
	case err != nil:
	case twice != "":
		err = &OpenError{Text: "is packed twice: the " + packing + " data hold " + twice + " data again", Hint: packedHint}
	case xlsx.IsArchive(head):
		err = &OpenError{Text: "is a workbook or ZIP archive, packed with " + packing + " once more", Hint: packedHint}
	}
	return inner, head, err
}

// prove reads packed data to their end, and gives an error where they are damaged.
func prove(packed io.Reader, packing string) error {
	u := &unpacker{packing: packing, packed: newMeter(packed)}
	defer u.Close()
	err := u.begin(bufio.NewReader(u.packed))
	if err == nil {
		_, err = io.Copy(io.Discard, u)
	}
	if errors.Is(err, errDamaged) {
		return err
	}
	return nil // what else there is comes again
}

// unpacker reads a packed file and stops where it is damaged or grows too much. It is read to its end, however many
// members a gzip file or frames a zstd file has.
type unpacker struct {
	packing string
	packed  *meter // has read the packed bytes
	in      io.Reader
	bytes   int64 // unpacked so far
}

func (u *unpacker) begin(in *bufio.Reader) (err error) {
	if u.packing == "gzip" {
		m := &members{packed: in}
		if m.member, err = gzip.NewReader(in); err == nil {
			m.member.Multistream(false)
		}
		u.in = m
	} else { // one decoder starts no goroutine
		u.in, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}
	return u.wrong(err)
}

// members are those of a gzip file, one by one: package gzip takes what stands behind the last for one that was cut.
type members struct {
	packed *bufio.Reader
	member *gzip.Reader
}

// Read gives unpacked bytes.
func (m *members) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if n, err = m.member.Read(p); errors.Is(err, io.EOF) {
			err = m.next()
		}
	}
	return n, err
}

var errDamaged = errors.New("packed data are damaged")

var errBehind = errors.New("something else stands behind the packed data")

// next goes on to the next member; its error is io.EOF where there is none. The zeros that fill the last block of a tape
// may stand behind the last.
func (m *members) next() error {
	for {
		next, err := m.packed.Peek(1)
		switch {
		case err != nil:
			return err
		case next[0] == 0:
			_, _ = m.packed.Discard(1) // which was seen
		case next[0] != 0x1F:
			return errBehind
		default:
			err := m.member.Reset(m.packed)
			m.member.Multistream(false)
			return err
		}
	}
}

// Close frees what the unpacking took.
func (u *unpacker) Close() error {
	if z, ok := u.in.(*zstd.Decoder); ok {
		z.Close()
	}
	return nil
}

// Read gives unpacked bytes.
func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	if u.bytes += int64(n); u.bytes > maxFree+maxRatio*u.packed.bytes {
		return 0, &packedError{fmt.Sprintf("it unpacks to more than %d times its size", maxRatio), "if that is right, unpack it first", nil}
	}
	return n, u.wrong(err)
}

// wrong tells errors of the packed data from those of reading the file.
func (u *unpacker) wrong(err error) error {
	if err == nil || err == io.EOF || u.packed.fault != nil { //nolint:errorlint // io.Reader asks for io.EOF itself
		return err
	}
	const again = "fetch or pack it again"
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &packedError{"its " + u.packing + " data end too early: the file was cut", again, err}
	case errors.Is(err, errBehind), errors.Is(err, zstd.ErrMagicMismatch):
		return &packedError{"something that is not packed stands behind its " + u.packing + " data", again, err}
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return &packedError{fmt.Sprintf("it was packed with a zstd window of more than %d MiB", maxWindow>>20), "unpack it first", err}
	}
	return &packedError{"its " + u.packing + " data are damaged", again, errDamaged}
}

// packedError says that packed data cannot be unpacked, and what to do.
type packedError struct {
	text, hint string
	err        error // the cause, or nil
}

func (e *packedError) Error() string { return e.text }
func (e *packedError) Hint() string  { return e.hint }
func (e *packedError) Unwrap() error { return e.err }
