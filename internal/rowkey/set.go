package rowkey

import (
	"hash/maphash"
	"slices"

	"leadferry/internal/garbage"
)

// Set is a set of keys, kept as hashes of 8 bytes. Keys with the same hash count as one: that is too rare to matter.
type Set struct {
	seed   maphash.Seed
	hashes []uint64
	from   [1<<16 + 1]uint32 // where the hashes with these first two bytes begin
}

// NewSet makes an empty set with room for this many keys.
func NewSet(room int) *Set {
	garbage.Reserve(8 * room)
	return &Set{seed: maphash.MakeSeed(), hashes: make([]uint64, 0, room)}
}

// Add adds a key. A key that is added again takes no more memory.
func (s *Set) Add(key string) {
	if len(s.hashes) == cap(s.hashes) {
		s.sort()
	}
	s.hashes = append(s.hashes, maphash.String(s.seed, key))
}

func (s *Set) sort() {
	slices.Sort(s.hashes)
	s.hashes = slices.Compact(s.hashes)
}

// Close prepares the set for Has, and returns how many keys it has. Nothing may be added later.
func (s *Set) Close() int {
	s.sort()
	for _, h := range s.hashes {
		s.from[h>>48+1]++
	}
	for i := range 1 << 16 {
		s.from[i+1] += s.from[i]
	}
	return len(s.hashes)
}

// Has reports whether a key was added. Call Close first.
func (s *Set) Has(key string) bool {
	h := maphash.String(s.seed, key)
	_, found := slices.BinarySearch(s.hashes[s.from[h>>48]:s.from[h>>48+1]], h)
	return found
}
