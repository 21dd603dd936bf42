package xlsx

import (
	"bufio"
	"encoding/xml"
	"io"
	"strconv"
)

const (
	maxToken  = 12 << 20 // bytes of a tag, a text or a skipped element; a cell has at most 32,767 characters
	maxShared = 64 << 20 // bytes kept in memory: all shared texts and 4 for each, or the text of one cell
)

// elements reads the XML elements of a part, within limits.
type elements struct {
	*xml.Decoder
	in *limited
}

// limited fails after left more bytes.
type limited struct {
	*bufio.Reader
	left int
}

// ReadByte reads the next byte.
func (l *limited) ReadByte() (byte, error) {
	if l.left--; l.left < 0 {
		return 0, tooLarge()
	}
	return l.Reader.ReadByte()
}

func newElements(in io.Reader) *elements {
	l := &limited{Reader: bufio.NewReaderSize(in, 64<<10)}
	return &elements{xml.NewDecoder(l), l}
}

// next goes to the beginning of the next element. begins is false if the current element ends first.
func (e *elements) next() (start xml.StartElement, begins bool, err error) {
	for {
		e.in.left = maxToken
		token, err := e.Token()
		switch of := token.(type) {
		case xml.StartElement:
			return of, true, nil
		case xml.EndElement:
			return start, false, nil
		}
		if err != nil {
			return start, false, err
		}
	}
}

// each calls read for every element inside the current one. read must read this element to its end, or skip it.
func (e *elements) each(read func(xml.StartElement) error) error {
	for {
		start, begins, err := e.next()
		if begins {
			err = read(start)
		}
		if !begins || err != nil {
			return err
		}
	}
}

// text appends the text of the current element, without the text of elements inside it.
func (e *elements) text(to []byte) ([]byte, error) {
	for {
		e.in.left = maxToken
		token, err := e.Token()
		switch of := token.(type) {
		case xml.CharData:
			if to = append(to, of...); len(to) > maxShared {
				err = tooLarge()
			}
		case xml.StartElement:
			err = e.Skip()
		case xml.EndElement:
			return to, nil
		}
		if err != nil {
			return to, err
		}
	}
}

// richText appends the text of an element that holds one text, or several in different fonts (r). The phonetic readings
// of Japanese words (rPh) are not part of the text.
func (e *elements) richText(to []byte) ([]byte, error) {
	for inside := 0; inside >= 0; {
		start, begins, err := e.next()
		switch {
		case err != nil:
		case !begins:
			inside--
		case start.Name.Local == "r":
			inside++
		case start.Name.Local == "t":
			to, err = e.text(to)
		default:
			err = e.Skip()
		}
		if err != nil {
			return to, err
		}
	}
	return to, nil
}

// sharedTexts are the texts that a workbook stores once for all cells that hold them.
type sharedTexts struct {
	text []byte   // all texts, one after another
	ends []uint32 // where each text ends
}

// read reads the part with the shared texts.
func (t *sharedTexts) read(part io.Reader) error {
	in := newElements(part)
	if _, _, err := in.next(); err == io.EOF { // some writers leave the part empty
		return nil
	} else if err != nil {
		return err
	}
	return in.each(func(start xml.StartElement) (err error) {
		if start.Name.Local != "si" {
			return in.Skip()
		}
		from := len(t.text)
		t.text, err = in.richText(t.text)
		t.text = append(t.text[:from], unescape(t.text[from:])...)
		if t.ends = append(t.ends, uint32(len(t.text))); len(t.text)+4*len(t.ends) > maxShared {
			return tooLarge()
		}
		return err
	})
}

// get returns the text with an index, counted from 0.
func (t *sharedTexts) get(index string) ([]byte, error) {
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(t.ends) {
		return nil, broken("a cell points to a shared text that is not there")
	}
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.text[start:t.ends[i]], nil
}
