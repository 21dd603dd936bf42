package inputs

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"leadferry/internal/testsupport/must"
)

func TestPatternsIgnoreCaseOnWindowsOnly(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.csv", "B.CSV", "Müller.Csv", "c.txt"} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	want := 1
	if runtime.GOOS == "windows" {
		want = 3
	}
	found, err := matches(filepath.Join(folder, "*.csv"))
	must.Do(t, err)
	must.Same(t, want, len(found), "files", found)
	found, err = matches(filepath.Join(folder, "[ab].csv"))
	must.Do(t, err)
	must.Same(t, 1, len(found), "files of a class", found)
}
