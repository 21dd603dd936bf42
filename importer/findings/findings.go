// Package findings counts what rows have in common, in memory that does not grow with the input: how many rows there
// are of each kind, and where the first ones are. It keeps keys as hashes: 16 bytes a row to find repeated ones, 8
// bytes a key to find those that no row names.
package findings

import (
	"cmp"
	"slices"

	"leadferry/importer/report"
)

// firstRows is how many rows of a kind are named.
const firstRows = 3

// Spot is where a row is. A line may have several rows of a JSON array.
type Spot struct {
	Input, Line int
	Number      int // of the row in its input
}

// Compare orders by input, then by row.
func (s Spot) Compare(o Spot) int {
	return cmp.Or(cmp.Compare(s.Input, o.Input), cmp.Compare(s.Number, o.Number))
}

// Rows counts the rows of one kind and keeps where the first ones are.
type Rows struct {
	Count int
	First []Spot
	last  Spot
}

// Add counts a row. Adding the same row again changes nothing.
func (r *Rows) Add(at Spot) {
	if r.Count > 0 && r.last == at {
		return
	}
	r.Count++
	r.last = at
	if len(r.First) < firstRows {
		r.First = append(r.First, at)
	}
}

// Places are the places of the first rows.
func (r *Rows) Places(at func(Spot) report.Place) []report.Place {
	places := make([]report.Place, 0, len(r.First))
	for _, spot := range r.First {
		places = append(places, at(spot))
	}
	return places
}

// Kinds counts rows by kind.
type Kinds[K comparable] struct {
	most  int
	keep  func(kind K, full bool) K
	known map[K]*Rows
}

// NewKinds counts at most so many kinds apart. keep returns the kind to store for a new one: a copy that shares no
// memory with the row or, if full, the kind that stands for all others.
func NewKinds[K comparable](most int, keep func(kind K, full bool) K) *Kinds[K] {
	return &Kinds[K]{most: most, keep: keep, known: map[K]*Rows{}}
}

// Add counts a row.
func (k *Kinds[K]) Add(at Spot, kind K) {
	rows := k.known[kind]
	if rows == nil {
		kind = k.keep(kind, len(k.known) >= k.most)
		rows = k.known[kind]
	}
	if rows == nil {
		rows = &Rows{}
		k.known[kind] = rows
	}
	rows.Add(at)
}

// Kind is a kind and its rows.
type Kind[K comparable] struct {
	Of K
	*Rows
}

// List returns the kinds, those of most rows first.
func (k *Kinds[K]) List(text func(K) string) []Kind[K] {
	list := make([]Kind[K], 0, len(k.known))
	for kind, rows := range k.known {
		list = append(list, Kind[K]{kind, rows})
	}
	slices.SortFunc(list, func(a, b Kind[K]) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.First[0].Compare(b.First[0]),
			cmp.Compare(text(a.Of), text(b.Of)))
	})
	return list
}
