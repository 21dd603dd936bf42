// Package pages looks at the raw pages of a bbolt file: [Inspect] before bbolt maps it, which would die of a file that is
// cut, and [Scan] where it is damaged, page by page. What the records mean is not known here. Errors about the shape are
// [checkpoint.ErrDamaged].
package pages

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"

	"leadferry/checkpoint"
)

// A page is its header (number, flags, elements, further pages), its elements, and their keys
// and values.
const (
	pageHeader  = 16
	element     = 16 // size of a branch or leaf element
	leafPage    = 0x02
	freePage    = 0x10
	bucketValue = 0x01 // flag of a leaf element
	metaMagic   = 0xED0CDAED
	metaSize    = 64
)

var native = binary.NativeEndian

// Image is the file as the newest of its two meta pages describes it.
type Image struct {
	f        io.ReaderAt
	PageSize int64  // bytes
	Root     uint64 // the page of the tree of buckets
	Free     uint64 // the page of the list of free pages
	TxID     uint64 // the commit that wrote the meta page
	pages    uint64 // how many there are, free ones included
}

// Inspect reads the meta pages and refuses a file that is cut or foreign. The image reads from f.
func Inspect(f *os.File) (*Image, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, Damage("it is empty")
	}
	newest := newestMeta(f)
	switch {
	case newest == nil:
		return nil, Damage("it does not begin like a checkpoint")
	case newest.pages > math.MaxInt64/uint64(newest.PageSize) || newest.Bytes() > info.Size():
		return nil, Damage("it is shorter than its header says")
	}
	_, err = newest.freeList() // bbolt reads it
	return newest, err
}

// newestMeta is the newer of the meta pages that can be read, or nil.
func newestMeta(f io.ReaderAt) (newest *Image) {
	for at := int64(0); at <= 1<<16; at = max(1<<10, 2*at) {
		m, ok := readMeta(f, at)
		if ok && (newest == nil || m.TxID > newest.TxID) {
			newest = m
		}
	}
	return newest
}

// readMeta reads the meta page at an offset; ok is false when none is there.
func readMeta(f io.ReaderAt, at int64) (m *Image, ok bool) {
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
	m = &Image{
		f: f, PageSize: int64(native.Uint32(meta[8:])), Root: native.Uint64(meta[16:]),
		Free: native.Uint64(meta[32:]), pages: native.Uint64(meta[40:]), TxID: native.Uint64(meta[48:]),
	}
	return m, m.PageSize >= 1<<10 && m.PageSize <= 1<<16 && (at == 0 || at == m.PageSize)
}

// Damage is [checkpoint.ErrDamaged] with what is wrong with the file.
func Damage(text string) error { return fmt.Errorf("%w: %s", checkpoint.ErrDamaged, text) }

// Bytes is how long the file is at least.
func (m *Image) Bytes() int64 { return int64(m.pages) * m.PageSize }

// freeList returns the numbers of the free pages, eight bytes each.
func (m *Image) freeList() (ids []byte, err error) {
	at := int64(m.Free) * m.PageSize
	head := make([]byte, pageHeader+8)
	if m.Free < 2 || m.Free >= m.pages {
		return nil, errFreeList
	}
	if _, err := m.f.ReadAt(head, at); err != nil {
		return nil, fmt.Errorf("read page %d: %w", m.Free, err)
	}
	count, from := uint64(native.Uint16(head[10:])), int64(pageHeader)
	if count == 0xFFFF {
		count, from = native.Uint64(head[pageHeader:]), from+8
	}
	if native.Uint64(head) != m.Free || native.Uint16(head[8:]) != freePage || count > m.pages {
		return nil, errFreeList
	}
	ids = make([]byte, 8*count)
	if _, err := m.f.ReadAt(ids, at+from); err != nil {
		return nil, fmt.Errorf("read page %d: %w", m.Free, err)
	}
	for rest := ids; len(rest) > 0; rest = rest[8:] {
		if id := native.Uint64(rest); id < 2 || id >= m.pages || id == m.Free {
			return nil, errFreeList
		}
	}
	return ids, nil
}

var errFreeList = Damage("its list of free pages is none")

// Scan hands out what stands in the pages of a file of that many bytes, however damaged it is,
// also when nothing leads to them: free says whether of those on the list of free pages or of
// the others; where the list is lost, all are others. Key and value may be what is left of
// something else, and live until found returns.
func Scan(f io.ReaderAt, size int64, free bool, found func(key, value []byte)) {
	page, unused := int64(os.Getpagesize()), map[uint64]bool(nil)
	if newest := newestMeta(f); newest != nil {
		page, unused = newest.PageSize, newest.unused()
	}
	for at := int64(0); at < size; at += page {
		if unused[uint64(at/page)] == free {
			scanLeaf(wholePage(f, page, at, size), found)
		}
	}
}

// unused are the pages that are free, or nil where that is lost.
func (m *Image) unused() map[uint64]bool {
	ids, err := m.freeList()
	if err != nil {
		return nil
	}
	unused := make(map[uint64]bool, len(ids)/8)
	for ; len(ids) > 0; ids = ids[8:] {
		unused[native.Uint64(ids)] = true
	}
	return unused
}

// wholePage reads a leaf page, with those that continue it as far as there are any; nil is none.
func wholePage(f io.ReaderAt, page, at, size int64) []byte {
	b := make([]byte, page)
	n, _ := f.ReadAt(b, at)
	if n < pageHeader || native.Uint16(b[8:]) != leafPage {
		return nil
	}
	if more := int64(native.Uint32(b[12:])); more > 0 && more < size/page {
		b = make([]byte, (more+1)*page)
		n, _ = f.ReadAt(b, at)
	}
	return b[:n]
}

func scanLeaf(b []byte, found func(key, value []byte)) {
	if len(b) < pageHeader {
		return
	}
	for i := range int(native.Uint16(b[10:])) {
		if pageHeader+(i+1)*element > len(b) {
			return
		}
		kind, key, value, ok := leafElement(b, i)
		switch {
		case !ok:
		case kind == bucketValue && len(value) >= 2*pageHeader:
			scanLeaf(value[pageHeader:], found) // a small bucket stands in its value
		default:
			found(key, value)
		}
	}
}

func leafElement(b []byte, i int) (kind uint32, key, value []byte, ok bool) {
	at := pageHeader + i*element
	from := uint64(at) + uint64(native.Uint32(b[at+4:]))
	middle := from + uint64(native.Uint32(b[at+8:]))
	to := middle + uint64(native.Uint32(b[at+12:]))
	if to > uint64(len(b)) {
		return 0, nil, nil, false
	}
	return native.Uint32(b[at:]), b[from:middle:middle], b[middle:to:to], true
}
