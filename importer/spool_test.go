package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// All things come out in order, as often as somebody asks, whatever of them fits into memory, wherever the rest goes, and
// whenever the disk takes no more; of which no name is left.
func TestSpool(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	rapid.Check(t, func(t *rapid.T) {
		s := &spool{most: rapid.IntRange(1, 40).Draw(t, "most"), compare: pulled.byLead}
		defer s.close()
		full := rapid.IntRange(0, 200).Draw(t, "full")
		var want []pulled
		for i, a := range rapid.SliceOf(rapid.Uint32Range(0, 50)).Draw(t, "things") {
			v := pulled{Number: i}
			v.Line.LeadID = fmt.Sprint(a)
			want = append(want, v)
			s.add(v)
			s.full = s.full || i == full
		}
		slices.SortFunc(want, pulled.byLead)
		for range 2 {
			var got []pulled
			for v, err := range s.all() {
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
func TestSpoolsWhoseFilesFail(t *testing.T) {
	fill := func() *spool {
		s := &spool{most: 4, compare: pulled.byLead}
		t.Cleanup(s.close)
		for i := range 20 {
			s.add(pulled{Number: i})
		}
		return s
	}
	count := func(s *spool) (n int, last error) {
		for _, last = range s.all() {
			n++
		}
		return n, last
	}
	broken := fill()
	broken.file.Close()
	if _, err := count(broken); err == nil {
		t.Error("the file cannot be read, and nobody says so")
	}
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	s := fill()
	if n, err := count(s); s.file != nil || n != 20 || err != nil {
		t.Errorf("%d things, %v", n, err)
	}
}
