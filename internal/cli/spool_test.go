package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// What is told is what was written, in memory and beyond, with and without a place for a
// file; no file stays.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	for name, temp := range map[string]string{"a file": dir, "no file": filepath.Join(dir, "none")} {
		t.Setenv("TMPDIR", temp)
		var s spool
		var want bytes.Buffer
		for i := 0; want.Len() < mostSpooled+1<<20; i++ {
			line := fmt.Sprintf("%d %0512d\n", i, i)
			want.WriteString(line)
			if _, err := s.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if (s.file != nil) != (temp == dir) {
			t.Errorf("%s: %v", name, s.file)
		}
		var got bytes.Buffer
		if err := s.tell(&got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s: %d of %d bytes, %v", name, got.Len(), want.Len(), err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}
