package named

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func text(s string) string { return s }

// missing are those of known that were not named.
func missing(t rapid.TB, k *Keys, known []string) []string {
	t.Helper()
	each := func(f func(string) error) error {
		for _, key := range known {
			if err := f(key); err != nil {
				return err
			}
		}
		return nil
	}
	var all []string
	if err := Missing(k, each, text, func(key string) error { all = append(all, key); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMissing: whatever fits into memory, wherever the rest goes, and whenever the disk takes no
// more, exactly those are missing that were not named, in their order.
func TestMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hashes")
	rapid.Check(t, func(t *rapid.T) {
		k := New()
		defer k.Close()
		k.held = rapid.IntRange(1, 40).Draw(t, "held")
		k.file = opened(t, path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
		full := rapid.IntRange(0, 200).Draw(t, "full")
		key := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 120).Draw(t, "key")) })
		named := rapid.SliceOf(key).Draw(t, "named")
		ordered := rapid.Bool().Draw(t, "ordered")
		if ordered {
			slices.Sort(named)
		}
		for i, name := range named {
			if k.Add(name); i == full {
				k.file.Close()
				k.file = opened(t, path, os.O_RDONLY)
			}
		}
		k.Add("")
		different := map[string]bool{}
		for _, name := range named {
			different[name] = true
		}
		if n := k.Count(); n > len(different) || (ordered || len(k.runs) == 0) && n < len(different) {
			t.Fatalf("%d keys, of %d", n, len(different))
		}
		known := rapid.SliceOfDistinct(key, text).Draw(t, "known")
		want := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return slices.Contains(named, name) })
		if got := missing(t, k, known); !slices.Equal(got, want) {
			t.Fatalf("%q are missing, want %q", got, want)
		}
	})
}

func opened(t rapid.TB, path string, flag int) *os.File {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestWhereNoFileCanBeMade: the hashes stay in memory.
func TestWhereNoFileCanBeMade(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	k := New()
	k.held = 4
	for i := range 20 {
		k.Add(fmt.Sprint(i))
	}
	if got := missing(t, k, []string{"3", "20", "19"}); !slices.Equal(got, []string{"20"}) || k.file != nil {
		t.Errorf("%q", got)
	}
}

// TestErrorsEndIt: of who gives the known keys, of who is told, and of the file.
func TestErrorsEndIt(t *testing.T) {
	k := New()
	defer k.Close()
	k.held = 2
	for i := range 9 {
		k.Add(fmt.Sprint(i))
	}
	if len(k.runs) == 0 {
		t.Fatal("nothing went to the file")
	}
	broken := errors.New("broken")
	all := func(f func(string) error) error { return f("x") }
	if err := Missing(k, func(func(string) error) error { return broken }, text, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := Missing(k, all, text, func(string) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	k.file.Close()
	if err := Missing(k, all, text, func(string) error { return nil }); err == nil {
		t.Error("the file cannot be read, and nobody says so")
	}
}

func BenchmarkAdd(b *testing.B) {
	k := New()
	defer k.Close()
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = fmt.Sprintf("00Q5g00000%08d", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k.Add(keys[i%len(keys)])
	}
}
