// Package findings gathers what rows have in common, in memory that does not grow with them: each kind of thing with
// how many rows there are and where the first of them are. Keys it remembers by their hashes: those that are in
// several rows at 16 bytes a row, those that were named at 8 bytes each.
package findings

import (
	"cmp"
	"slices"

	"leadferry/importer/report"
)

// firstRows is how many rows of a kind are named.
const firstRows = 3

// Spot is where a row is: on a line, which may have several rows of a JSON array.
type Spot struct {
	Input, Line int
	Number      int // of the row in its input
}

// Compare orders by input, then as rows come.
func (s Spot) Compare(o Spot) int {
	return cmp.Or(cmp.Compare(s.Input, o.Input), cmp.Compare(s.Number, o.Number))
}

// Rows are those of one kind: how many, and the first of them.
type Rows struct {
	Count int
	First []Spot
	last  Spot
}

// Add counts a row once, however often it is added in a row's turn.
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

// Places are where the first rows are, as at says it.
func (r *Rows) Places(at func(Spot) report.Place) []report.Place {
	places := make([]report.Place, 0, len(r.First))
	for _, spot := range r.First {
		places = append(places, at(spot))
	}
	return places
}

// Kinds count rows by kind.
type Kinds[K comparable] struct {
	most  int
	keep  func(kind K, full bool) K
	known map[K]*Rows
}

// NewKinds tells most kinds apart, and those that stand for the others once it is full. keep says as what a kind is
// kept that was not met before: as a copy that shares no memory with a row, or as the others that it belongs to.
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

// Kind is one of them with its rows.
type Kind[K comparable] struct {
	Of K
	*Rows
}

// List gives the kinds, most rows first, then by how text writes them.
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
