package terminal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// spooled is more than any buffer on the way holds, in bytes.
const spooled = 4 << 20

// What is told is what was written, in memory and beyond, with and without a place for a
// file; no file stays.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	for name, temp := range map[string]string{"a file": dir, "no file": filepath.Join(dir, "none")} {
		t.Setenv("TMPDIR", temp)
		t.Setenv("TMP", temp) // as it is called on Windows
		var s Spool
		var want bytes.Buffer
		for i := 0; want.Len() < spooled+1<<20; i++ {
			line := fmt.Sprintf("%d %0512d\n", i, i)
			want.WriteString(line)
			if _, err := s.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if (s.file != nil) != (temp == dir && runtime.GOOS != "windows") { // where an open file keeps its name
			t.Errorf("%s: %v", name, s.file)
		}
		var got bytes.Buffer
		if err := s.Tell(&got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s: %d of %d bytes, %v", name, got.Len(), want.Len(), err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}

// A file that cannot be filled is given up, and nothing of it is lost.
func TestSpoolBesideAFullDisk(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var s Spool
	block := bytes.Repeat([]byte("x"), spooled)
	for i := range 3 {
		if i == 2 { // as on a full disk, nothing can be written any more
			name := filepath.Join(t.TempDir(), "read-only")
			if err := os.WriteFile(name, slices.Concat(block, block), 0o600); err != nil {
				t.Fatal(err)
			}
			s.file.Close()
			var err error
			if s.file, err = os.Open(name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	if err := s.Tell(&got); err != nil || s.file != nil || got.Len() != 3*len(block) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
}
