package xlsx

import (
	"bufio"
	"encoding/xml"
	"errors"
	"io"
)

const (
	maxToken  = 12 << 20 // bytes of a tag or a text; the cells of Excel hold 32,767 characters
	maxNest   = 64       // levels of elements
	maxShared = 64 << 20 // bytes of all shared texts, and 4 for each: they are kept in memory
)

// tokens reads the elements of a part with encoding/xml, within limits. What it gives out is valid until the next token.
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

// next goes on to the next element that begins or ends, or to text if that is wanted; io.EOF where the part ends and
// nothing is open. It takes RawToken, since Token takes half as long again for name spaces, which nobody needs here.
func (t *tokens) next(wantsText bool) (token xml.Token, err error) {
	for {
		t.in.left = maxToken
		if token, err = t.xml.RawToken(); err != nil {
			if len(t.open) > 0 {
				err = unexpected(err)
			}
			return nil, err
		}
		switch of := token.(type) {
		case xml.StartElement:
			t.start = of
			if t.open = append(t.open, of.Name); len(t.open) > maxNest {
				return nil, errNest
			}
			return token, nil
		case xml.EndElement:
			last := len(t.open) - 1
			if last < 0 || t.open[last] != of.Name {
				return nil, errXML
			}
			t.open = t.open[:last]
			return token, nil
		case xml.CharData:
			if t.text = of; wantsText {
				return token, nil
			}
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

// richText gathers the texts of an element that holds one, or many in several fonts. Readings of Japanese words (rPh)
// are no part of the text.
func (t *tokens) richText(gather func([]byte) error) error {
	return t.children(func() error {
		switch t.name() {
		case "t":
			return t.characters(gather)
		case "r":
			return t.richText(gather)
		}
		return t.skip()
	})
}

// sharedTexts are the texts that a workbook keeps once for all its cells.
type sharedTexts struct {
	text []byte   // all of them, one behind the other
	ends []uint32 // where each of them ends
}

// sharedTexts reads the part with the shared texts; a workbook without texts may lack it.
func (b *book) sharedTexts() (*sharedTexts, error) {
	t := &sharedTexts{}
	if b.strings == "" {
		return t, nil
	}
	in, err := b.parts.open(b.strings)
	if err != nil {
		return t, err
	}
	defer in.Close()
	return t, t.read(newTokens(in))
}

func (t *sharedTexts) read(in *tokens) error {
	for {
		token, err := in.next(false)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if _, begins := token.(xml.StartElement); begins && in.name() == "si" {
			err = t.one(in)
		}
		if err != nil {
			return err
		}
	}
}

// one reads the next text.
func (t *sharedTexts) one(in *tokens) error {
	start := len(t.text)
	err := in.richText(func(piece []byte) error {
		if t.text = append(t.text, piece...); len(t.text)+4*len(t.ends) > maxShared {
			return errManyTexts
		}
		return nil
	})
	t.text = append(t.text[:start], unescape(t.text[start:])...)
	if t.ends = append(t.ends, uint32(len(t.text))); 4*len(t.ends) > maxShared {
		return errManyTexts
	}
	return err
}

// get gives the text of an index, counted from 0.
func (t *sharedTexts) get(i int) ([]byte, error) {
	if i < 0 || i >= len(t.ends) {
		return nil, errShared
	}
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.text[start:t.ends[i]], nil
}
