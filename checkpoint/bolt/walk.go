package bolt

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// mostWalkers bounds the marks, a byte a page each; disks are busy with fewer.
const mostWalkers = 4

// walk checks the shape of the file and hands out every record: those of the buckets first before the others. The others are read by several
// goroutines, each with a recorder of its own; newRecorder is not called by them.
// Afterwards bbolt can go everywhere.
func (m *image) walk(newRecorder func() recorder, first ...string) error {
	w := newWalker(m, nil)
	if err := w.markFree(); err != nil {
		return err
	}
	if err := w.tree(subtree{page: m.root}); err != nil {
		return err
	}
	w.record = newRecorder()
	for _, name := range first {
		if err := w.bucket(name, w.trees[name]); err != nil {
			return err
		}
		delete(w.trees, name)
	}
	var rest []subtree
	w.later = &rest
	for name, value := range w.trees {
		if err := w.bucket(name, value); err != nil {
			return err
		}
	}
	if err := w.divide(rest, newRecorder); err != nil {
		return err
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

// divide walks the subtrees side by side. Every walker marks the pages that it visits
// for itself, so that none can run in a circle, and a page that two have visited shows
// when the marks are put together.
func (w *walker) divide(all []subtree, newRecorder func() recorder) error {
	var taken atomic.Int64
	walkers := make([]*walker, min(mostWalkers, runtime.GOMAXPROCS(0), len(all)))
	errs := make([]error, len(walkers))
	var group sync.WaitGroup
	for i := range walkers {
		one := newWalker(w.img, newRecorder())
		walkers[i] = one
		group.Go(func() {
			for errs[i] == nil {
				next := int(taken.Add(1)) - 1
				if next >= len(all) {
					return
				}
				errs[i] = guard(func() error { return one.tree(all[next]) })
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	for _, one := range walkers {
		for page, use := range one.use {
			if use == unused {
				continue
			}
			if w.use[page] != unused {
				return usedTwice(uint64(page))
			}
			w.use[page] = use
		}
	}
	return nil
}
