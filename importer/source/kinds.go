package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"leadferry/importer/source/rows"
)

const readable = "CSV, TSV, JSON and Excel workbooks (.xlsx) can be read, text also packed once with gzip or zstd"

// refusals lists kinds of files that cannot be read, by their first bytes. Some look like tables to people.
var refusals = []struct {
	begins     []string
	text, hint string
}{
	{
		[]string{"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"}, // Microsoft's older container
		"is an old Excel workbook (.xls), or one with a password, which cannot be read",
		"take the password away if it has one, and save it as an Excel workbook (.xlsx) or as CSV in UTF-8",
	},
	{
		[]string{"PK\x03\x04"},
		"is an Excel workbook or another ZIP archive",
		"if it is a workbook, name its format: --format xlsx; else unpack it first",
	},
	{[]string{"%PDF-"}, "is a PDF document", "export the rows as CSV in UTF-8, or as an Excel workbook (.xlsx)"},
	{
		[]string{"<!doctype html", "<html", "<table", "<head", "<body", "<meta", "<style", "<div", "<!--"},
		"is an HTML page, perhaps one that asks to sign in",
		"download the file itself, or export the rows again; a table opens in Excel, which saves it as .xlsx",
	},
	{[]string{
		"<?xml", "<?mso", "BZh91AY&SY", "\xFD7zXZ\x00", "\x04\x22\x4D\x18", "\x1F\x9D", "\x1F\x8B", "\x28\xB5\x2F\xFD",
		"7z\xBC\xAF\x27\x1C", "Rar!\x1A\x07", "PK\x05\x06", `{\rtf`, "\x89PNG\r\n", "\xFF\xD8\xFF", "\x7FELF",
		"MZ\x90\x00", "SQLite format 3\x00", "PAR1\x15", "\xFF\xFE\x00\x00", "\x00\x00\xFE\xFF", // UTF-32, too
	}, "is not in a format that is read here", readable},
}

// refuseContent refuses a file without rows by its first bytes. Tags of HTML and XML match in any case.
func refuseContent(head []byte) error {
	const mark = 257 // where tar has "ustar", after its first file's name
	if len(head) > mark && bytes.HasPrefix(head[mark:], []byte("ustar")) {
		return rows.Refuse("is not in a format that is read here: it is a tar archive", "unpack it first; "+readable)
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(rows.ByteOrderMark)), " \t\r\n")
	for _, kind := range refusals {
		for _, begin := range kind.begins {
			marked := begin[0] == '<' && len(text) >= len(begin) && strings.EqualFold(string(text[:len(begin)]), begin)
			if marked || bytes.HasPrefix(head, []byte(begin)) {
				return rows.Refuse(kind.text, kind.hint)
			}
		}
	}
	return nil
}

// IsTable reports whether a name ends like that of an input. It is for hints when a user names the wrong file.
func IsTable(name string) bool {
	return namedFormat(name) != "" && !strings.HasSuffix(strings.ToLower(name), ".json")
}

const (
	maxRatio  = 100      // times its packed size that a text may have; rows never pack better, traps do
	maxFree   = 64 << 20 // bytes that a text may have, whatever its packed size
	maxWindow = 8 << 20  // bytes: no zstd program uses a larger window by default
)

// packingOf returns how a file that begins with head is packed; "" if it is not packed.
func packingOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x1F\x8B\x08")):
		return "gzip"
	case bytes.HasPrefix(head, []byte("\x28\xB5\x2F\xFD")),
		len(head) > 4 && head[0]&0xF0 == 0x50 && string(head[1:4]) == "\x2A\x4D\x18": // a skippable frame
		return "zstd"
	}
	return ""
}

func (f *File) unpack(in *bufio.Reader, packing string) (*bufio.Reader, []byte, error) {
	u, err := newUnpacker(in, packing, f.meter)
	if err != nil {
		return nil, nil, err
	}
	f.closers = append(f.closers, u)
	return sniff(u)
}

// prove reads packed data to the end and fails if they are damaged.
func prove(packed io.Reader, packing string) error {
	m := &meter{in: packed}
	u, err := newUnpacker(bufio.NewReader(m), packing, m)
	if err == nil {
		defer u.Close()
		_, err = io.Copy(io.Discard, u)
	}
	if errors.Is(err, errDamaged) {
		return err
	}
	return nil // the rows before any other error can still be read
}

// unpacker reads all members of a gzip file or frames of a zstd file. It fails if they are damaged or grow too much.
type unpacker struct {
	packing string
	packed  *meter // counts the packed bytes
	in      io.Reader
	bytes   int64 // how many are unpacked so far
}

func newUnpacker(in *bufio.Reader, packing string, packed *meter) (u *unpacker, err error) {
	u = &unpacker{packing: packing, packed: packed}
	if packing == "gzip" {
		u.in, err = gzip.NewReader(in)
	} else { // with concurrency 1 the decoder starts no goroutine
		u.in, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}
	return u, u.describe(err)
}

// Close frees the memory of the decoder.
func (u *unpacker) Close() error {
	if z, ok := u.in.(*zstd.Decoder); ok {
		z.Close()
	}
	return nil
}

// Read reads unpacked bytes.
func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	if u.bytes += int64(n); u.bytes > maxFree+maxRatio*u.packed.bytes {
		return 0, rows.Refuse(fmt.Sprintf("it unpacks to more than %d times its size", maxRatio),
			"if that is right, unpack it first")
	}
	return n, u.describe(err)
}

var errDamaged = errors.New("packed data are damaged")

// describe turns an error of the packed data into a sentence. It returns read errors unchanged.
func (u *unpacker) describe(err error) error {
	if err == nil || err == io.EOF || u.packed.fault != nil { //nolint:errorlint // io.Reader asks for io.EOF itself
		return err
	}
	refusal := &OpenError{Hint: "fetch or pack it again", Err: err}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		refusal.Text = "its " + u.packing + " data end too early: the file was cut"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch):
		refusal.Text = "something that is not packed follows its " + u.packing + " data"
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		refusal.Text, refusal.Hint = fmt.Sprintf("it was packed with a zstd window of more than %d MiB",
			maxWindow>>20), "unpack it first"
	default:
		refusal.Text, refusal.Err = "its "+u.packing+" data are damaged", errDamaged
	}
	return refusal
}
