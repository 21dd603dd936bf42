package source

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// content reads what is in a cell: its value, or the text that is written in it.
func (s *sheetReader) content(c *rawCell) error {
	for {
		e, err := s.element()
		if e == nil || err != nil {
			return err
		}
		switch e.Name.Local {
		case "v":
			c.value = true
			err = s.gather()
		case "is":
			c.value = true
			err = richText(s.xml, s.gather)
		case "f":
			c.formula = true
			err = s.xml.Skip()
		default:
			err = s.xml.Skip()
		}
		if err != nil {
			return err
		}
	}
}

// gather appends the text of the present element, up to the row's limit.
func (s *sheetReader) gather() error {
	return characters(s.xml, func(text []byte) {
		if len(s.text)+len(text) > s.max {
			s.long = true
			return
		}
		s.text = append(s.text, text...)
	})
}

// characters gives the text of the present element to add, piece by piece.
func characters(in *xml.Decoder, add func([]byte)) error {
	for {
		t, err := in.Token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.CharData:
			add(t)
		case xml.StartElement:
			if err := in.Skip(); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		}
	}
}

// richText calls gather for each text of an element that holds one, or many in
// several fonts. Readings of Japanese words (rPh) are no part of the text.
func richText(in *xml.Decoder, gather func() error) error {
	for depth := 0; ; {
		t, err := in.Token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch {
			case t.Name.Local == "t":
				err = gather()
			case t.Name.Local == "r" && depth == 0:
				depth++
			default:
				err = in.Skip()
			}
		case xml.EndElement:
			if depth == 0 {
				return nil
			}
			depth--
		}
		if err != nil {
			return err
		}
	}
}

// holdsText tells whether a cell of the present row has a value.
func (s *sheetReader) holdsText() bool { return s.long || len(s.text) > 0 }

// unescape decodes the characters that a workbook writes as _xHHHH_, one for
// each unit of UTF-16. What is no character stays as it is.
func unescape(text []byte) []byte {
	at := bytes.Index(text, []byte("_x"))
	if at < 0 {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:at]...)
	for text = text[at:]; len(text) > 0; {
		unit, ok := escaped(text)
		size := 7
		if low, two := escaped(text[min(size, len(text)):]); ok && utf16.IsSurrogate(unit) {
			unit = utf16.DecodeRune(unit, low)
			ok = two && unit != utf8.RuneError
			size = 14
		}
		if ok {
			out, text = utf8.AppendRune(out, unit), text[size:]
		} else {
			out, text = append(out, text[0]), text[1:]
		}
	}
	return out
}

// escaped reads an escape that text begins with.
func escaped(text []byte) (unit rune, ok bool) {
	if len(text) < 7 || text[0] != '_' || text[1] != 'x' || text[6] != '_' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
