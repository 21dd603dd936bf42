package xlsx

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
)

const (
	maxShared = 64 << 20 // bytes of all shared texts, and 4 for each: they are kept in memory
	longText  = 4 << 10  // bytes from which on it counts how often cells share a text
)

var (
	errManyTexts = &damage{fmt.Sprintf("the texts that the workbook's cells share have more than %d bytes together", maxShared)}
	errRepeated  = &damage{fmt.Sprintf("the cells of the sheet hold more than %d times as much text as is written in it, by texts that they share", maxRatio)}
	errShared    = broken("a cell points to a shared text that is not there")
)

// sharedTexts are the texts that a workbook keeps once for all its cells.
type sharedTexts struct {
	text []byte   // all of them, one behind the other
	ends []uint32 // where each of them ends
	max  int      // bytes of a text that a row may hold
	left int64    // bytes of long texts that cells may have together
}

// sharedTexts reads the part with the shared texts; a workbook without texts may lack it.
func (b *book) sharedTexts(limit int) (*sharedTexts, error) {
	t := &sharedTexts{max: limit, left: MaxUnpacked}
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
			var text []byte
			text, err = t.one(in)
			t.text = append(t.text, text...)
			t.ends = append(t.ends, uint32(len(t.text)))
			if err == nil && len(t.text)+4*len(t.ends) > maxShared {
				err = errManyTexts
			}
		}
		if err != nil {
			return unexpected(err)
		}
	}
}

// one reads the next text.
func (t *sharedTexts) one(in *tokens) (text []byte, err error) {
	err = richText(in, func(piece []byte) error {
		if text = append(text, piece...); len(text) > maxShared {
			return errManyTexts
		}
		return nil
	})
	return unescape(text), err
}

// richText gathers the texts of an element that holds one, or many in several fonts. Readings of Japanese words (rPh)
// are no part of the text.
func richText(in *tokens, gather func([]byte) error) error {
	return in.children(func() error {
		switch in.name() {
		case "t":
			return in.characters(gather)
		case "r":
			return richText(in, gather)
		}
		return in.skip()
	})
}

// get gives the cell with the text of an index, counted from 0.
func (t *sharedTexts) get(i int) (cell, error) {
	if i < 0 || i >= len(t.ends) {
		return cell{}, errShared
	}
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	text := t.text[start:t.ends[i]]
	if len(text) > t.max {
		return cell{tooLong: true}, nil
	}
	if len(text) >= longText {
		if t.left -= int64(len(text)); t.left < 0 {
			return cell{}, errRepeated
		}
	}
	return textCell(text), nil
}
