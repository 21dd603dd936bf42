// Package findings counts what rows have in common: how many rows there are of each kind, and the places of the first
// ones. The memory of Kinds does not grow with the input. Repeats, which finds repeated keys, takes 16 bytes a row.
package findings

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"leadferry/importer/report"
	"leadferry/internal/garbage"
)

// Kind is what rows have in common: how they ended or which rule they break, the column, and the reason.
type Kind struct{ Outcome, Rule, Column, Text string }

// Others is the text for rows beyond the limit of kinds.
const Others = "other reasons"

// Kinds counts rows by kind. Beyond 1,000 kinds, it counts them only by outcome and rule.
type Kinds struct {
	known map[Kind]*kind
	list  []*kind // in order of arrival
}

type kind struct {
	report.Reason
	last report.Place
}

// NewKinds makes empty Kinds.
func NewKinds() *Kinds { return &Kinds{known: map[Kind]*kind{}} }

// Add counts a row; adding it again to the same kind changes nothing. text is shown for the kind if the row is its
// first. Kinds may keep both strings: they must not share the row's memory.
func (k *Kinds) Add(at report.Place, of Kind, text string) {
	one := k.known[of]
	if one == nil && len(k.known) >= 1000 {
		of, text = Kind{Outcome: of.Outcome, Rule: of.Rule, Text: Others}, Others
		one = k.known[of]
	}
	if one == nil {
		one = &kind{Reason: report.Reason{Outcome: of.Outcome, Rule: of.Rule, Column: of.Column, Error: text}}
		k.known[of], k.list = one, append(k.list, one)
	}
	if one.Rows > 0 && one.last == at {
		return
	}
	const example = "for example: " // the texts of the kind differ
	if one.Rows++; text != one.Error && !strings.HasPrefix(one.Error, example) {
		one.Error = example + one.Error
	}
	if one.last = at; len(one.Examples) < report.MostExamples {
		one.Examples = append(one.Examples, at)
	}
}

// List returns the kinds, most rows first.
func (k *Kinds) List() (list []report.Reason) {
	for _, one := range k.list {
		list = append(list, one.Reason)
	}
	slices.SortStableFunc(list, func(a, b report.Reason) int {
		x, y := &a.Examples[0], &b.Examples[0]
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(x.File, y.File), cmp.Compare(x.Row, y.Row))
	})
	return list
}

// Repeats finds keys that occur in several rows, and keys that look alike. It takes 16 bytes a row, and 8 more for a row
// whose line is not one below that of the row before it. Different keys with the same hash count as one key; that is too
// rare to matter.
type Repeats struct {
	seed  maphash.Seed
	parts [1 << 8][][]sighting // by the first byte of the hash, in chunks
	files []string             // the inputs
	begin []uint32             // for each of them, the number of rows before it
	last  uint32               // the last row added, counted over all inputs
	lines []position           // of each row whose line is not one below that of the row before it
}

type position struct{ row, line uint32 }

// sighting is a row and its key.
type sighting struct {
	fold    uint64 // hash of the folded key, which look-alikes share
	row     uint32 // counted over all inputs
	own     uint16 // short hash of the key itself; 0: the key is its own fold
	planned uint8  // what is planned for the row
}

const plans, chunk = 4, 256 // kinds of plans; sightings in a chunk (4 KiB)

// NewRepeats makes an empty Repeats.
func NewRepeats() *Repeats { return &Repeats{seed: maphash.MakeSeed()} }

// Add adds a row and its key. Keys with the same fold look alike. Add the inputs one after another. planned, from 1 to
// 3, is what the row does unless an earlier row of its key does something; 0: nothing.
func (r *Repeats) Add(key, fold string, planned uint8, input int, at report.Place) {
	for len(r.begin) <= input {
		r.files, r.begin = append(r.files, at.File), append(r.begin, r.last)
	}
	r.last = r.begin[input] + uint32(at.Row)
	if n := len(r.lines); n == 0 || int(r.lines[n-1].line+r.last-r.lines[n-1].row) != at.Line {
		r.lines = append(r.lines, position{r.last, uint32(at.Line)})
	}
	seen := sighting{fold: maphash.String(r.seed, fold), row: r.last, planned: planned}
	if fold != key {
		seen.own = uint16(1 + maphash.String(r.seed, key)%math.MaxUint16)
	}
	part := &r.parts[seen.fold>>56]
	if n := len(*part); n == 0 || len((*part)[n-1]) == chunk {
		*part = append(*part, make([]sighting, 0, chunk))
		if seen.fold>>56 == 0 { // about once a MiB
			garbage.Reserve(16 * int(r.last))
		}
	}
	last := &(*part)[len(*part)-1]
	*last = append(*last, seen)
}

func (r *Repeats) place(row uint32) report.Place {
	next, _ := slices.BinarySearch(r.begin, row) // rows count from 1
	i, _ := slices.BinarySearchFunc(r.lines, row+1, func(p position, row uint32) int { return cmp.Compare(p.row, row) })
	line := r.lines[i-1].line + row - r.lines[i-1].row
	return report.Place{File: r.files[next-1], Line: int(line), Row: int(row - r.begin[next-1])}
}

// Repeat is a row whose key is also in an earlier row (First).
type Repeat struct{ At, First report.Place }

// Repeated is what Repeats found.
type Repeated struct {
	Same    Occurrences // rows that repeat an earlier key
	Alike   Occurrences // rows whose key looks like that of an earlier row
	Planned [plans]int  // number of keys by what is planned; keys that look alike count as one
}

// Occurrences counts rows and keeps the first ones, in file order.
type Occurrences struct {
	Rows    int
	First   []Repeat
	numbers []uint32 // of these rows
}

// Found counts the rows whose key is in an earlier row, and keeps the first of each kind, up to most. Call it once.
func (r *Repeats) Found(most int) (f Repeated) {
	for _, part := range r.parts {
		// the first row of each folded key: a map is faster here than sorting
		first := make(map[uint64]*sighting, min(len(part)*chunk, 1<<16))
		for _, some := range part {
			for i := range some {
				s := &some[i]
				origin, known := first[s.fold]
				switch {
				case !known:
					origin, first[s.fold] = s, s
				case s.own == origin.own:
					f.Same.add(r, *s, *origin, most)
				default:
					f.Alike.add(r, *s, *origin, most)
				}
				if s.planned != 0 && (!known || origin.planned == 0) {
					f.Planned[s.planned]++
					origin.planned = s.planned // note at the first row that the key has a plan
				}
			}
		}
	}
	return f
}

func (a *Occurrences) add(r *Repeats, s, origin sighting, most int) {
	a.Rows++
	if at, _ := slices.BinarySearch(a.numbers, s.row); at < most {
		a.numbers = slices.Insert(a.numbers, at, s.row)[:min(len(a.numbers)+1, most)]
		a.First = slices.Insert(a.First, at, Repeat{r.place(s.row), r.place(origin.row)})[:len(a.numbers)]
	}
}
