package findings

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
)

// Repeats finds keys that occur more than once in inputs, or that look alike, at 16 bytes a row, and how many of the steps
// that were planned row by row a run that sends would take. It promises nothing about keys of one hash: of 56 bits, they are
// rarer than what it is asked for. Sightings gather by the first bits of their hash: no two parts hold the same key, so each
// is sorted by itself.
type Repeats struct {
	seed  maphash.Seed
	parts [1 << partBits]part
	rows  int
	begin []uint32 // for each input, the rows of those before it
	last  uint32   // row of all inputs that came last
	usual int      // the collector's percentage before it was lowered; 0: it was not
}

// part is a share of the sightings, in pieces, for a slice that grows would take twice
// the memory.
type part [][]sighting

// sighting is a key's hash and where its row starts, with the action planned for it: 48 bits
// of hash that look-alikes share (8 more are the part's), and 16 by which they differ, 0 of
// the key that all others are folded to; 32 bits for the row's number among those of all
// inputs, 30 for how far its line is from its number, 2 of action.
type sighting struct{ hash, where uint64 }

const (
	partBits   = 8
	pieceRows  = 256
	mostPieces = 256 // of a part whose hashes are put into a table, which takes 2 MiB then
	lineBits   = 30
	middleLine = 1 << (lineBits - 1)
	actionBits = 2
	plans      = 1 << actionBits
	ownBits    = 16

	sightingSize = 16
	garbageRoom  = 24 << 20 // bytes of garbage that may gather beside many sightings
	leastPercent = 5        // of the sightings, beyond which the collector would do little else
)

// NewRepeats has seen no row.
func NewRepeats() *Repeats { return &Repeats{seed: maphash.MakeSeed()} }

// Add takes a key that looks like all others of its fold; that of one that shall look like
// none is the key itself. Inputs come one after another.
func (r *Repeats) Add(key, fold string, planned uint8, at Spot) {
	hash := maphash.String(r.seed, fold)
	alike := hash << partBits >> ownBits << ownBits
	if fold != key {
		alike |= 1 + maphash.String(r.seed, key)%(1<<ownBits-1)
	}
	r.parts[hash>>(64-partBits)].add(sighting{alike, (uint64(r.number(at))<<lineBits|ahead(at))<<actionBits | uint64(planned)})
	if r.rows++; r.rows*sightingSize >= garbageRoom && r.rows&(r.rows-1) == 0 {
		r.sweepOften()
	}
}

// number is the row's among those of all inputs.
func (r *Repeats) number(at Spot) uint32 {
	for len(r.begin) <= at.Input {
		r.begin = append(r.begin, r.last)
	}
	r.last = r.begin[at.Input] + uint32(at.Number)
	return r.last
}

// ahead is how far a row's line is from its number, which is behind it where rows share
// lines: 2^29 lines at most.
func ahead(at Spot) uint64 {
	return uint64(min(max(at.Line-at.Number+middleLine, 0), 2*middleLine-1))
}

// spot is where the row of a sighting stands.
func (r *Repeats) spot(s sighting) Spot {
	number := uint32(s.where >> (actionBits + lineBits))
	input, _ := slices.BinarySearch(r.begin, number) // rows count from 1
	input--
	at := Spot{Input: input, Number: int(number - r.begin[input])}
	at.Line = at.Number + int(s.where>>actionBits&(1<<lineBits-1)) - middleLine
	return at
}

// sweepOften keeps the collector from letting as much garbage gather as there are
// sightings, which would take twice the memory. There are no pointers in them, so that
// collecting more often costs next to nothing.
func (r *Repeats) sweepOften() {
	percent := max(leastPercent, 100*garbageRoom/(garbageRoom+r.rows*sightingSize))
	before := debug.SetGCPercent(percent)
	if before < percent {
		debug.SetGCPercent(before)
	} else if r.usual == 0 {
		r.usual = before
	}
}

func (p *part) add(s sighting) {
	last := len(*p) - 1
	if last < 0 || len((*p)[last]) == pieceRows {
		*p = append(*p, make([]sighting, 0, pieceRows))
		last++
	}
	(*p)[last] = append((*p)[last], s)
}

// Repeat is a row whose key stood in an earlier row.
type Repeat struct{ At, First Spot }

// Repeated is what repeats come to.
type Repeated struct {
	Same  Again      // rows that repeat an earlier key
	Alike Again      // rows whose key looks like that of an earlier row
	Moot  [plans]int // planned actions that an earlier one for such a key makes needless
}

// Again are rows, of which a few are named, in file order.
type Again struct {
	Rows  int
	First []Repeat
}

// Found counts the rows whose key came earlier and names at most most of each kind.
func (r *Repeats) Found(most int) (f Repeated) {
	if r.usual != 0 {
		defer debug.SetGCPercent(r.usual)
	}
	found := make([]Repeated, runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for w := range found {
		group.Go(func() {
			var mine Repeated
			var seen hashes
			for i := w; i < len(r.parts); i += len(found) {
				if p := r.parts[i]; seen.repeat(p) {
					sort.Sort(p) // by key, and those of one in file order
					mine.look(r, p, most)
				}
			}
			found[w] = mine
		})
	}
	group.Wait()
	for w := range found {
		f.join(&found[w], most)
	}
	return f
}

// hashes is room for a table in which hashes are looked up. It is at most half full; 0 is no hash.
type hashes []uint64

// repeat reports whether two sightings of a part may look alike: of most parts none do, which
// a table tells in a fifth of the time that sorting takes. A large part is taken to hold some.
func (h *hashes) repeat(p part) bool {
	if len(p) > mostPieces {
		return true
	}
	size := 1 << bits.Len(uint(2*p.Len()))
	if len(*h) < size {
		*h = make(hashes, size)
	}
	table := (*h)[:size]
	clear(table)
	for _, piece := range p {
		for _, s := range piece {
			alike := s.hash>>ownBits + 1
			at := alike & uint64(size-1)
			for ; table[at] != 0; at = (at + 1) & uint64(size-1) {
				if table[at] == alike {
					return true
				}
			}
			table[at] = alike
		}
	}
	return false
}

func (p part) Len() int {
	if len(p) == 0 {
		return 0
	}
	return (len(p)-1)*pieceRows + len(p[len(p)-1])
}

func (p part) at(i int) *sighting { return &p[i/pieceRows][i%pieceRows] }

func (p part) Less(i, j int) bool { return compare(*p.at(i), *p.at(j)) < 0 }

func (p part) Swap(i, j int) { *p.at(i), *p.at(j) = *p.at(j), *p.at(i) }

// look goes through a sorted part.
func (f *Repeated) look(r *Repeats, p part, most int) {
	var origin sighting
	seen, acted := false, false
	for _, piece := range p {
		for _, s := range piece {
			switch {
			case seen && s.hash == origin.hash:
				f.Same.add(r.repeat(s, origin), most)
			case seen && s.hash>>ownBits == origin.hash>>ownBits:
				f.Alike.add(r.repeat(s, origin), most)
			default:
				origin, seen, acted = s, true, false
			}
			if planned := s.planned(); planned != 0 {
				if acted {
					f.Moot[planned]++
				}
				acted = true
			}
		}
	}
}

// join adds what another has found in other parts.
func (f *Repeated) join(other *Repeated, most int) {
	f.Same.join(&other.Same, most)
	f.Alike.join(&other.Alike, most)
	for i, n := range other.Moot {
		f.Moot[i] += n
	}
}

func (a *Again) add(r Repeat, most int) {
	a.Rows++
	a.First = keepFirst(a.First, r, most)
}

func (a *Again) join(other *Again, most int) {
	a.Rows += other.Rows
	for _, r := range other.First {
		a.First = keepFirst(a.First, r, most)
	}
}

func (s sighting) planned() uint8 { return uint8(s.where & (1<<actionBits - 1)) }

// compare orders by the hash that look-alikes share: nearly all differ there.
func compare(a, b sighting) int {
	if a.hash>>ownBits != b.hash>>ownBits {
		return cmp.Compare(a.hash, b.hash)
	}
	return cmp.Compare(a.where, b.where)
}

func (r *Repeats) repeat(s, origin sighting) Repeat { return Repeat{r.spot(s), r.spot(origin)} }

func keepFirst(first []Repeat, r Repeat, most int) []Repeat {
	at, _ := slices.BinarySearchFunc(first, r, func(a, b Repeat) int { return a.At.Compare(b.At) })
	if at == most {
		return first
	}
	first = slices.Insert(first, at, r)
	return first[:min(len(first), most)]
}
