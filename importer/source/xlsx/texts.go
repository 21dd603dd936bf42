package xlsx

import (
	"encoding/binary"
	"encoding/xml"
	"errors"
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
)

var errShared = broken("a cell points to a shared text that is not there")

// sharedTexts are the texts that a workbook keeps once for all its cells. They lie in blocks, in memory while they
// are few and in a scratch file beyond, so that memory does not grow with the workbook.
type sharedTexts struct {
	store  Scratch
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
	return t, t.read(newXMLReader(in))
}

func (t *sharedTexts) read(tokens *xmlReader) error {
	var text []byte
	gather := func(piece []byte) error {
		if text = append(text, piece...); len(text) > maxToken {
			return errHugeToken
		}
		return nil
	}
	for {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			return t.close()
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "si" {
			text = text[:0]
			if err = tokens.richText(gather); err == nil {
				err = t.add(unescape(string(text)))
			}
		}
		if err != nil {
			return unexpected(err)
		}
	}
}

// add appends a text.
func (t *sharedTexts) add(text string) error {
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

// spill moves what is held into a file.
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
