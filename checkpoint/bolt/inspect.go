package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"

	"leadferry/checkpoint"
)

// bbolt trusts its file. A page number that leads past the end kills the
// process, one that leads in a circle overflows the stack, and its own check
// runs where neither can be caught. So the shape of the file is checked here
// first: of what opening reads when it is opened, and of the rest before anything
// else is asked. A page is its header (number, flags, elements, further pages), its
// elements, and their keys and values. See tree.go.
const (
	pageHeader  = 16
	element     = 16 // size of a branch or leaf element
	branchPage  = 0x01
	leafPage    = 0x02
	freePage    = 0x10
	bucketValue = 0x01 // flag of a leaf element
	metaMagic   = 0xED0CDAED
	metaSize    = 64
)

var native = binary.NativeEndian

// image is the file as the newest of its two meta pages describes it.
type image struct {
	f                       io.ReaderAt
	page                    int64 // bytes
	root, free, txid, pages uint64
}

// inspect reads the meta pages and refuses a file that is cut or foreign.
func inspect(f *os.File) (*image, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, damage("it is empty")
	}
	newest := newestMeta(f)
	switch {
	case newest == nil:
		return nil, damage("it does not begin like a checkpoint")
	case newest.pages > math.MaxInt64/uint64(newest.page) || newest.bytes() > info.Size():
		return nil, damage("it is shorter than its header says")
	}
	return newest, newest.checkFree()
}

// newestMeta is the newer of the meta pages that can be read, or nil.
func newestMeta(f io.ReaderAt) (newest *image) {
	for at := int64(0); at <= 1<<16; at = max(1<<10, 2*at) {
		m, ok := readMeta(f, at)
		if ok && (newest == nil || m.txid > newest.txid) {
			newest = m
		}
	}
	return newest
}

// readMeta reads the meta page at an offset; ok is false when none is there.
func readMeta(f io.ReaderAt, at int64) (m *image, ok bool) {
	var b [pageHeader + metaSize]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return nil, false
	}
	meta := b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(meta[:metaSize-8])
	if native.Uint32(meta) != metaMagic || native.Uint64(meta[metaSize-8:]) != sum.Sum64() {
		return nil, false
	}
	m = &image{
		f: f, page: int64(native.Uint32(meta[8:])), root: native.Uint64(meta[16:]),
		free: native.Uint64(meta[32:]), pages: native.Uint64(meta[40:]), txid: native.Uint64(meta[48:]),
	}
	return m, m.page >= 1<<10 && m.page <= 1<<16 && (at == 0 || at == m.page)
}

func damage(text string) error { return fmt.Errorf("%w: %s", checkpoint.ErrDamaged, text) }

func (m *image) bytes() int64 { return int64(m.pages) * m.page }

// read returns page id with the pages that continue it, up to most bytes, in buf where
// it fits.
func (m *image) read(id uint64, buf []byte, most int64) ([]byte, error) {
	if id < 2 || id >= m.pages {
		return nil, damage("a page number leads out of it")
	}
	b := room(buf, m.page)
	if _, err := m.f.ReadAt(b, int64(id)*m.page); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	more := uint64(native.Uint32(b[12:]))
	if native.Uint64(b) != id || more >= m.pages-id || int64(more) >= most/m.page {
		return nil, damage(fmt.Sprintf("page %d is none", id))
	}
	if more > 0 {
		b = room(b, int64(more+1)*m.page)
		if _, err := m.f.ReadAt(b, int64(id)*m.page); err != nil {
			return nil, fmt.Errorf("read page %d: %w", id, err)
		}
	}
	return b, nil
}

// room returns n bytes, those of buf where it is large enough.
func room(buf []byte, n int64) []byte {
	if int64(cap(buf)) < n {
		return make([]byte, n)
	}
	return buf[:n]
}

// checkFree makes sure that bbolt can read its list of free pages.
func (m *image) checkFree() error {
	_, _, err := m.freeList()
	return err
}

// freeList returns the numbers of the free pages, eight bytes each, and how many
// pages the list itself takes.
func (m *image) freeList() (ids []byte, size uint64, err error) {
	b, err := m.read(m.free, nil, m.bytes())
	if err != nil {
		return nil, 0, err
	}
	count, at := uint64(native.Uint16(b[10:])), uint64(pageHeader)
	if count == 0xFFFF {
		count, at = native.Uint64(b[pageHeader:]), at+8
	}
	if native.Uint16(b[8:]) != freePage || count > (uint64(len(b))-at)/8 {
		return nil, 0, damage("its list of free pages is none")
	}
	ids = b[at : at+8*count]
	for rest := ids; len(rest) > 0; rest = rest[8:] {
		if id := native.Uint64(rest); id < 2 || id >= m.pages {
			return nil, 0, damage("its list of free pages leads out of it")
		}
	}
	return ids, uint64(len(b)) / uint64(m.page), nil
}
