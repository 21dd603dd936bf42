package terminal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// FlushTo returns what was written, also if no temporary file can be made. No file stays.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	for name, temp := range map[string]string{"a file": dir, "no file": filepath.Join(dir, "none")} {
		t.Setenv("TMPDIR", temp)
		t.Setenv("TMP", temp) // as it is called on Windows
		var s Spool
		var want bytes.Buffer
		for i := range 9000 { // more than any buffer on the way holds
			line := fmt.Sprintf("%d %0512d\n", i, i)
			want.WriteString(line)
			if _, err := s.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		var got bytes.Buffer
		if err := s.FlushTo(&got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s: %d of %d bytes, %v", name, got.Len(), want.Len(), err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}
