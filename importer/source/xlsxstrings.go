package source

import (
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"sort"
)

const (
	blockTexts = 64       // texts of one block, at most
	blockBytes = 16 << 10 // a block ends with the text that makes it so long
	heldBlocks = 64       // blocks in memory at a time, those longer than a few apart
	longBlock  = 4 * blockBytes
)

var errShared = &damage{"the workbook is damaged: a cell points to a shared text that is not there"}

// sharedTexts are the texts that a workbook keeps once for all its cells. They
// lie in blocks, in memory while they are few and in a scratch file beyond, so
// that memory does not grow with the workbook.
type sharedTexts struct {
	store  scratch
	blocks []textBlock
	count  int
	open   []byte // the block that is being filled
	held   [heldBlocks]heldBlock
}

// textBlock is a run of texts, each behind its length.
type textBlock struct {
	first int   // index of its first text
	start int64 // in the store
}

type heldBlock struct {
	number int // from 1; 0: none
	data   []byte
}

// readShared reads the part with the shared texts of a workbook.
func readShared(in io.Reader) (*sharedTexts, error) {
	t, tokens := &sharedTexts{}, newXMLDecoder(in)
	var text []byte
	add := func(piece []byte) { text = append(text, piece...) }
	gather := func() error {
		if len(text) > maxToken {
			return errHugeToken
		}
		return characters(tokens, add)
	}
	for {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			return t, t.close()
		}
		if err == nil {
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "si" {
				text = text[:0]
				if err = richText(tokens, gather); err == nil {
					err = t.add(unescape(text))
				}
			}
		}
		if err != nil {
			return t, unexpected(err)
		}
	}
}

// add appends a text.
func (t *sharedTexts) add(text []byte) error {
	if len(t.open) == 0 {
		t.blocks = append(t.blocks, textBlock{t.count, t.store.size})
	}
	t.open = binary.AppendUvarint(t.open, uint64(len(text)))
	t.open = append(t.open, text...)
	t.count++
	if t.count-t.blocks[len(t.blocks)-1].first < blockTexts && len(t.open) < blockBytes {
		return nil
	}
	return t.close()
}

// close ends the open block.
func (t *sharedTexts) close() error {
	if len(t.open) == 0 {
		return nil
	}
	_, err := t.store.Write(t.open)
	t.open = t.open[:0]
	return err
}

// get gives the text of an index, counted from 0.
func (t *sharedTexts) get(i int) (string, error) {
	if i < 0 || i >= t.count {
		return "", errShared
	}
	number := sort.Search(len(t.blocks), func(n int) bool { return t.blocks[n].first > i })
	data, err := t.block(number)
	if err != nil {
		return "", err
	}
	for skip := i - t.blocks[number-1].first; ; skip-- {
		size, n := binary.Uvarint(data)
		if data = data[n:]; skip == 0 {
			return string(data[:size]), nil
		}
		data = data[size:]
	}
}

// block gives a block by its number, counted from 1.
func (t *sharedTexts) block(number int) ([]byte, error) {
	held := &t.held[number%heldBlocks]
	if held.number == number {
		return held.data, nil
	}
	start, end := t.blocks[number-1].start, t.store.size
	if number < len(t.blocks) {
		end = t.blocks[number].start
	}
	size := int(end - start)
	if size > longBlock {
		data := make([]byte, size)
		return data, t.store.readFull(data, start)
	}
	held.number, held.data = 0, slices.Grow(held.data[:0], size)[:size]
	if err := t.store.readFull(held.data, start); err != nil {
		return nil, err
	}
	held.number = number
	return held.data, nil
}
