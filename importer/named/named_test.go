package named

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func text(s string) string { return s }

// TestMissing: whatever fits into memory, exactly those are missing that were not named, in their order.
func TestMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := of(rapid.IntRange(2, 40).Draw(t, "most"))
		defer k.Close()
		key := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 120).Draw(t, "key")) })
		named, different := rapid.SliceOf(key).Draw(t, "named"), map[string]bool{}
		for _, name := range named {
			k.Add(name)
			different[name] = true
		}
		k.Add("")
		if n, err := k.Count(); n != len(different) || err != nil {
			t.Fatalf("%d keys, of %d; %v", n, len(different), err)
		}
		known := rapid.SliceOfDistinct(key, text).Draw(t, "known")
		want := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return different[name] })
		each := func(f func(string) error) error {
			for _, key := range known {
				if err := f(key); err != nil {
					return err
				}
			}
			return nil
		}
		var got []string
		if err := Missing(k, each, text, func(key string) error { got = append(got, key); return nil }); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q are missing, want %q; %v", got, want, err)
		}
	})
}

// TestErrorsEndIt: of who gives the known keys, and of who is told.
func TestErrorsEndIt(t *testing.T) {
	k, broken := of(2), errors.New("broken")
	defer k.Close()
	all := func(f func(string) error) error { return f("x") }
	if err := Missing(k, func(func(string) error) error { return broken }, text, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := Missing(k, all, text, func(string) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}
