package findings

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"io"
	"slices"

	"leadferry/importer/spool"
)

// Repeats finds keys that occur more than once in inputs, or that look alike, and how many of the steps that were planned
// row by row a run that sends would take. It keeps a hash of each key, sorted; what goes beyond mostSightings stands in a
// temporary file. It promises nothing about keys of one hash, which are rarer than what it is asked for.
type Repeats struct {
	seed maphash.Seed
	seen *spool.Spool[sighting]
}

// sighting is where a key stands, with the action planned for its row. Look-alikes have one hash; own tells them apart, and
// is 0 for the key that all others are folded to.
type sighting struct {
	hash                uint64
	input, number, line uint32
	own                 uint16
	planned             uint8
}

const (
	mostSightings = 1 << 20 // in memory
	sightingSize  = 23      // bytes in the file
	plans         = 4
)

// NewRepeats has seen no row.
func NewRepeats() *Repeats {
	return &Repeats{maphash.MakeSeed(), spool.New(spool.Kind[sighting]{Most: mostSightings, Compare: compare, Write: write, Read: read})}
}

// compare orders by hash, and rows of one as they come.
func compare(a, b sighting) int {
	if a.hash != b.hash {
		return cmp.Compare(a.hash, b.hash)
	}
	return a.spot().Compare(b.spot())
}

func write(to *bufio.Writer, s *sighting) error {
	b := binary.LittleEndian.AppendUint64(to.AvailableBuffer(), s.hash)
	for _, n := range [...]uint32{s.input, s.number, s.line} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	_, err := to.Write(append(binary.LittleEndian.AppendUint16(b, s.own), s.planned))
	return err
}

func read(from *bufio.Reader, s *sighting) error {
	var b [sightingSize]byte
	if _, err := io.ReadFull(from, b[:]); err != nil {
		return err
	}
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	*s = sighting{binary.LittleEndian.Uint64(b[:]), number(8), number(12), number(16), binary.LittleEndian.Uint16(b[20:]), b[22]}
	return nil
}

func (s *sighting) spot() Spot { return Spot{int(s.input), int(s.line), int(s.number)} }

// Add takes a key that looks like all others of its fold; that of one that shall look like none is the key itself.
func (r *Repeats) Add(key, fold string, planned uint8, at Spot) {
	s := sighting{maphash.String(r.seed, fold), uint32(at.Input), uint32(at.Number), uint32(at.Line), 0, planned}
	if fold != key {
		s.own = 1 + uint16(maphash.String(r.seed, key)%(1<<16-1))
	}
	r.seen.Add(s)
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

// Found counts the rows whose key came earlier and names at most most of each kind. It lets go of all keys.
func (r *Repeats) Found(most int) (f Repeated, err error) {
	defer r.seen.Close()
	var origin sighting
	some, acted := false, false
	for s, err := range r.seen.All() {
		if err != nil {
			return f, err
		}
		switch {
		case !some || s.hash != origin.hash:
			origin, some, acted = s, true, false
		case s.own == origin.own:
			f.Same.add(Repeat{s.spot(), origin.spot()}, most)
		default:
			f.Alike.add(Repeat{s.spot(), origin.spot()}, most)
		}
		if s.planned != 0 {
			if acted {
				f.Moot[s.planned]++
			}
			acted = true
		}
	}
	return f, nil
}

// add counts a row, and keeps it where it is one of the first.
func (a *Again) add(r Repeat, most int) {
	a.Rows++
	at, _ := slices.BinarySearchFunc(a.First, r, func(a, b Repeat) int { return a.At.Compare(b.At) })
	if at < most {
		a.First = slices.Insert(a.First, at, r)
		a.First = a.First[:min(len(a.First), most)]
	}
}
