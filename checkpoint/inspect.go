package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
)

// bbolt trusts its file. A page number that leads past the end kills the
// process, one that leads in a circle overflows the stack, and its own check
// runs where neither can be caught. So the shape of the file is checked here
// first, through plain reads: a page is its header (number, flags, elements,
// further pages), its elements, and their keys and values.
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
	seen                    []bool
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
	var newest *image
	for at := int64(0); at < info.Size() && at <= 1<<16; at = max(1<<10, 2*at) {
		m, ok := readMeta(f, at)
		if ok && (newest == nil || m.txid > newest.txid) {
			newest = m
		}
	}
	switch {
	case newest == nil:
		return nil, damage("it does not begin like a checkpoint")
	case newest.pages > math.MaxInt64/uint64(newest.page) || newest.bytes() > info.Size():
		return nil, damage("it is shorter than its header says")
	}
	return newest, newest.checkFree()
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

func damage(text string) error { return fmt.Errorf("%w: %s", ErrDamaged, text) }

func (m *image) bytes() int64 { return int64(m.pages) * m.page }

// read returns page id with the pages that continue it.
func (m *image) read(id uint64) ([]byte, error) {
	if id < 2 || id >= m.pages {
		return nil, damage("a page number leads out of it")
	}
	b := make([]byte, m.page)
	if _, err := m.f.ReadAt(b, int64(id)*m.page); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	more := uint64(native.Uint32(b[12:]))
	if native.Uint64(b) != id || more >= m.pages-id {
		return nil, damage(fmt.Sprintf("page %d is none", id))
	}
	if more > 0 {
		b = make([]byte, int64(more+1)*m.page)
		if _, err := m.f.ReadAt(b, int64(id)*m.page); err != nil {
			return nil, fmt.Errorf("read page %d: %w", id, err)
		}
	}
	return b, nil
}

// checkFree makes sure that bbolt can read its list of free pages.
func (m *image) checkFree() error {
	b, err := m.read(m.free)
	if err != nil {
		return err
	}
	count, at := uint64(native.Uint16(b[10:])), uint64(pageHeader)
	if count == 0xFFFF {
		count, at = native.Uint64(b[pageHeader:]), at+8
	}
	if native.Uint16(b[8:]) != freePage || count > (uint64(len(b))-at)/8 {
		return damage("its list of free pages is none")
	}
	for ids := b[at : at+8*count]; len(ids) > 0; ids = ids[8:] {
		if id := native.Uint64(ids); id < 2 || id >= m.pages {
			return damage("its list of free pages leads out of it")
		}
	}
	return nil
}

// walk visits every page in use once. Afterwards bbolt can go everywhere.
func (m *image) walk() error {
	m.seen = make([]bool, m.pages)
	type visit struct {
		id   uint64
		root bool // of the tree of buckets
	}
	for todo := []visit{{m.root, true}}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		b, err := m.read(v.id)
		if err != nil {
			return err
		}
		for id := v.id; id <= v.id+uint64(native.Uint32(b[12:])); id++ {
			if m.seen[id] {
				return damage(fmt.Sprintf("page %d is used twice", id))
			}
			m.seen[id] = true
		}
		err = elements(b, v.root, func(child uint64, bucket bool) {
			todo = append(todo, visit{child, v.root && !bucket})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// elements checks the elements of a page and calls follow with the pages that
// they lead to. Only the topmost tree holds buckets; small ones stand in a value.
func elements(b []byte, root bool, follow func(child uint64, bucket bool)) error {
	flags, count := native.Uint16(b[8:]), int(native.Uint16(b[10:]))
	if flags != branchPage && flags != leafPage || pageHeader+count*element > len(b) || flags == branchPage && count == 0 {
		return damage("a page has no sense")
	}
	for at := pageHeader; count > 0; at, count = at+element, count-1 {
		e := b[at : at+element]
		if flags == branchPage {
			if at+int(native.Uint32(e))+int(native.Uint32(e[4:])) > len(b) {
				return damage("a key leads out of its page")
			}
			follow(native.Uint64(e[8:]), false)
			continue
		}
		from := at + int(native.Uint32(e[4:])) + int(native.Uint32(e[8:]))
		to := from + int(native.Uint32(e[12:]))
		if to > len(b) {
			return damage("a record leads out of its page")
		}
		if kind := native.Uint32(e); kind == 0 {
			continue
		} else if kind != bucketValue || !root || to-from < pageHeader {
			return damage("a bucket is none")
		}
		if child := native.Uint64(b[from:]); child != 0 {
			follow(child, true)
		} else if inner := b[from+pageHeader : to]; len(inner) < pageHeader || native.Uint16(inner[8:]) != leafPage {
			return damage("a bucket is none")
		} else if err := elements(inner, false, nil); err != nil {
			return err
		}
	}
	return nil
}
