package xlsx

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
)

const (
	blockTexts = 64       // texts of one block, at most
	blockBytes = 16 << 10 // a block ends with the text that makes it so long
	heldBlocks = 64       // blocks in memory at a time, those longer than a few apart
	longBlock  = 4 * blockBytes

	longText = 4 << 10 // bytes from which on a text is made once for all its cells
	maxKept  = 8 << 20 // bytes of such texts
)

var errRepeated = &damage{fmt.Sprintf("the cells of the sheet hold more than %d times as much text as is written in it, by texts that they share", maxRatio)}

var errShared = broken("a cell points to a shared text that is not there")

// sharedTexts are the texts that a workbook keeps once for all its cells. They lie in blocks, in memory while they
// are few and in a scratch file beyond, so that memory does not grow with the workbook.
type sharedTexts struct {
	store  Scratch
	blocks []textBlock
	count  int
	open   []byte // the block that is being filled
	held   [heldBlocks]heldBlock

	max       int // bytes of a text that a row may hold; of those with more only that is kept
	kept      map[int]cell
	keptBytes int
	left      int64 // bytes of such texts that cells may have together
}

// textBlock is a run of texts, each behind twice its length and 1; a 0 stands for one that has too many bytes.
type textBlock struct {
	first int   // index of its first text
	start int64 // in the store
}

type heldBlock struct {
	number int // from 1; 0: none
	data   []byte
}

func newSharedTexts(limit int) *sharedTexts {
	return &sharedTexts{max: limit, left: MaxUnpacked, kept: map[int]cell{}}
}

// sharedTexts reads the part with the shared texts; a workbook without texts may lack it.
func (b *book) sharedTexts(limit int) (*sharedTexts, error) {
	t := newSharedTexts(limit)
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
	var text []byte
	gather := func(piece []byte) error {
		if text = append(text, piece...); len(text) > maxToken {
			return errHugeToken
		}
		return nil
	}
	for {
		token, err := in.next(false)
		if errors.Is(err, io.EOF) {
			return t.close()
		}
		if _, begins := token.(xml.StartElement); begins && in.name() == "si" {
			text = text[:0]
			if err = richText(in, gather); err == nil {
				err = t.add(unescape(text))
			}
		}
		if err != nil {
			return unexpected(err)
		}
	}
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

func (t *sharedTexts) add(text []byte) error {
	if len(t.open) == 0 {
		t.blocks = append(t.blocks, textBlock{t.count, t.store.size})
	}
	size := uint64(len(text))<<1 | 1
	if len(text) > t.max {
		size, text = 0, nil
	}
	t.open = binary.AppendUvarint(t.open, size)
	t.open = append(t.open, text...)
	t.count++
	if t.count-t.blocks[len(t.blocks)-1].first < blockTexts && len(t.open) < blockBytes {
		return nil
	}
	return t.close()
}

func (t *sharedTexts) close() error {
	_, err := t.store.Write(t.open)
	t.open = t.open[:0]
	return err
}

// get gives the cell with the text of an index, counted from 0.
func (t *sharedTexts) get(i int) (cell, error) {
	if i < 0 || i >= t.count {
		return cell{}, errShared
	}
	if c, ok := t.kept[i]; ok {
		if t.left -= int64(len(c.kept)); t.left < 0 {
			return cell{}, errRepeated
		}
		return c, nil
	}
	number := sort.Search(len(t.blocks), func(n int) bool { return t.blocks[n].first > i })
	data, err := t.block(number)
	if err != nil {
		return cell{}, err
	}
	for skip := i - t.blocks[number-1].first; ; skip-- {
		head, n := binary.Uvarint(data)
		size := int(head >> 1)
		switch data = data[n:]; {
		case skip > 0:
			data = data[size:]
		case head == 0:
			return cell{tooLong: true}, nil
		case size < longText:
			return textCell(data[:size]), nil
		default:
			return t.keep(i, textCell(data[:size])), nil
		}
	}
}

// keep makes of a long text one for all its cells: a workbook of some kilobytes may have thousands of them.
func (t *sharedTexts) keep(i int, c cell) cell {
	if t.keptBytes += len(c.text); t.keptBytes > maxKept {
		clear(t.kept)
		t.keptBytes = len(c.text)
	}
	if len(bytes.TrimSpace(c.text)) > 0 {
		c.kept = string(c.text)
	}
	c.text = nil
	t.kept[i] = c
	return c
}

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
		held = &heldBlock{}
	}
	held.number, held.data = 0, slices.Grow(held.data[:0], size)[:size]
	if n, err := t.store.ReadAt(held.data, start); n < size {
		return nil, unexpected(err)
	}
	held.number = number
	return held.data, nil
}

// maxHeld is how much a scratch keeps in memory.
const maxHeld = 8 << 20

// Scratch keeps bytes that are written once and then read anywhere: in memory while they are few, beyond that in a
// temporary file (of mode 0600, in the folder that TMPDIR names). They are people's data: where the system allows
// it the file loses its name at once, so that nothing is left even after a kill.
type Scratch struct {
	size int64
	held []byte
	file *os.File
	name string // of the file while it has one
}

// Write appends bytes.
func (s *Scratch) Write(p []byte) (int, error) {
	if s.file == nil && len(s.held)+len(p) > maxHeld {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	n := len(p)
	if s.file == nil {
		s.held = append(s.held, p...)
	} else {
		var err error
		if n, err = s.file.Write(p); err != nil {
			return n, err
		}
	}
	s.size += int64(n)
	return n, nil
}

func (s *Scratch) spill() error {
	file, err := os.CreateTemp("", "leadferry-")
	if err != nil {
		return err
	}
	s.file = file
	if os.Remove(file.Name()) != nil {
		s.name = file.Name()
	}
	_, err = file.Write(s.held)
	s.held = nil
	return err
}

// ReadAt reads what was written, as [io.ReaderAt] has it.
func (s *Scratch) ReadAt(p []byte, offset int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, offset)
	}
	if offset < 0 || offset >= int64(len(s.held)) {
		return 0, io.EOF
	}
	n := copy(p, s.held[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Close removes the bytes.
func (s *Scratch) Close() error {
	s.held = nil
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.name != "" {
		err = os.Remove(s.name)
	}
	s.file, s.name = nil, ""
	return err
}
