package pages

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// walker visits every page in use once, in the order of the trees, and checks that
// each can be found: pages are used once and are not free, keys ascend, and those
// below a branch lie between its keys. A key in the wrong place is as good as
// gone: a look-up would miss it and its lead would be made twice.
type walker struct {
	img    *Image
	record Recorder          // nil: the shape alone
	use    []byte            // by page: what it is used for
	trees  map[string][]byte // bucket → its value in the tree of buckets
	buffer [][]byte          // a page a level
}

// Recorder is given the records of buckets. Key and value live until it returns.
type Recorder func(bucket string, key, value []byte) error

// subtree is a page of a bucket and those below it. Its first key is low, for bbolt
// finds its place in the page above by that; all lie below high. nil is no bound.
type subtree struct {
	bucket    string
	page      uint64
	level     int
	low, high []byte
}

const (
	unused = iota
	inUse
	isFree
)

// mostOfPage is far more bytes than the records of a page can have: a damaged length
// shall not fill the memory.
const mostOfPage = 64 << 20

// deepest is far beyond what a tree of pages of this size can reach.
const deepest = 32

func newWalker(m *Image) *walker {
	return &walker{img: m, use: make([]byte, m.pages), trees: make(map[string][]byte)}
}

// Peek checks the shape of the tree of buckets and of the named ones alone.
func (m *Image) Peek(names ...[]byte) error {
	w := newWalker(m)
	err := w.tree(subtree{page: m.Root})
	for i := 0; i < len(names) && err == nil; i++ {
		err = w.bucket(string(names[i]), w.trees[string(names[i])])
	}
	return err
}

// Walk checks the shape of the file and hands out every record: those of the buckets first
// before the others. Afterwards bbolt can go everywhere.
func (m *Image) Walk(record Recorder, first ...string) error {
	w := newWalker(m)
	if err := m.metaPages(); err != nil {
		return err
	}
	if err := w.noteFreePages(); err != nil {
		return err
	}
	if err := w.tree(subtree{page: m.Root}); err != nil {
		return err
	}
	w.record = record
	for _, name := range slices.Concat(first, slices.Sorted(maps.Keys(w.trees))) {
		if err := w.bucket(name, w.trees[name]); err != nil {
			return err
		}
		delete(w.trees, name)
	}
	for id := uint64(2); id < m.pages; id++ {
		if w.use[id] == unused {
			return Damage(fmt.Sprintf("page %d is neither used nor free", id))
		}
	}
	return nil
}

// metaPages checks the heads of the meta pages, past which bbolt reads. One that was not written to its end counts for nothing.
func (m *Image) metaPages() error {
	for id := range int64(2) {
		head := make([]byte, pageHeader)
		if _, err := m.f.ReadAt(head, id*m.PageSize); err != nil {
			return fmt.Errorf("read page %d: %w", id, err)
		}
		if _, whole := readMeta(m.f, id*m.PageSize); whole && (native.Uint64(head) != uint64(id) || native.Uint16(head[8:]) != metaPage) {
			return Damage(fmt.Sprintf("page %d is none", id))
		}
	}
	return nil
}

// noteFreePages notes which pages are free, and the list of them, by what the file says itself.
func (w *walker) noteFreePages() error {
	ids, size, err := w.img.freeList()
	if err != nil {
		return err
	}
	for id := w.img.Free; id < w.img.Free+size; id++ {
		w.use[id] = inUse
	}
	for ; len(ids) > 0; ids = ids[8:] {
		id := native.Uint64(ids)
		if w.use[id] != unused {
			return Damage(fmt.Sprintf("page %d is free twice, or free and in use", id))
		}
		w.use[id] = isFree
	}
	return nil
}

// bucket visits a bucket by its value in the tree of buckets: the number of its
// first page, or a page inside the value where it is small.
func (w *walker) bucket(name string, value []byte) error {
	if value == nil {
		return nil
	}
	if root := native.Uint64(value); root != 0 {
		return w.tree(subtree{bucket: name, page: root})
	}
	// bbolt would give the page that a small bucket names free, once it outgrows its value.
	inner := value[pageHeader:]
	if len(inner) < pageHeader || native.Uint16(inner[8:]) != leafPage || native.Uint64(inner) != 0 || native.Uint32(inner[12:]) != 0 {
		return Damage("a bucket is none")
	}
	return w.leaf(name, inner, nil, nil)
}

func (w *walker) tree(t subtree) error {
	if t.level == deepest {
		return Damage("its pages lead too deep")
	}
	for t.level >= len(w.buffer) {
		w.buffer = append(w.buffer, nil)
	}
	b, err := w.img.read(t.page, w.buffer[t.level], mostOfPage)
	if err != nil {
		return err
	}
	w.buffer[t.level] = b
	for page := t.page; page < t.page+uint64(len(b))/uint64(w.img.PageSize); page++ {
		if w.use[page] != unused {
			return Damage(fmt.Sprintf("page %d is used twice, or free and in use", page))
		}
		w.use[page] = inUse
	}
	switch native.Uint16(b[8:]) {
	case leafPage:
		return w.leaf(t.bucket, b, t.low, t.high)
	case branchPage:
		return w.branch(t, b)
	}
	return Damage("a page has no sense")
}

func (w *walker) branch(t subtree, b []byte) error {
	count := elements(b)
	if count <= 0 {
		return Damage("a page has no sense")
	}
	key, ok := branchKey(b, 0)
	for i := range count {
		next := t.high
		more := true
		if i+1 < count {
			next, more = branchKey(b, i+1)
		}
		if !ok || !more {
			return Damage("a key leads out of its page")
		}
		if i == 0 && t.low != nil && !bytes.Equal(key, t.low) || next != nil && bytes.Compare(key, next) >= 0 {
			return Damage("keys are out of order")
		}
		below := subtree{t.bucket, native.Uint64(b[pageHeader+i*element+8:]), t.level + 1, key, next}
		if err := w.tree(below); err != nil {
			return err
		}
		key = next
	}
	return nil
}

// leaf checks the elements of a leaf page and hands out its records. Only the tree
// of buckets, which has no name, holds buckets.
func (w *walker) leaf(bucket string, b, low, high []byte) error {
	count := elements(b)
	if count < 0 {
		return Damage("a page has no sense")
	}
	if count == 0 && low != nil {
		return Damage("a page below another one is empty")
	}
	var last []byte
	for i := range count {
		kind, key, value, ok := leafElement(b, i)
		switch {
		case !ok:
			return Damage("a record leads out of its page")
		case i == 0 && low != nil && !bytes.Equal(key, low), high != nil && bytes.Compare(key, high) >= 0,
			i > 0 && bytes.Compare(last, key) >= 0:
			return Damage("keys are out of order")
		case (kind == bucketValue) != (bucket == "") || kind > bucketValue || bucket == "" && len(value) < pageHeader:
			return Damage("a bucket is none")
		case bucket == "":
			w.trees[string(key)] = bytes.Clone(value)
		case w.record != nil:
			if err := w.record(bucket, key, value); err != nil {
				return err
			}
		}
		last = key
	}
	return nil
}

// elements returns how many elements a page has, or -1 when it is too small for them.
func elements(b []byte) int {
	count := int(native.Uint16(b[10:]))
	if pageHeader+count*element > len(b) {
		return -1
	}
	return count
}

func branchKey(b []byte, i int) (key []byte, ok bool) {
	at := pageHeader + i*element
	from := uint64(at) + uint64(native.Uint32(b[at:]))
	to := from + uint64(native.Uint32(b[at+4:]))
	if to > uint64(len(b)) {
		return nil, false
	}
	return b[from:to:to], true
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
