package lines

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/transform"

	"leadferry/importer/source/rows"
)

// Labels of the WHATWG Encoding Standard that need to be known by name.
const (
	utf8Label    = "utf-8"
	utf16LELabel = "utf-16le"
	utf16BELabel = "utf-16be"
)

// Decode shows the text of a file, whose first bytes are looked at, in UTF-8. A byte order mark says what its
// encoding is, else the options do, else it is UTF-8.
func Decode(in *bufio.Reader, o rows.Options, found *rows.Found) (*Window, error) {
	c, err := findCharset(o.Encoding)
	if err != nil {
		return nil, err
	}
	found.Other = c.label != utf8Label
	head, _ := in.Peek(in.Size()) // an error comes again where the text is read
	label := byteOrderMark(head)
	if label == "" {
		err = refuseWide(head, o.Encoding != "", c)
	} else if label != c.label {
		if o.Encoding != "" {
			found.Warn("the file begins with the byte order mark of %s and is read so, not as %s", label, c.label)
		}
		c, err = findCharset(label)
	}
	if err != nil {
		return nil, err
	}
	found.Encoding = c.label
	if c.label == utf8Label {
		return New(in, o.MaxRecord), nil
	}
	d := &decoder{charset: c, codec: c.encoding.NewDecoder().Transformer, spots: map[int64]spot{}}
	var text io.Reader = in
	if c.before != nil {
		c.before.Reset()
		text = transform.NewReader(in, c.before)
	}
	w := New(transform.NewReader(text, d), o.MaxRecord)
	w.encoding, w.decoder = c.label, d
	return w, nil
}

// charset is an encoding and what its decoder of x/text does not say.
type charset struct {
	label       string
	encoding    encoding.Encoding
	replacement string                // how a true U+FFFD is written; "" where it cannot be
	before      transform.Transformer // what turns the file's text into this encoding; nil: it is
	wide        bool                  // its units have two bytes
	single      bool                  // each character has one byte
	lone80      string                // what the byte 0x80 alone is read as, though the encoder does not write it so; or ""
	lax         func(src []byte) bool // finds what the decoder takes though it has no meaning
}

// findCharset finds an encoding by any of its labels; "" is UTF-8.
func findCharset(label string) (charset, error) {
	if label == "" {
		label = utf8Label
	}
	const hint = "use a label of the WHATWG Encoding Standard, as utf-8, utf-16le, windows-1252, shift_jis, gb18030 or euc-kr"
	enc, err := htmlindex.Get(label)
	if err != nil {
		return charset{}, &rows.OpenError{Text: fmt.Sprintf("the encoding %q is not known", label), Hint: hint, Err: err}
	}
	name, err := htmlindex.Name(enc)
	if err != nil || enc == encoding.Replacement || enc == charmap.XUserDefined {
		return charset{}, &rows.OpenError{Text: fmt.Sprintf("text in the encoding %q cannot be read", label), Hint: hint, Err: err}
	}
	c := charset{label: name, encoding: enc}
	switch name {
	case utf8Label, "big5", "euc-jp", "euc-kr":
	case "shift_jis":
		c.lone80 = "\u0080"
	case utf16LELabel:
		c.wide, c.replacement = true, "\xFD\xFF"
	case utf16BELabel:
		c.wide, c.replacement = true, "\xFF\xFD"
	case "gb18030", "gbk": // the standard decodes both alike
		c.encoding = simplifiedchinese.GB18030
		c.replacement, c.lax, c.lone80 = "\x84\x31\xA4\x37", laxGB18030, "€"
	case "iso-2022-jp":
		c.encoding, c.before = japanese.EUCJP, new(iso2022jp)
	default:
		c.single = true
	}
	return c, nil
}

// isUTF8 says that a text beyond ASCII was read in this encoding though what the file holds is UTF-8.
func (c *charset) isUTF8(text []byte) bool {
	if c.wide || c.before != nil { // bytes beyond ASCII are none of its text
		return false
	}
	return c.encodes([][]byte{text}) || c.lone80 != "" && c.encodes(bytes.Split(text, []byte(c.lone80)))
}

// encodes says that pieces of a text with a byte 0x80 between them make UTF-8.
func (c *charset) encodes(pieces [][]byte) bool {
	for i, piece := range pieces {
		var err error
		if pieces[i], err = c.encoding.NewEncoder().Bytes(piece); err != nil {
			return false
		}
	}
	written := bytes.Join(pieces, []byte{0x80})
	return utf8.Valid(written) && (c.single || hardlyByChance(written))
}

// hardlyByChance says of UTF-8 that no text of an encoding of two bytes a character looks so, beyond a word or two: characters of three
// bytes are out of step with those, but one letter alone may be a short name (豐田 in Shift_JIS), and many of two are not all of
// the few that allow it.
func hardlyByChance(text []byte) bool {
	const many = 10
	short, long := 0, 0
	for _, r := range string(text) {
		switch {
		case r < utf8.RuneSelf:
		case r <= '\u07FF':
			short++
		case unicode.In(r, unicode.P, unicode.S):
			return true
		default:
			long++
		}
	}
	return long > 1 || long+short >= many
}

// laxGB18030 finds four bytes that the decoder takes for a character although the second is no digit.
func laxGB18030(src []byte) bool {
	for i := 0; i+3 < len(src); i++ {
		if src[i] >= 0x81 && src[i+1] > '9' && src[i+1] < 0x40 && src[i+2] >= 0x81 && '0' <= src[i+3] && src[i+3] <= '9' {
			return true
		}
	}
	return false
}

// byteOrderMark is the encoding that the byte order mark at a text's beginning tells, or "".
func byteOrderMark(head []byte) (label string) {
	for _, m := range []struct{ bytes, label string }{
		{rows.ByteOrderMark, utf8Label},
		{"\xFF\xFE", utf16LELabel},
		{"\xFE\xFF", utf16BELabel},
	} {
		if bytes.HasPrefix(head, []byte(m.bytes)) {
			return m.label
		}
	}
	return ""
}

// refuseWide knows text in UTF-16 without mark that is not said to be such, by the NULs in one half of its bytes,
// and text that is said to be but is not.
func refuseWide(head []byte, named bool, c charset) error {
	if len(head) < 2 {
		return nil
	}
	var nuls [2]int // on even and on odd places
	for i, b := range head {
		if b == 0 {
			nuls[i%2]++
		}
	}
	var label string
	switch {
	case c.wide && nuls == [2]int{} && firstHigh(head) == len(head):
		return &rows.OpenError{Text: "is not text in " + c.label, Hint: "leave the encoding out, or name the one that the file was written in"}
	case c.wide:
		return nil
	case head[1] == 0 && nuls[0] == 0 && nuls[1] > 1:
		label = utf16LELabel
	case head[0] == 0 && nuls[1] == 0 && nuls[0] > 1:
		label = utf16BELabel
	default:
		return nil
	}
	text := "seems to be text in UTF-16 without a byte order mark"
	if named {
		text += ", not in " + c.label
	}
	return &rows.OpenError{Text: text, Hint: "set the encoding: --encoding " + label}
}

// encodingHint says what to do about text that is not what its label says, going by the part of it that is at hand.
// Nothing is ever read in an encoding that was guessed.
func encodingHint(label string, text []byte) string {
	const save = ", or save it as UTF-8"
	switch {
	case label != utf8Label:
		return "name the encoding that the file was written in with --encoding" + save
	case isWestern(text):
		return "set the encoding that the file was written in, which may be --encoding windows-1252" + save
	}
	return "set the encoding that the file was written in with --encoding, as shift_jis, gb18030, euc-kr, big5, windows-1251 (Cyrillic) or windows-1253 (Greek)" + save
}

// isWestern says that the bytes beyond ASCII have a meaning in windows-1252 and stand in words of letters of ASCII, or
// alone, as the accented letters of Latin texts do.
func isWestern(text []byte) bool {
	western, other := 0, 0
	notLetter := func(r rune) bool { return r < utf8.RuneSelf && (r|0x20 < 'a' || 'z' < r|0x20) }
	for _, word := range bytes.FieldsFunc(text, notLetter) {
		high, accented := 0, true
		for _, b := range word {
			if b < utf8.RuneSelf {
				continue
			}
			if charmap.Windows1252.DecodeByte(b) == utf8.RuneError {
				return false
			}
			high++
			accented = accented && b >= 0xC0
		}
		switch {
		case high == 0:
		case high == 1, accented && 2*high <= len(word):
			western++
		default:
			other++
		}
	}
	return western > other
}

// undecodable stands in the decoded text for bytes that have no meaning in the file's encoding. No UTF-8 text holds
// it, so that the rows it stands in are found in the same way as those of a damaged UTF-8 file.
const undecodable = 0xFF

const (
	maxSpots    = 4096 // places remembered
	widestRune  = 8    // bytes of text that a character can become
	longestCode = 4    // bytes that a character can have in any encoding
)

// decoder turns text of another encoding into UTF-8.
//
// The decoders of x/text put U+FFFD for what they cannot decode. Text in which it appears is decoded again, one
// character at a time, to tell those from a U+FFFD that the file holds, and to know where they stand.
type decoder struct {
	transform.NopResetter
	charset charset
	codec   transform.Transformer

	offset  int64          // place in the file of what is decoded next
	decoded int64          // place of it in the text
	spots   map[int64]spot // by places in the text
}

// spot says what stands in the file for a byte of the text that is undecodable, or NUL.
type spot struct {
	offset int64
	bytes  string
}

// Transform decodes what it can of src.
func (d *decoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	nDst, nSrc, err = d.codec.Transform(dst, src, atEOF)
	if d.doubtful(src, dst[:nDst]) {
		d.codec.Reset()
		nDst, nSrc, err = d.slowly(dst, src, atEOF)
	}
	d.offset += int64(nSrc)
	d.decoded += int64(nDst)
	return nDst, nSrc, err
}

// doubtful looks for what must be looked at one by one.
func (d *decoder) doubtful(src, text []byte) bool {
	return bytes.Contains(text, []byte("\uFFFD")) || bytes.IndexByte(text, 0) >= 0 ||
		d.charset.lax != nil && d.charset.lax(src)
}

func (d *decoder) slowly(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		if len(dst)-nDst < widestRune {
			return nDst, nSrc, transform.ErrShortDst
		}
		rest, one := src[nSrc:], dst[nDst:nDst+widestRune]
		n, size := d.one(one, rest, atEOF)
		if size == 0 {
			return nDst, nSrc, transform.ErrShortSrc
		}
		is := spot{d.offset + int64(nSrc), "\x00"}
		bad := d.bad(one[:n], rest[:size])
		if bad {
			if size > 1 && rest[1] < utf8.RuneSelf && !d.charset.wide {
				size = 1 // what follows is a letter, or the end of the line
			}
			is.bytes = string(rest[:size])
			n = copy(one, []byte{undecodable})
		}
		if d.charset.before != nil { // where in the file it stands is not known
			is = spot{-1, "\x00"}
		}
		if (bad || one[0] == 0) && len(d.spots) < maxSpots {
			d.spots[d.decoded+int64(nDst)] = is
		}
		nDst, nSrc = nDst+n, nSrc+size
	}
	return nDst, nSrc, nil
}

// one decodes the character that src begins with. Its size is 0 where it is cut.
func (d *decoder) one(dst, src []byte, atEOF bool) (n, size int) {
	for k := 1; k <= min(longestCode, len(src)) && size == 0; k++ {
		whole := atEOF && k == len(src)
		// Only characters that use all k bytes are longer than U+FFFD; what follows a U+FFFD must wait for its own
		// turn.
		n, size, _ = d.codec.Transform(dst[:len("\uFFFD")], src[:k], whole)
		if size == 0 {
			n, size, _ = d.codec.Transform(dst, src[:k], whole)
		}
	}
	return n, size
}

func (d *decoder) bad(text, src []byte) bool {
	if string(text) == "\uFFFD" {
		return string(src) != d.charset.replacement
	}
	return d.charset.lax != nil && d.charset.lax(src)
}

// forget drops the places that lie before one of the text.
func (d *decoder) forget(before int64) {
	maps.DeleteFunc(d.spots, func(at int64, _ spot) bool { return at < before })
}
