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
	"golang.org/x/text/encoding/simplifiedchinese"

	"leadferry/importer/source/rows"
)

// Labels of the WHATWG Encoding Standard that need to be known by name.
const (
	utf8Label    = "utf-8"
	utf16LELabel = "utf-16le"
	utf16BELabel = "utf-16be"
)

// Decode shows the text of a file, whose first bytes are looked at, in UTF-8. A byte
// order mark says what its encoding is, else the options do, else it is UTF-8.
func Decode(in *bufio.Reader, o rows.Options, found *rows.Found) (*Window, error) {
	c, err := findCharset(o.Encoding)
	if err != nil {
		return nil, err
	}
	head, _ := in.Peek(in.Size()) // an error comes again where the text is read
	label, size := mark(head)
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
	_, _ = in.Discard(size) // bytes that were seen
	if c.label == utf8Label {
		w := New(in, o.MaxRecord)
		w.offset = int64(size)
		return w, nil
	}
	d := newDecoder(in, c, int64(size))
	w := New(d, o.MaxRecord)
	w.Encoding, w.decoder, w.trusted = c.label, d, o.TrustEncoding
	return w, nil
}

// IsOther says that a label is one of an encoding other than UTF-8.
func IsOther(label string) bool {
	c, err := findCharset(label)
	return err == nil && c.label != utf8Label
}

// charset is an encoding and what its decoder of x/text does not say.
type charset struct {
	label       string
	encoding    encoding.Encoding
	replacement string                // how a true U+FFFD is written; "" where it cannot be
	wide        bool                  // its units have two bytes
	single      bool                  // each character has one byte
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
	case utf8Label, "big5", "euc-jp", "euc-kr", "shift_jis":
	case utf16LELabel:
		c.wide, c.replacement = true, "\xFD\xFF"
	case utf16BELabel:
		c.wide, c.replacement = true, "\xFF\xFD"
	case "gb18030", "gbk": // the standard decodes both alike
		c.encoding = simplifiedchinese.GB18030
		c.replacement, c.lax = "\x84\x31\xA4\x37", laxGB18030
	case "iso-2022-jp":
		// x/text does not check the second byte of a character and so could
		// take a line's end for half of one.
		return charset{}, &rows.OpenError{Text: "text in ISO-2022-JP cannot be read: its characters change their meaning within a line", Hint: "save the file as UTF-8 or Shift_JIS"}
	default:
		c.single = true
	}
	return c, nil
}

// laxGB18030 finds four bytes that the decoder takes for a character although
// the second is no digit.
func laxGB18030(src []byte) bool {
	for i := 0; i+3 < len(src); i++ {
		if src[i] >= 0x81 && src[i+1] > '9' && src[i+1] < 0x40 && src[i+2] >= 0x81 && '0' <= src[i+3] && src[i+3] <= '9' {
			return true
		}
	}
	return false
}

// mark finds the byte order mark that a text begins with, once or more often: some
// programs write it before one that is there.
func mark(head []byte) (label string, size int) {
	for _, m := range []struct{ bytes, label string }{
		{rows.ByteOrderMark, utf8Label},
		{"\xFF\xFE", utf16LELabel},
		{"\xFE\xFF", utf16BELabel},
	} {
		for bytes.HasPrefix(head[size:], []byte(m.bytes)) {
			label, size = m.label, size+len(m.bytes)
		}
		if size > 0 {
			break
		}
	}
	return label, size
}

// refuseWide knows text in UTF-16 without mark that is not said to be such, by
// the NULs in one half of its bytes, and text that is said to be but is not.
func refuseWide(head []byte, named bool, c charset) error {
	if len(head) < 2 {
		return nil
	}
	var nuls [2]int
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
	case head[0] != 0 && head[1] == 0 && nuls[0] == 0 && nuls[1] > 1:
		label = utf16LELabel
	case head[0] == 0 && head[1] != 0 && nuls[1] == 0 && nuls[0] > 1:
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

// encodingHint says what to do about text that is not what its label says, going by the
// part of it that is at hand. Nothing is ever read in an encoding that was guessed.
func encodingHint(label string, text []byte) string {
	const save = ", or save it as UTF-8"
	if label != utf8Label {
		return "name the encoding that the file was written in with --encoding" + save
	}
	if isWestern(text) {
		return "set the encoding that the file was written in, which may be --encoding windows-1252" + save
	}
	var likely []string
	for _, l := range []string{"shift_jis", "gb18030", "euc-kr", "big5"} {
		if fits(l, text) {
			likely = append(likely, l)
		}
	}
	others := "windows-1251 (Cyrillic) or windows-1253 (Greek)"
	if len(likely) > 0 {
		others = strings.Join(likely, ", ") + " or " + others
	}
	return "set the encoding that the file was written in with --encoding, as " + others + save
}

// isWestern says that the bytes beyond ASCII have a meaning in windows-1252
// and stand alone between others, as the accented letters of Latin texts do.
func isWestern(text []byte) bool {
	high := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= utf8.RuneSelf }
	alone, beside := 0, 0
	for i := range text {
		switch {
		case !high(i):
		case high(i-1) || high(i+1):
			beside++
		default:
			alone++
		}
	}
	return alone > beside && fits("windows-1252", text)
}

// fits says that a text can be decoded.
func fits(label string, text []byte) bool {
	c, err := findCharset(label)
	if err != nil {
		return false
	}
	text, err = io.ReadAll(newDecoder(bytes.NewReader(text), c, 0))
	return err == nil && utf8.Valid(text)
}
