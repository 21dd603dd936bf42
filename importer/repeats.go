package importer

import (
	"cmp"
	"hash/maphash"
	"slices"
)

// repeats finds keys that occur more than once, at 16 bytes a row.
type repeats struct {
	seed   maphash.Seed
	chunks [][]sighting
}

// sighting is a key's hash and where its row starts: 16 bits of input, 48 of line.
type sighting struct{ hash, where uint64 }

const (
	chunkRows = 1 << 16
	lineBits  = 48
)

func newRepeats() *repeats { return &repeats{seed: maphash.MakeSeed()} }

func (r *repeats) add(key string, input, line int) {
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last]) == chunkRows {
		r.chunks = append(r.chunks, make([]sighting, 0, chunkRows))
		last++
	}
	s := sighting{maphash.String(r.seed, key), uint64(input)<<lineBits | uint64(line)}
	r.chunks[last] = append(r.chunks[last], s)
}

// Repeat is a row whose key stood in an earlier row.
type Repeat struct{ Input, Line, FirstInput, FirstLine int }

// found counts the rows that repeat an earlier key and returns the first few of
// them in file order. It sorts chunk by chunk and merges, so it needs no second copy.
func (r *repeats) found(most int) (rows int, first []Repeat) {
	for _, c := range r.chunks {
		slices.SortFunc(c, func(a, b sighting) int {
			return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.where, b.where))
		})
	}
	heads := slices.Clone(r.chunks)
	var origin sighting
	seen := false
	for s, ok := pop(heads); ok; s, ok = pop(heads) {
		if !seen || s.hash != origin.hash {
			origin, seen = s, true
			continue
		}
		rows++
		first = keepFirst(first, repeatOf(s, origin), most)
	}
	return rows, first
}

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

func less(a, b sighting) bool {
	return a.hash < b.hash || a.hash == b.hash && a.where < b.where
}

func repeatOf(s, origin sighting) Repeat {
	const lines = 1<<lineBits - 1
	return Repeat{int(s.where >> lineBits), int(s.where & lines), int(origin.where >> lineBits), int(origin.where & lines)}
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
