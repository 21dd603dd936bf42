package spool

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type thing struct{ A, B uint32 }

func order(a, b thing) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) }

// All things come out in order, as often as somebody asks, whatever of them fits into memory, wherever the rest goes, and
// whenever the disk takes no more; of which no name is left.
func TestSpool(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 40).Draw(t, "most")
		full := rapid.IntRange(0, 200).Draw(t, "full")
		s := New(most, order)
		defer s.Close()
		var want []thing
		for i, a := range rapid.SliceOf(rapid.Uint32Range(0, 50)).Draw(t, "things") {
			v := thing{a, uint32(i)}
			want = append(want, v)
			s.Add(v)
			s.full = s.full || i == full
		}
		slices.SortFunc(want, order)
		for range 2 {
			var got []thing
			for v, err := range s.All() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, v)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
		if names, _ := filepath.Glob(filepath.Join(temporary, "*")); len(names) > 0 && os.PathSeparator == '/' {
			t.Fatalf("left: %v", names)
		}
	})
}

// Where no file can be made, all stays in memory; one that cannot be read is an error.
func TestFilesThatFail(t *testing.T) {
	count := func(s *Spool[thing]) (n int, last error) {
		for _, last = range s.All() {
			n++
		}
		return n, last
	}
	fill := func() *Spool[thing] {
		s := New(4, order)
		t.Cleanup(s.Close)
		for i := range 20 {
			s.Add(thing{uint32(i), 0})
		}
		return s
	}
	broken := fill()
	broken.file.Close()
	if _, err := count(broken); err == nil {
		t.Error("the file cannot be read, and nobody says so")
	}
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	if s := fill(); s.file != nil {
		t.Error("a file was made")
	} else if n, err := count(s); n != 20 || err != nil {
		t.Errorf("%d things, %v", n, err)
	}
}
