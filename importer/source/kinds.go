package source

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"leadferry/importer/source/rows"
	"leadferry/importer/source/xlsx"
	"leadferry/internal/spelling"
)

const (
	packedHint = "unpack it first, or send the unpacked text through standard input"
	exportHint = "export the rows as CSV in UTF-8, or as an Excel workbook (.xlsx)"
	readable   = "CSV, TSV, JSON and Excel workbooks (.xlsx) can be read, also packed with gzip or zstd"
)

// refusals know by what they begin with the files that people take for tables, and those of other formats.
var refusals = []struct {
	begins     []string
	text, hint string
}{
	{[]string{compound}, "is an old Excel workbook (.xls), or one with a password, which cannot be read", "take the password away if it has one, and save it as an Excel workbook (.xlsx) or as CSV in UTF-8"},
	{[]string{"PK\x03\x04"}, "is an Excel workbook or another ZIP archive", "if it is a workbook, name its format: --format xlsx; else unpack it first"},
	{[]string{"%PDF-"}, "is a PDF document", exportHint},
	{[]string{"<!doctype html", "<html", "<table"}, "is an HTML page, perhaps one that asks to sign in", "download the file itself, or export the rows anew; a table opens in Excel, which saves it as .xlsx"},
	{[]string{"<?xml", "<?mso"}, "is an XML document", exportHint},
	{[]string{
		"BZh91AY&SY", "\xFD7zXZ\x00", "\x04\x22\x4D\x18", "\x1F\x9D", "\x1F\x8B", "7z\xBC\xAF\x27\x1C", "Rar!\x1A\x07", "PK\x05\x06", "PK\x07\x08", `{\rtf`,
		"\x89PNG\r\n", "\xFF\xD8\xFF", "GIF87a", "GIF89a", "II*\x00", "\x7FELF", "MZ\x90\x00", "SQLite format 3\x00", "PAR1\x15", "Obj\x01",
		"\xFF\xFE\x00\x00", "\x00\x00\xFE\xFF", // UTF-32
	}, "is not in a format that is read here", readable},
}

// compound begins workbooks before Excel 2007 and those with a password: Microsoft's older container.
const compound = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"

// refuseContent knows by their first bytes the files that hold no rows. Marks of HTML and XML are of any case.
func refuseContent(head []byte) error {
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return &OpenError{Text: "is a tar archive", Hint: packedHint}
	}
	text := string(bytes.TrimLeft(bytes.TrimPrefix(head, []byte(rows.ByteOrderMark)), " \t\r\n"))
	for _, kind := range refusals {
		for _, begin := range kind.begins {
			marked := begin[0] == '<' && len(text) >= len(begin) && strings.EqualFold(text[:len(begin)], begin)
			if marked || bytes.HasPrefix(head, []byte(begin)) {
				return &OpenError{Text: kind.text, Hint: kind.hint}
			}
		}
	}
	return nil
}

// refuseMacintosh knows the files whose lines end with a lone CR by the first line, which then is the whole file or longer than a
// record may be.
func refuseMacintosh(line []byte) error {
	if bytes.IndexByte(line, '\r') >= 0 && bytes.IndexByte(line, '\n') < 0 {
		return &OpenError{Line: 1, Text: "the lines end with CR alone, as on old Macintosh systems", Hint: "save the file with line ends LF or CR LF"}
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
	err := cmp.Or(refuseContent(head), refuseOwn(name, head))
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
