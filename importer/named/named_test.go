package named

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Whatever room there is, exactly those keys are known that were named, and each is kept once.
func TestNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, different := New(rapid.IntRange(0, 40).Draw(t, "room")), map[string]bool{}
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 120)).Draw(t, "named") {
			k.Add(fmt.Sprint(n))
			different[fmt.Sprint(n)] = true
		}
		k.Add("")
		if n := k.Sort(); n != len(different) {
			t.Fatalf("%d keys, of %d", n, len(different))
		}
		for n := range 120 {
			if key := fmt.Sprint(n); k.Has(key) != different[key] {
				t.Fatalf("%s: named %v", key, different[key])
			}
		}
	})
}
