package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// The rows of a file fill it to a hundredth at best; more is a trap. What
	// is below a first allowance takes no time worth speaking of, so that files
	// of one row many times over, or of blanks, are read.
	maxRatio = 100
	maxFree  = 64 << 20 // bytes of a packed text
	// Every program that writes zstd keeps to this window unless told otherwise.
	maxWindow = 8 << 20
)

// packing names the way in which a file that begins so is packed; "" if it is not.
func packing(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x1F\x8B\x08")):
		return "gzip"
	case bytes.HasPrefix(head, []byte("\x28\xB5\x2F\xFD")),
		len(head) > 4 && head[0]&0xF0 == 0x50 && string(head[1:4]) == "\x2A\x4D\x18": // a frame to be skipped
		return "zstd"
	}
	return ""
}

// unpacker reads a packed file and stops where it is damaged or grows too much.
type unpacker struct {
	kind   string
	in     io.Reader
	zstd   *zstd.Decoder // nil: it is gzip
	packed *meter
	bytes  int64 // unpacked so far
}

// newUnpacker unpacks what in gives, which was counted by packed. It is read
// to its end, however many members a gzip file or frames a zstd file has.
func newUnpacker(kind string, in io.Reader, packed *meter) (*unpacker, error) {
	u := &unpacker{kind: kind, packed: packed}
	if kind == "gzip" {
		z, err := gzip.NewReader(in)
		u.in = z
		return u, u.wrong(err)
	}
	// One decoder starts no goroutine.
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return u, u.wrong(err)
	}
	u.in, u.zstd = z, z
	return u, nil
}

// Close frees what the unpacking took.
func (u *unpacker) Close() error {
	if u.zstd != nil {
		u.zstd.Close()
	}
	return nil
}

// Read gives unpacked bytes.
func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	u.bytes += int64(n)
	if u.bytes > maxFree+maxRatio*u.packed.bytes {
		return 0, &packedError{u.kind, errRatio}
	}
	return n, u.wrong(err)
}

// wrong tells errors of the packed data from those of reading the file.
func (u *unpacker) wrong(err error) error {
	if err == nil || err == io.EOF || u.packed.fault != nil { //nolint:errorlint // io.Reader asks for io.EOF itself
		return err
	}
	return &packedError{u.kind, err}
}

var errRatio = fmt.Errorf("it unpacks to more than %d times its size", maxRatio)

// packedError says that packed data cannot be unpacked.
type packedError struct {
	kind string
	err  error
}

// Error is a sentence about the file, with what to do.
func (e *packedError) Error() string {
	text, hint := e.say()
	return text + " (hint: " + hint + ")"
}

func (e *packedError) say() (text, hint string) {
	switch {
	case errors.Is(e.err, io.ErrUnexpectedEOF):
		return "its " + e.kind + " data end too early: the file was cut", "fetch or pack it again"
	case errors.Is(e.err, errRatio):
		return errRatio.Error(), "if that is right, unpack it first"
	case errors.Is(e.err, zstd.ErrWindowSizeExceeded), errors.Is(e.err, zstd.ErrDecoderSizeExceeded):
		return fmt.Sprintf("it was packed with a zstd window of more than %d MiB", maxWindow>>20), "unpack it first"
	}
	return "its " + e.kind + " data are damaged", "fetch or pack it again"
}

// Unwrap gives the cause.
func (e *packedError) Unwrap() error { return e.err }

// unpack puts the unpacked bytes in place of the packed ones.
func (f *File) unpack(in sniffer, kind string) (sniffer, *OpenError) {
	u, err := newUnpacker(kind, in, f.meter)
	if err != nil {
		return in, unreadable(err)
	}
	f.closers = append(f.closers, u)
	inner, refusal := sniff(u)
	if refusal == nil && packing(inner.head) != "" {
		refusal = &OpenError{Text: "is packed twice: the " + kind + " data hold " + packing(inner.head) + " data again", Hint: packedHint}
	}
	if refusal == nil && isArchive(inner.head) {
		refusal = &OpenError{Text: "is a workbook or ZIP archive, packed with " + kind + " once more", Hint: packedHint}
	}
	return inner, refusal
}
