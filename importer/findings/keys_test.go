package findings

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"leadferry/internal/rowkey"
)

const create = 1

// The rows that repeat a key are those that a map finds, first ones first. faults 84
func TestRepeatsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching(`[a-e]{1,2}`), 0, 200).Draw(t, "keys")
		r := NewRepeats()
		firsts := map[string]int{}
		var want []Repeat
		rows := 0
		for i, key := range keys {
			r.Add(key, key, create, Spot{Line: i + 2, Number: i + 1})
			if first, ok := firsts[key]; ok {
				rows++
				if len(want) < 3 {
					want = append(want, Repeat{At: Spot{Line: i + 2, Number: i + 1}, First: Spot{Line: first, Number: first - 1}})
				}
				continue
			}
			firsts[key] = i + 2
		}
		got := r.Found(3)
		if got.Same.Rows != rows || got.Planned[create] != len(firsts) {
			t.Fatalf("%d repeated rows, %d creates, want %d and %d", got.Same.Rows, got.Planned[create], rows, len(firsts))
		}
		if diff := cmp.Diff(want, got.Same.First); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A row whose key looks like an earlier one is told from one that repeats it, and beside the
// first one of them needs no create of its own. faults 84, 131
func TestLookAlikesAreToldFromRepeats(t *testing.T) {
	r := NewRepeats()
	for i, key := range []string{"a@x", "7", "007", "A@x", "7", "007", "8", "a@x"} {
		r.Add(key, rowkey.Fold(key), create, Spot{Line: i + 2, Number: i + 1})
	}
	got := r.Found(3)
	want := Repeated{
		Same:    Occurrences{2, []Repeat{{At: Spot{Line: 6, Number: 5}, First: Spot{Line: 3, Number: 2}}, {At: Spot{Line: 9, Number: 8}, First: Spot{Line: 2, Number: 1}}}},
		Alike:   Occurrences{3, []Repeat{{At: Spot{Line: 4, Number: 3}, First: Spot{Line: 3, Number: 2}}, {At: Spot{Line: 5, Number: 4}, First: Spot{Line: 2, Number: 1}}, {At: Spot{Line: 7, Number: 6}, First: Spot{Line: 3, Number: 2}}}},
		Planned: [4]int{create: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No key is taken for the one it looks like, however many there are: an import holds such
// rows, and calls repeats unchanged. fault 131
func TestNoLookAlikeIsTakenForARepeat(t *testing.T) {
	const keys = 1 << 14
	r := NewRepeats()
	for i := range keys {
		fold := strconv.Itoa(i + 1)
		r.Add(fold, fold, create, Spot{Line: 2*i + 2, Number: 2*i + 1})
		r.Add("0"+fold, fold, create, Spot{Line: 2*i + 3, Number: 2*i + 2})
	}
	if got := r.Found(1); got.Same.Rows != 0 || got.Alike.Rows != keys {
		t.Errorf("%d rows repeat a key and %d look like one, want 0 and %d", got.Same.Rows, got.Alike.Rows, keys)
	}
}

// Rows are named by input, line and number, though they share lines or spread over many, and though an input has none.
func TestRepeatsNameTheirRows(t *testing.T) {
	r := NewRepeats()
	spots := []Spot{{0, 2, 1}, {0, 900, 2}, {2, 1, 1}, {2, 1, 3}, {3, 7, 5}}
	for _, at := range spots {
		r.Add("key", "key", create, at)
	}
	var want []Repeat
	for _, at := range spots[1:] {
		want = append(want, Repeat{at, spots[0]})
	}
	if diff := cmp.Diff(want, r.Found(9).Same.First); diff != "" {
		t.Error(diff)
	}
}

// Whatever room there is, exactly those keys are known that were named, and each is kept once.
func TestKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, want := NewKeys(rapid.IntRange(0, 20).Draw(t, "room")), map[string]bool{}
		for _, key := range rapid.SliceOf(rapid.StringMatching(`[a-d]{0,3}`)).Draw(t, "keys") {
			k.Add(key)
			want[key] = true
		}
		k.Sort()
		for _, key := range append(slices.Collect(maps.Keys(want)), "", "x") {
			if k.Has(key) != want[key] {
				t.Fatalf("%q is known: %v", key, !want[key])
			}
		}
	})
}
