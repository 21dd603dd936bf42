package lines

import (
	"bytes"
	"errors"
	"io"
	"maps"

	"golang.org/x/text/transform"
)

// undecodable stands in the decoded text for bytes that have no meaning in the
// file's encoding. No UTF-8 text holds it, so that the rows it stands in are
// found in the same way as those of a damaged UTF-8 file.
const undecodable = 0xFF

const (
	decodeBytes = 32 << 10 // that are decoded at once
	maxSpots    = 4096     // places remembered
	growth      = 3        // bytes of text that one byte can become
	widestRune  = 8        // bytes of text that a character can become
	longestCode = 4        // bytes that a character can have in any encoding
)

// decoder turns text of another encoding into UTF-8.
//
// The decoders of x/text put U+FFFD for what they cannot decode. Text in which
// it appears is decoded again, one character at a time, to tell those from a
// U+FFFD that the file holds, and to know where they stand.
type decoder struct {
	in      io.Reader
	charset charset
	codec   transform.Transformer

	src        []byte
	start, end int   // src[start:end] is read and not yet decoded
	raw        int64 // place of src[start] in the file
	err        error // what ended the reading

	buf     []byte
	out     []byte         // what is decoded and not yet given
	decoded int64          // place in the text of what is decoded next
	spots   map[int64]spot // by places in the text
}

// spot says what stands in the file for a byte of the text that is undecodable, or NUL.
type spot struct {
	offset int64
	bytes  string
}

// newDecoder decodes what in gives from the byte offset of the file on.
func newDecoder(in io.Reader, c charset, offset int64) *decoder {
	return &decoder{
		in: in, charset: c, codec: c.encoding.NewDecoder().Transformer, raw: offset,
		src: make([]byte, decodeBytes), buf: make([]byte, growth*decodeBytes), spots: map[int64]spot{},
	}
}

// Read gives decoded text.
func (d *decoder) Read(p []byte) (int, error) {
	for len(d.out) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		d.fill()
		d.decode()
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

// fill reads one block more behind what a character cut by its end has left.
func (d *decoder) fill() {
	d.end = copy(d.src, d.src[d.start:d.end])
	d.start = 0
	n, err := io.ReadAtLeast(d.in, d.src[d.end:], 1)
	d.end += n
	d.err = err
}

// decode decodes what was read, but for a character that is cut.
func (d *decoder) decode() {
	src, last := d.src[d.start:d.end], errors.Is(d.err, io.EOF)
	// The error says that a character is cut, which the next block mends; the
	// target is large enough for any source.
	n, used, _ := d.codec.Transform(d.buf, src, last)
	d.out = d.buf[:n]
	if d.doubtful(src, d.out) {
		d.out, used = d.slowly(src, last)
	}
	d.start += used
	d.raw += int64(used)
	d.decoded += int64(len(d.out))
}

// doubtful looks for what must be looked at one by one.
func (d *decoder) doubtful(src, text []byte) bool {
	return bytes.Contains(text, []byte("\uFFFD")) || bytes.IndexByte(text, 0) >= 0 ||
		d.charset.lax != nil && d.charset.lax(src)
}

// slowly decodes one character after another into d.buf.
func (d *decoder) slowly(src []byte, last bool) (text []byte, used int) {
	d.codec.Reset()
	text = d.buf[:0]
	var one [widestRune]byte
	for used < len(src) {
		rest := src[used:]
		n, size := d.one(one[:], rest, last)
		if size == 0 {
			break
		}
		bad := d.bad(one[:n], rest[:size])
		if bad && size > 1 && rest[1] < 0x80 && !d.charset.wide {
			size = 1 // a letter, or the end of the line, that is none of it
		}
		at := d.decoded + int64(len(text))
		switch {
		case bad:
			d.remember(at, spot{d.raw + int64(used), string(rest[:size])})
			text = append(text, undecodable)
		case one[0] == 0:
			d.remember(at, spot{d.raw + int64(used), "\x00"})
			fallthrough
		default:
			text = append(text, one[:n]...)
		}
		used += size
	}
	return text, used
}

// one decodes the character that src begins with. Its size is 0 where it is cut.
func (d *decoder) one(dst, src []byte, last bool) (n, size int) {
	for k := 1; k <= min(longestCode, len(src)); k++ {
		whole := last && k == len(src)
		// Only characters that use all k bytes are longer than U+FFFD; what
		// follows a U+FFFD must wait for its own turn.
		n, size, _ = d.codec.Transform(dst[:len("\uFFFD")], src[:k], whole)
		if size == 0 {
			n, size, _ = d.codec.Transform(dst, src[:k], whole)
		}
		if size > 0 {
			return n, size
		}
	}
	return 0, 0
}

// bad says that a decoded character is none of the file's.
func (d *decoder) bad(text, src []byte) bool {
	if string(text) == "\uFFFD" {
		return string(src) != d.charset.replacement
	}
	return d.charset.lax != nil && d.charset.lax(src)
}

func (d *decoder) remember(at int64, s spot) {
	if len(d.spots) < maxSpots {
		d.spots[at] = s
	}
}

// forget drops the places that lie before one of the text.
func (d *decoder) forget(before int64) {
	maps.DeleteFunc(d.spots, func(at int64, _ spot) bool { return at < before })
}
