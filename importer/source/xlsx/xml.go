package xlsx

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
)

const (
	maxToken = 12 << 20 // bytes of a tag or a text; the cells of Excel hold 32,767 characters
	maxNest  = 64       // levels of elements
)

var (
	errHugeToken = &damage{fmt.Sprintf("the workbook holds a text of more than %d bytes; Excel allows 32767 characters a cell", maxToken)}
	errDoctype   = &damage{"a part of the workbook declares a document type, as no workbook does"}
	errNest      = broken("elements are nested too deep")
)

// tokens reads the elements of a part with encoding/xml, within limits. What it gives out stands until the next token is read.
type tokens struct {
	xml   *xml.Decoder
	in    *limited
	open  []xml.Name       // of the elements that are not closed
	start xml.StartElement // the element that has begun
	text  xml.CharData     // the text that was read
}

// limited gives up behind so many bytes of one token.
type limited struct {
	*bufio.Reader
	left int
}

// ReadByte gives the next byte.
func (l *limited) ReadByte() (byte, error) {
	if l.left--; l.left < 0 {
		return 0, errHugeToken
	}
	return l.Reader.ReadByte()
}

func newTokens(in io.Reader) *tokens {
	l := &limited{Reader: bufio.NewReaderSize(in, 64<<10)}
	return &tokens{xml: xml.NewDecoder(l), in: l}
}

// Token gives the next token, for [xml.NewTokenDecoder]; io.EOF where the part ends and nothing is open. It is RawToken, since
// Token takes half as long again for name spaces, which no reader of workbooks needs.
func (t *tokens) Token() (xml.Token, error) {
	t.in.left = maxToken
	token, err := t.xml.RawToken()
	last := len(t.open) - 1
	switch of := token.(type) {
	case xml.StartElement:
		if t.open = append(t.open, of.Name); len(t.open) > maxNest {
			return nil, errNest
		}
	case xml.EndElement:
		if last < 0 || t.open[last] != of.Name {
			return nil, errXML
		}
		t.open = t.open[:last]
	case xml.Directive:
		return nil, errDoctype
	}
	if last >= 0 && errors.Is(err, io.EOF) {
		err = errXML
	}
	return token, err
}

// next goes on to the next element that begins or ends, or to text if that is wanted.
func (t *tokens) next(wantsText bool) (token xml.Token, err error) {
	for {
		switch token, err = t.Token(); of := token.(type) {
		case xml.StartElement:
			t.start = of
			return token, err
		case xml.CharData:
			if t.text = of; wantsText {
				return token, err
			}
		case xml.EndElement:
			return token, err
		}
		if err != nil {
			return nil, err
		}
	}
}

// name is the name of the element that has begun, without a prefix for its name space.
func (t *tokens) name() string { return t.start.Name.Local }

// attribute is the value of one of its attributes, or "".
func (t *tokens) attribute(name string) string {
	for _, a := range t.start.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// nextChild goes on to the next element inside the present one, if there is one more.
func (t *tokens) nextChild() (more bool, err error) {
	token, err := t.next(false)
	_, more = token.(xml.StartElement)
	return more, err
}

// children calls visit for each element inside the present one. It reads or skips it.
func (t *tokens) children(visit func() error) error {
	for {
		more, err := t.nextChild()
		if more && err == nil {
			err = visit()
		}
		if !more || err != nil {
			return err
		}
	}
}

// skip passes over the rest of the present element.
func (t *tokens) skip() error { return t.children(t.skip) }

// characters gives the text of the present element to gather, piece by piece, without that of elements inside it.
func (t *tokens) characters(gather func([]byte) error) error {
	for {
		token, err := t.next(true)
		switch token.(type) {
		case xml.CharData:
			err = gather(t.text)
		case xml.StartElement:
			err = t.skip()
		case xml.EndElement:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// decode reads a part that describes the workbook into v.
func (a archive) decode(name string, v any) error {
	in, err := a.open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if a[name].UncompressedSize64 > maxSmallPart {
		return errSmallPart
	}
	if err := xml.NewTokenDecoder(newTokens(in)).Decode(v); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // the checksum comes at the end
	return err
}
