// Package named remembers which keys the rows of an input named, at 8 bytes each: a key is a hash here, by a seed of this
// process alone.
package named

import (
	"hash/maphash"
	"slices"
)

// Keys are those that were named. One goroutine uses them.
type Keys struct {
	seed   maphash.Seed
	hashes []uint64
}

// New are no keys, with room for as many as there may be.
func New(room int) *Keys { return &Keys{maphash.MakeSeed(), make([]uint64, 0, room)} }

// Add notes that a row named a key; "" is none. Keys that are named again and again take no more room.
func (k *Keys) Add(key string) {
	if key == "" {
		return
	}
	if len(k.hashes) == cap(k.hashes) {
		k.Sort()
	}
	k.hashes = append(k.hashes, maphash.String(k.seed, key))
}

// Sort makes the keys ready to be asked, and returns how many different ones were named.
func (k *Keys) Sort() int {
	slices.Sort(k.hashes)
	k.hashes = slices.Compact(k.hashes)
	return len(k.hashes)
}

// Has reports whether a key was named, once the keys are sorted.
func (k *Keys) Has(key string) bool {
	_, found := slices.BinarySearch(k.hashes, maphash.String(k.seed, key))
	return found
}
