package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"leadferry/importer/source/xlsx"
)

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

// unpack puts the unpacked bytes in place of the packed ones.
func (f *File) unpack(in io.Reader, packing string) (*bufio.Reader, []byte, error) {
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

// unpacker reads a packed file and stops where it is damaged or grows too much. It is read to its end, however many
// members a gzip file or frames a zstd file has.
type unpacker struct {
	packing string
	packed  *meter // has read the packed bytes
	in      io.Reader
	bytes   int64 // unpacked so far
}

func (u *unpacker) begin(in io.Reader) (err error) {
	if u.packing == "gzip" {
		u.in, err = gzip.NewReader(in)
	} else { // one decoder starts no goroutine
		u.in, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}
	return u.wrong(err)
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
		return 0, &packedError{u.packing, errRatio}
	}
	return n, u.wrong(err)
}

// wrong tells errors of the packed data from those of reading the file.
func (u *unpacker) wrong(err error) error {
	if err == nil || err == io.EOF || u.packed.fault != nil { //nolint:errorlint // io.Reader asks for io.EOF itself
		return err
	}
	return &packedError{u.packing, err}
}

var errRatio = fmt.Errorf("it unpacks to more than %d times its size", maxRatio)

// packedError says that packed data cannot be unpacked.
type packedError struct {
	packing string
	err     error
}

// Error is a sentence about the file, with what to do.
func (e *packedError) Error() string {
	text, hint := e.say()
	return text + " (hint: " + hint + ")"
}

func (e *packedError) say() (text, hint string) {
	switch {
	case errors.Is(e.err, io.ErrUnexpectedEOF):
		return "its " + e.packing + " data end too early: the file was cut", "fetch or pack it again"
	case errors.Is(e.err, errRatio):
		return errRatio.Error(), "if that is right, unpack it first"
	case errors.Is(e.err, zstd.ErrWindowSizeExceeded), errors.Is(e.err, zstd.ErrDecoderSizeExceeded):
		return fmt.Sprintf("it was packed with a zstd window of more than %d MiB", maxWindow>>20), "unpack it first"
	}
	return "its " + e.packing + " data are damaged", "fetch or pack it again"
}

// Unwrap gives the cause.
func (e *packedError) Unwrap() error { return e.err }
