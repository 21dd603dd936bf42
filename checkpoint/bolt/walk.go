package bolt

import (
	"fmt"
	"maps"
	"slices"
)

// walk checks the shape of the file and hands out every record: those of the buckets first
// before the others. Afterwards bbolt can go everywhere.
func (m *image) walk(record recorder, first ...string) error {
	w := newWalker(m, nil)
	if err := w.markFree(); err != nil {
		return err
	}
	if err := w.tree(subtree{page: m.root}); err != nil {
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
			return damage(fmt.Sprintf("page %d is neither used nor free", id))
		}
	}
	return nil
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
