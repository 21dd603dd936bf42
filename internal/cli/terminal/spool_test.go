package terminal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"leadferry/internal/testsupport/must"
)

// What is told is what was written: in a file, without a place for one, and when the disk is full. No file stays.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	for name, temp := range map[string]string{"a file": dir, "no file": filepath.Join(dir, "none"), "a full disk": dir} {
		t.Setenv("TMPDIR", temp)
		t.Setenv("TMP", temp) // as it is called on Windows
		var s Spool
		var want bytes.Buffer
		for i := range 9000 { // more than any buffer on the way holds
			if name == "a full disk" && i == 8000 && s.file != nil { // nothing can be written any more
				full := filepath.Join(t.TempDir(), "read-only")
				must.Do(t, os.WriteFile(full, want.Bytes(), 0o600))
				s.file.Close()
				var err error
				if s.file, err = os.Open(full); err != nil {
					t.Fatal(err)
				}
			}
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
