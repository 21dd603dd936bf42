package importer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The rows that repeat a key are those that a map finds, first ones first. faults 84
func TestRepeatsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching(`[a-e]{1,2}`), 0, 200).Draw(t, "keys")
		r := newRepeats()
		firsts := map[string]int{}
		var want []Repeat
		rows := 0
		for i, key := range keys {
			r.add(key, Create, 0, i+2)
			if first, ok := firsts[key]; ok {
				rows++
				if len(want) < 3 {
					want = append(want, Repeat{Line: i + 2, FirstLine: first})
				}
				continue
			}
			firsts[key] = i + 2
		}
		got := r.found(3)
		if got.rows != rows || got.moot[Create] != rows {
			t.Fatalf("%d repeated rows, %d creates less, want %d", got.rows, got.moot[Create], rows)
		}
		if diff := cmp.Diff(want, got.first); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestRepeatsAcrossChunks(t *testing.T) {
	r := newRepeats()
	for i := range 2 * chunkRows {
		r.add(string(rune(i%0xd000)), Nothing, i%3, i)
	}
	if got := r.found(1); got.rows != 2*chunkRows-0xd000 || got.moot != [actionCount]int{} {
		t.Errorf("%v repeated rows, want %d", got, 2*chunkRows-0xd000)
	}
}
