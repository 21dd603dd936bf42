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
			r.add(key, 0, i+2)
			if first, ok := firsts[key]; ok {
				rows++
				if len(want) < 3 {
					want = append(want, Repeat{Line: i + 2, FirstLine: first})
				}
				continue
			}
			firsts[key] = i + 2
		}
		got, places := r.found(3)
		if got != rows {
			t.Fatalf("%d repeated rows, want %d", got, rows)
		}
		if diff := cmp.Diff(want, places); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestRepeatsAcrossChunks(t *testing.T) {
	r := newRepeats()
	for i := range 2 * chunkRows {
		r.add(string(rune(i%0xd000)), i%3, i)
	}
	if got, _ := r.found(1); got != 2*chunkRows-0xd000 {
		t.Errorf("%d repeated rows, want %d", got, 2*chunkRows-0xd000)
	}
}
