package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
)

// walker visits every page in use once, in the order of the trees, and checks that
// each can be found: pages are used once and are not free, keys ascend, and those
// below a branch lie between its keys. A key in the wrong place is as good as
// gone: a look-up would miss it and its lead would be made twice.
type walker struct {
	img    *image
	stop   func() bool                                  // asked at every page; nil: never
	record func(bucket string, key, value []byte) error // nil: the shape alone
	use    []byte                                       // by page: what it is used for
	trees  map[string][]byte                            // bucket → its value in the tree of buckets
	buffer [][]byte                                     // a page a level
}

const (
	unused = iota
	inUse
	isFree
)

// deepest is far beyond what a tree of pages of this size can reach.
const deepest = 32

var errStopped = errors.New("stopped")

// walk checks the shape of the file and calls record, if it is not nil, with every
// record: bucket by bucket, those in first before the others. What record is
// given lives until it returns. Afterwards bbolt can go everywhere.
func (m *image) walk(stop func() bool, record func(bucket string, key, value []byte) error, first ...string) error {
	w := &walker{img: m, stop: stop, use: make([]byte, m.pages), trees: make(map[string][]byte)}
	if err := w.markFree(); err != nil {
		return err
	}
	if err := w.tree("", m.root, 0, nil, nil); err != nil {
		return err
	}
	w.record = record
	for _, name := range first {
		if err := w.bucket(name, w.trees[name]); err != nil {
			return err
		}
		delete(w.trees, name)
	}
	for name, value := range w.trees {
		if err := w.bucket(name, value); err != nil {
			return err
		}
	}
	for id := uint64(2); id < m.pages; id++ {
		if w.use[id] == unused {
			return damage(fmt.Sprintf("page %d is neither used nor free", id))
		}
	}
	return nil
}

// peek checks the shape of the tree of buckets and of the named ones alone.
func (m *image) peek(names ...[]byte) error {
	w := &walker{img: m, use: make([]byte, m.pages), trees: make(map[string][]byte)}
	err := w.tree("", m.root, 0, nil, nil)
	for i := 0; i < len(names) && err == nil; i++ {
		err = w.bucket(string(names[i]), w.trees[string(names[i])])
	}
	return err
}

func (w *walker) markFree() error {
	ids, size, err := w.img.freeList()
	if err != nil {
		return err
	}
	for id := w.img.free; id < w.img.free+size; id++ {
		w.use[id] = inUse
	}
	for ; len(ids) > 0; ids = ids[8:] {
		id := native.Uint64(ids)
		if w.use[id] != unused {
			return damage(fmt.Sprintf("page %d is free twice, or free and in use", id))
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
		return w.tree(name, root, 0, nil, nil)
	}
	inner := value[pageHeader:]
	if len(inner) < pageHeader || native.Uint16(inner[8:]) != leafPage {
		return damage("a bucket is none")
	}
	return w.leaf(name, inner, nil, nil)
}

// tree visits page id and those below it, whose keys lie from low up to below high;
// nil is no bound.
func (w *walker) tree(bucket string, id uint64, level int, low, high []byte) error {
	if w.stop != nil && w.stop() {
		return errStopped
	}
	if level == deepest {
		return damage("its pages lead too deep")
	}
	if level == len(w.buffer) {
		w.buffer = append(w.buffer, nil)
	}
	b, err := w.img.read(id, w.buffer[level])
	if err != nil {
		return err
	}
	w.buffer[level] = b
	for page := id; page < id+uint64(len(b))/uint64(w.img.page); page++ {
		if w.use[page] != unused {
			return damage(fmt.Sprintf("page %d is used twice, or free and in use", page))
		}
		w.use[page] = inUse
	}
	switch native.Uint16(b[8:]) {
	case leafPage:
		return w.leaf(bucket, b, low, high)
	case branchPage:
		return w.branch(bucket, b, level, low, high)
	}
	return damage("a page has no sense")
}

func (w *walker) branch(bucket string, b []byte, level int, low, high []byte) error {
	count := elements(b)
	if count <= 0 {
		return damage("a page has no sense")
	}
	key, ok := branchKey(b, 0)
	for i := range count {
		next := high
		more := true
		if i+1 < count {
			next, more = branchKey(b, i+1)
		}
		if !ok || !more {
			return damage("a key leads out of its page")
		}
		if low != nil && bytes.Compare(key, low) < 0 || next != nil && bytes.Compare(key, next) >= 0 {
			return damage("keys are out of order")
		}
		child := native.Uint64(b[pageHeader+i*element+8:])
		if err := w.tree(bucket, child, level+1, key, next); err != nil {
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
		return damage("a page has no sense")
	}
	var last []byte
	for i := range count {
		kind, key, value, ok := leafElement(b, i)
		switch {
		case !ok:
			return damage("a record leads out of its page")
		case i == 0 && low != nil && bytes.Compare(key, low) < 0, high != nil && bytes.Compare(key, high) >= 0,
			i > 0 && bytes.Compare(last, key) >= 0:
			return damage("keys are out of order")
		case (kind == bucketValue) != (bucket == "") || kind > bucketValue || bucket == "" && len(value) < pageHeader:
			return damage("a bucket is none")
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
	from := at + int(native.Uint32(b[at:]))
	to := from + int(native.Uint32(b[at+4:]))
	if to > len(b) {
		return nil, false
	}
	return b[from:to:to], true
}

func leafElement(b []byte, i int) (kind uint32, key, value []byte, ok bool) {
	at := pageHeader + i*element
	from := at + int(native.Uint32(b[at+4:]))
	middle := from + int(native.Uint32(b[at+8:]))
	to := middle + int(native.Uint32(b[at+12:]))
	if to > len(b) {
		return 0, nil, nil, false
	}
	return native.Uint32(b[at:]), b[from:middle:middle], b[middle:to:to], true
}
