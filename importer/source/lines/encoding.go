package lines

import (
	"bufio"
	"bytes"
	"fmt"
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
	w := New(transform.NewReader(in, c.decoder()), o.MaxRecord)
	w.charset = c
	return w, nil
}

// charset is an encoding.
type charset struct {
	label    string
	encoding encoding.Encoding
}

func (c *charset) wide() bool { return c.label == utf16LELabel || c.label == utf16BELabel }

// decoder decodes the whole stream, so that lines are those of the text, whatever the bytes of its characters are.
func (c *charset) decoder() transform.Transformer {
	if c.encoding == japanese.ISO2022JP {
		return transform.Chain(new(iso2022jp), japanese.EUCJP.NewDecoder())
	}
	return c.encoding.NewDecoder()
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
	if enc == simplifiedchinese.GBK { // the standard decodes both alike
		enc = simplifiedchinese.GB18030
	}
	return charset{name, enc}, nil
}

// isUTF8 says that a text beyond ASCII was read in an encoding of one byte a character though what the file holds is UTF-8.
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
	case c.wide() && nuls == [2]int{} && firstHigh(head) == len(head):
		return &rows.OpenError{Text: "is not text in " + c.label, Hint: "leave the encoding out, or name the one that the file was written in"}
	case c.wide():
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

// encodingHint says what to do about text that is not what its label says. Nothing is ever read in an encoding that was guessed.
func encodingHint(label string) string {
	if label != utf8Label {
		return "name the encoding that the file was written in with --encoding, or save it as UTF-8"
	}
	return "set the encoding that the file was written in, such as --encoding windows-1252 (Western Europe), windows-1251 (Cyrillic), windows-1253 (Greek), shift_jis, gb18030, euc-kr or big5, or save it as UTF-8"
}
