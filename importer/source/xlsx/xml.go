package xlsx

import (
	"bufio"
	"encoding/xml"
	"io"
	"strconv"
)

const (
	maxToken  = 12 << 20 // bytes of a tag, a text or an element that is passed over; cells hold 32,767 characters
	maxShared = 64 << 20 // bytes of all shared texts, and 4 for each: they are kept in memory; or of one cell
)

// elements reads the elements of a part with encoding/xml, within limits. A text is valid until the next one is read.
type elements struct {
	*xml.Decoder
	in *limited
}

// limited gives up behind so many bytes.
type limited struct {
	*bufio.Reader
	left int
}

// ReadByte gives the next byte.
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

// next goes on to where an element begins; false where the present one ends first.
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

// each has every element inside the present one read, or skipped.
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

// text appends the text of the present element, without that of elements inside it.
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

// richText appends the texts of an element that holds one, or many in several fonts (r). Readings of Japanese words
// (rPh) are no part of the text.
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

// sharedTexts are the texts that a workbook keeps once for all its cells.
type sharedTexts struct {
	text []byte   // all of them, one behind the other
	ends []uint32 // where each of them ends
}

// read reads the part with the texts.
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

// get gives the text of an index, counted from 0.
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
