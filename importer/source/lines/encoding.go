package lines

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/transform"

	"leadferry/importer/source/rows"
)

const utf8Label = "utf-8"

// Decode shows the text of a file in UTF-8. A byte order mark says what its encoding is, else the options do, else it
// is UTF-8.
func Decode(in *bufio.Reader, o rows.Options, found *rows.Found) (*Window, error) {
	c, err := findCharset(o.Encoding)
	if err != nil {
		return nil, err
	}
	found.Other = c.label != utf8Label
	head, _ := in.Peek(in.Size()) // an error comes again where the text is read
	if label := byteOrderMark(head); label != "" && label != c.label {
		if o.Encoding != "" {
			found.Warn("the file begins with the byte order mark of %s and is read so, not as %s", label, c.label)
		}
		if c, err = findCharset(label); err != nil {
			return nil, err
		}
	}
	found.Encoding = c.label
	if c.label == utf8Label {
		return New(in, o.MaxRecord), nil
	}
	var text io.Reader = in
	if c.encoding == japanese.ISO2022JP {
		text = &pairs{in: in}
	}
	w := New(transform.NewReader(text, c.encoding.NewDecoder()), o.MaxRecord)
	w.charset = c
	return w, nil
}

// pairs makes of each byte that is half a character of ISO-2022-JP one that is none: the decoder would take whatever
// follows it, also a line's end, for the other half.
type pairs struct {
	in     *bufio.Reader
	wide   bool // characters have two bytes
	second bool // the next byte is the second one of a character
}

// Read gives the text, byte by byte.
func (p *pairs) Read(text []byte) (n int, err error) {
	const escape, none = 0x1B, 0xFF
	isHalf := func(b byte) bool { return 0x21 <= b && b <= 0x7E }
	for ; n < len(text); n++ {
		b, err := p.in.ReadByte()
		if err != nil {
			return n, err
		}
		next, _ := p.in.Peek(1)
		switch {
		case p.second:
			p.second = false
		case b == escape:
			p.wide = len(next) > 0 && next[0] == '$'
		case b == '\n':
			p.wide = false
		case p.wide && isHalf(b):
			if p.second = len(next) > 0 && isHalf(next[0]); !p.second {
				b = none
			}
		}
		text[n] = b
	}
	return n, nil
}

// charset is an encoding.
type charset struct {
	label    string
	encoding encoding.Encoding
}

// findCharset finds an encoding by any of its labels; "" is UTF-8.
func findCharset(label string) (charset, error) {
	if label == "" {
		label = utf8Label
	}
	const hint = "use a label of the WHATWG Encoding Standard, as utf-8, utf-16le, windows-1252, shift_jis, gb18030 " +
		"or euc-kr"
	enc, err := htmlindex.Get(label)
	if err != nil {
		return charset{}, rows.Refuse(fmt.Sprintf("the encoding %q is not known", label), hint)
	}
	name, err := htmlindex.Name(enc)
	if err != nil || enc == encoding.Replacement || enc == charmap.XUserDefined {
		return charset{}, rows.Refuse(fmt.Sprintf("text in the encoding %q cannot be read", label), hint)
	}
	return charset{name, enc}, nil
}

// isUTF8 says that a text beyond ASCII was read in an encoding of one byte a character though the file holds UTF-8.
func (c *charset) isUTF8(text []byte) bool {
	if _, single := c.encoding.(*charmap.Charmap); !single {
		return false
	}
	written, err := c.encoding.NewEncoder().Bytes(text)
	return err == nil && utf8.Valid(written)
}

// byteOrderMark is the encoding that the byte order mark at a text's beginning tells, or "".
func byteOrderMark(head []byte) (label string) {
	for _, m := range []struct{ bytes, label string }{
		{rows.ByteOrderMark, utf8Label},
		{"\xFF\xFE", "utf-16le"},
		{"\xFE\xFF", "utf-16be"},
	} {
		if bytes.HasPrefix(head, []byte(m.bytes)) {
			return m.label
		}
	}
	return ""
}

// BadText finds what no text holds in the first n bytes of the window.
func (w *Window) BadText(n int) *rows.Problem { return w.BadTextAt(w.Bytes(n), w.Number, w.Offset) }

// BadTextAt finds what no text holds in a record that begins on this line, at this place in the text: a NUL, or bytes
// that are none of the file's encoding, or seem to be UTF-8 instead. A decoder puts U+FFFD for the former; no U+FFFD is
// taken for a character then.
func (w *Window) BadTextAt(record []byte, line int, offset int64) *rows.Problem {
	label, named, bad := w.charset.label, "UTF-8", len(record)
	if label == utf8Label {
		bad = firstInvalid(record)
	} else {
		named = "text in " + label
		if i := bytes.Index(record, []byte("\uFFFD")); i >= 0 {
			bad = i
		}
	}
	where := func(i int) string {
		line += bytes.Count(record[:i], []byte{'\n'})
		column := utf8.RuneCount(record[bytes.LastIndexByte(record[:i], '\n')+1:i]) + 1
		if label == utf8Label {
			return fmt.Sprintf(" at byte offset %d of the file, line %d, character %d of the line", offset+int64(i),
				line, column)
		}
		return fmt.Sprintf(" on line %d, character %d of the line", line, column)
	}
	if nul := bytes.IndexByte(record, 0); nul >= 0 && nul < bad {
		const hint = "export the file anew; text in UTF-16 without a byte order mark needs --encoding utf-16le or " +
			"--encoding utf-16be"
		return rows.Flaw("nul", "the row holds a NUL byte,"+where(nul), hint)
	}
	if bad < len(record) {
		return rows.Flaw("encoding", "the row is not "+named+where(bad), encodingHint(label))
	}
	if label == utf8Label {
		return nil
	}
	high := bytes.IndexFunc(record, func(r rune) bool { return r >= utf8.RuneSelf })
	if high < 0 || !w.charset.isUTF8(record) {
		return nil
	}
	const text = "the row is text in UTF-8 as well as in %s, which was named:%s there would be other characters"
	return rows.Flaw("encoding", fmt.Sprintf(text, label, where(high)),
		"take the encoding out where the file is UTF-8, or write all of it in one encoding where it was put together")
}

// Readable is a record for people: bytes that are no text are written as \xNN.
func Readable(record []byte) string {
	var b strings.Builder
	for i := 0; i < len(record); {
		r, size := utf8.DecodeRune(record[i:])
		if r != 0 && (r != utf8.RuneError || size > 1) {
			b.Write(record[i : i+size])
		} else {
			fmt.Fprintf(&b, `\x%02X`, record[i])
		}
		i += size
	}
	return b.String()
}

// firstInvalid is where text stops being UTF-8, or its length.
func firstInvalid(text []byte) int {
	if utf8.Valid(text) { // mostly, and eight bytes at a time
		return len(text)
	}
	for i, r := range string(text) {
		if r == utf8.RuneError && !bytes.HasPrefix(text[i:], []byte("\uFFFD")) {
			return i
		}
	}
	return len(text)
}

// encodingHint says what to do about text that is not what its label says. Nothing is ever read in a guessed encoding.
func encodingHint(label string) string {
	if label != utf8Label {
		return "name the encoding that the file was written in with --encoding, or save it as UTF-8"
	}
	return "set the encoding that the file was written in, such as --encoding windows-1252 (Western Europe), " +
		"windows-1251 (Cyrillic), windows-1253 (Greek), shift_jis, gb18030, euc-kr or big5, or save it as UTF-8"
}
