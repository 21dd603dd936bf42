package findings

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"leadferry/importer/report"
	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
)

const create = 1

// Repeats finds the rows that a map finds, in file order. faults 84
func TestRepeatsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching(`[a-e]{1,2}`), 0, 200).Draw(t, "keys")
		r := NewRepeats()
		firsts, rows := map[string]report.Place{}, 0
		var want []Repeat
		for i, key := range keys {
			at := report.Place{Line: i + 2, Row: i + 1}
			r.Add(key, key, create, 0, at)
			first, repeats := firsts[key]
			if !repeats {
				firsts[key] = at
			} else if rows++; len(want) < 3 {
				want = append(want, Repeat{at, first})
			}
		}
		got := r.Found(3)
		if got.Same.Rows != rows || got.Planned[create] != len(firsts) {
			t.Fatalf("%d repeated, %d creates, want %d and %d", got.Same.Rows, got.Planned[create], rows, len(firsts))
		}
		must.Same(t, want, got.Same.First)
	})
}

// A key that only looks like an earlier one is counted apart from one that repeats it, and is no create. faults 84, 131
func TestLookAlikesAreCountedApartFromRepeats(t *testing.T) {
	r := NewRepeats()
	for i, key := range []string{"a@x", "7", "007", "A@x", "7", "007", "8", "a@x"} {
		r.Add(key, rowkey.Fold(key), create, 0, report.Place{Line: i + 2, Row: i + 1})
	}
	got := r.Found(3)
	want := Repeated{
		Same:    Occurrences{Rows: 2, First: []Repeat{{At: report.Place{Line: 6, Row: 5}, First: report.Place{Line: 3, Row: 2}}, {At: report.Place{Line: 9, Row: 8}, First: report.Place{Line: 2, Row: 1}}}},
		Alike:   Occurrences{Rows: 3, First: []Repeat{{At: report.Place{Line: 4, Row: 3}, First: report.Place{Line: 3, Row: 2}}, {At: report.Place{Line: 5, Row: 4}, First: report.Place{Line: 2, Row: 1}}, {At: report.Place{Line: 7, Row: 6}, First: report.Place{Line: 3, Row: 2}}}},
		Planned: [4]int{create: 3},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Occurrences{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// However many keys there are, none is taken for one that it looks like. fault 131
func TestNoLookAlikeIsTakenForARepeat(t *testing.T) {
	const keys = 1 << 14
	r := NewRepeats()
	for i := range keys {
		fold := strconv.Itoa(i + 1)
		r.Add(fold, fold, create, 0, report.Place{Line: 2*i + 2, Row: 2*i + 1})
		r.Add("0"+fold, fold, create, 0, report.Place{Line: 2*i + 3, Row: 2*i + 2})
	}
	if got := r.Found(1); got.Same.Rows != 0 || got.Alike.Rows != keys {
		t.Errorf("%d rows repeat a key and %d look like one, want 0 and %d", got.Same.Rows, got.Alike.Rows, keys)
	}
}

// Each repeat is named by input, line and number, even if rows share a line or an input has no rows.
func TestRepeatsNameTheirRows(t *testing.T) {
	r := NewRepeats()
	var places []report.Place
	for _, n := range [][3]int{{0, 2, 1}, {0, 900, 2}, {2, 1, 1}, {2, 1, 3}, {3, 7, 5}} {
		places = append(places, report.Place{File: strconv.Itoa(n[0]), Line: n[1], Row: n[2]})
		r.Add("key", "key", create, n[0], places[len(places)-1])
	}
	var want []Repeat
	for _, at := range places[1:] {
		want = append(want, Repeat{at, places[0]})
	}
	must.Same(t, want, r.Found(9).Same.First)
}
