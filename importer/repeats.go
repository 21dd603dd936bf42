package importer

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
)

// repeats finds keys that occur more than once, at 16 bytes a row.
type repeats struct {
	seed   maphash.Seed
	chunks [][]sighting
}

// sighting is a key's hash and where its row starts, with the action planned for it:
// 16 bits of input, 46 of line, 2 of action.
type sighting struct{ hash, where uint64 }

const (
	chunkRows  = 1 << 16
	lineBits   = 46
	actionBits = 2
)

func newRepeats() *repeats { return &repeats{seed: maphash.MakeSeed()} }

func (r *repeats) add(key string, planned Action, input, line int) {
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last]) == chunkRows {
		r.chunks = append(r.chunks, make([]sighting, 0, chunkRows))
		last++
	}
	s := sighting{maphash.String(r.seed, key), (uint64(input)<<lineBits|uint64(line))<<actionBits | uint64(planned)}
	r.chunks[last] = append(r.chunks[last], s)
}

// Repeat is a row whose key stood in an earlier row.
type Repeat struct{ Input, Line, FirstInput, FirstLine int }

// found is what repeats come to.
type found struct {
	rows  int              // that repeat an earlier key
	first []Repeat         // a few of them, in file order
	moot  [actionCount]int // planned actions that an earlier one for the same key makes needless
}

// found counts the rows that repeat an earlier key and names at most most of them. It
// sorts chunk by chunk and merges, so it needs no second copy.
func (r *repeats) found(most int) (f found) {
	var group sync.WaitGroup
	for _, c := range r.chunks {
		group.Go(func() { slices.SortFunc(c, compare) })
	}
	group.Wait()
	heads := slices.Clone(r.chunks)
	var origin sighting
	seen, acted := false, false
	for s, ok := pop(heads); ok; s, ok = pop(heads) {
		again := seen && s.hash == origin.hash
		if again {
			f.rows++
			f.first = keepFirst(f.first, repeatOf(s, origin), most)
		} else {
			origin, seen, acted = s, true, false
		}
		if planned := s.planned(); planned != Nothing {
			if acted {
				f.moot[planned]++
			}
			acted = true
		}
	}
	return f
}

func (s sighting) planned() Action { return Action(s.where & (1<<actionBits - 1)) }

// pop takes the smallest sighting of all sorted chunks. Few chunks (one for 65,536
// rows) make a scan over their heads as good as a heap.
func pop(heads [][]sighting) (sighting, bool) {
	best := -1
	for i, h := range heads {
		if len(h) == 0 {
			continue
		}
		if best < 0 || less(h[0], heads[best][0]) {
			best = i
		}
	}
	if best < 0 {
		return sighting{}, false
	}
	s := heads[best][0]
	heads[best] = heads[best][1:]
	return s, true
}

func less(a, b sighting) bool { return compare(a, b) < 0 }

// compare orders by hash: nearly all differ there.
func compare(a, b sighting) int {
	if a.hash != b.hash {
		return cmp.Compare(a.hash, b.hash)
	}
	return cmp.Compare(a.where, b.where)
}

// place is the input and the line.
func (s sighting) place() (input, line int) {
	at := s.where >> actionBits
	return int(at >> lineBits), int(at & (1<<lineBits - 1))
}

func repeatOf(s, origin sighting) (r Repeat) {
	r.Input, r.Line = s.place()
	r.FirstInput, r.FirstLine = origin.place()
	return r
}

func keepFirst(first []Repeat, r Repeat, most int) []Repeat {
	at, _ := slices.BinarySearchFunc(first, r, func(a, b Repeat) int {
		return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.Line, b.Line))
	})
	if at == most {
		return first
	}
	first = slices.Insert(first, at, r)
	return first[:min(len(first), most)]
}
