package pages

import (
	"io"
	"os"
)

// Scan hands out what stands in any page of a file of that many bytes, however damaged it is:
// also in pages that nothing leads to, or that are free. inUse says that the page is not on the
// list of free ones: nothing in it was deleted. Key and value may be what is left of something
// else, and live until found returns.
func Scan(f io.ReaderAt, size int64, found func(inUse bool, key, value []byte)) {
	page, unused := pageSize(f), unusedPages(f)
	for at := int64(0); at < size; at += page {
		inUse := unused != nil && !unused[uint64(at/page)]
		scanLeaf(wholePage(f, page, at, size), func(key, value []byte) { found(inUse, key, value) })
	}
}

// unusedPages are those that the newest meta page that can be read says are free, or nil
// where that is lost.
func unusedPages(f io.ReaderAt) map[uint64]bool {
	newest := newestMeta(f)
	if newest == nil {
		return nil
	}
	ids, _, err := newest.freeList()
	if err != nil {
		return nil
	}
	unused := make(map[uint64]bool, len(ids)/8)
	for ; len(ids) > 0; ids = ids[8:] {
		unused[native.Uint64(ids)] = true
	}
	return unused
}

// pageSize is what a meta page says, or else what this machine would use.
func pageSize(f io.ReaderAt) int64 {
	for at := int64(0); at <= 1<<16; at = max(1<<10, 2*at) {
		if m, ok := readMeta(f, at); ok {
			return m.PageSize
		}
	}
	return int64(os.Getpagesize())
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
