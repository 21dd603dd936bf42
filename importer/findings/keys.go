package findings

import (
	"cmp"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Keys are those that were named. A key is a hash here, by a seed of this process alone.
type Keys struct {
	seed   maphash.Seed
	hashes []uint64
}

// NewKeys are none, with room for as many as there may be.
func NewKeys(room int) *Keys { return &Keys{maphash.MakeSeed(), make([]uint64, 0, room)} }

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

// Sort makes the keys ready to be asked.
func (k *Keys) Sort() {
	slices.Sort(k.hashes)
	k.hashes = slices.Compact(k.hashes)
}

// Has reports whether a key was named, once the keys are sorted.
func (k *Keys) Has(key string) bool {
	_, found := slices.BinarySearch(k.hashes, maphash.String(k.seed, key))
	return found
}

// Repeats finds keys that occur more than once in inputs, or that look alike. It keeps 16 bytes a row, and promises
// nothing about keys of one hash, which are rarer than what it is asked for.
type Repeats struct {
	seed  maphash.Seed
	parts [1 << 8][]sighting // by the first bits of the hash, so that they grow one by one
	begin []uint32           // for each input, the rows of those before it
	last  uint32             // the row that came last, counted over all inputs
}

// sighting is a row. Its hash begins with that of what its key is folded to, which look-alikes share; then comes that
// of the key itself, 0 where it is what the others are folded to, and what is planned for it.
type sighting struct {
	hash         uint64
	number, line uint32 // counted over all inputs, and in its own
}

const (
	ownBits  = 16
	planBits = 2
	plans    = 1 << planBits
)

func (s sighting) fold() uint64    { return s.hash >> (ownBits + planBits) }
func (s sighting) own() uint64     { return s.hash >> planBits & (1<<ownBits - 1) }
func (s sighting) planned() uint64 { return s.hash & (plans - 1) }

// NewRepeats has seen no row.
func NewRepeats() *Repeats { return &Repeats{seed: maphash.MakeSeed()} }

// Add takes a key that looks like all others of its fold; that of one that shall look like none is the key itself.
// Inputs come one after another. planned is a request that the row would send, 0 for none.
func (r *Repeats) Add(key, fold string, planned uint8, at Spot) {
	for len(r.begin) <= at.Input {
		r.begin = append(r.begin, r.last)
	}
	r.last = r.begin[at.Input] + uint32(at.Number)
	hash, own := maphash.String(r.seed, fold), uint64(0)
	if fold != key {
		own = 1 + maphash.String(r.seed, key)%(1<<ownBits-1)
	}
	part := &r.parts[hash>>56]
	*part = append(*part, sighting{(hash<<ownBits|own)<<planBits | uint64(planned), r.last, uint32(at.Line)})
}

// spot is where the row of a sighting is.
func (r *Repeats) spot(s sighting) Spot {
	input, _ := slices.BinarySearch(r.begin, s.number) // rows count from 1
	return Spot{Input: input - 1, Line: int(s.line), Number: int(s.number - r.begin[input-1])}
}

// Repeat is a row whose key stood in an earlier row.
type Repeat struct{ At, First Spot }

// Repeated is what repeats come to.
type Repeated struct {
	Same  Again      // rows that repeat an earlier key
	Alike Again      // rows whose key looks like that of an earlier row
	Moot  [plans]int // planned requests that an earlier one for such a key makes needless
}

// Again counts rows and names a few of them, in file order.
type Again struct {
	Rows  int
	First []Repeat
}

// Found counts the rows whose key came earlier and names at most most of each kind. It lets go of all keys.
func (r *Repeats) Found(most int) (f Repeated) {
	r.sort()
	for i, part := range r.parts {
		r.parts[i] = nil
		var origin sighting
		acted := false
		for i, s := range part {
			switch {
			case i == 0 || s.fold() != origin.fold():
				origin, acted = s, false
			case s.own() == origin.own():
				f.Same.add(Repeat{r.spot(s), r.spot(origin)}, most)
			default:
				f.Alike.add(Repeat{r.spot(s), r.spot(origin)}, most)
			}
			if planned := s.planned(); planned != 0 {
				if acted {
					f.Moot[planned]++
				}
				acted = true
			}
		}
	}
	return f
}

// sort orders each part by fold and row.
func (r *Repeats) sort() {
	var group sync.WaitGroup
	var next atomic.Int32
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1); int(i) <= len(r.parts); i = next.Add(1) {
				slices.SortFunc(r.parts[i-1], func(a, b sighting) int {
					if order := cmp.Compare(a.fold(), b.fold()); order != 0 {
						return order
					}
					return cmp.Compare(a.number, b.number)
				})
			}
		})
	}
	group.Wait()
}

// add counts a row, and keeps it if it is one of the first.
func (a *Again) add(r Repeat, most int) {
	a.Rows++
	at, _ := slices.BinarySearchFunc(a.First, r, func(a, b Repeat) int { return a.At.Compare(b.At) })
	if at < most {
		a.First = slices.Insert(a.First, at, r)
		a.First = a.First[:min(len(a.First), most)]
	}
}
