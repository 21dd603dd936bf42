package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"leadferry/internal/testsupport/must"
)

// The error comes before anything is sent, not only when the file has to be replaced.
func TestAResultsFileThatExcelHasOpenIsRefused(t *testing.T) {
	dir, err := os.MkdirTemp("", "report") // wine cannot remove a folder as T.TempDir does
	must.Do(t, err)
	defer os.RemoveAll(dir)
	folder, err := os.OpenRoot(dir)
	must.Do(t, err)
	defer folder.Close()
	path := filepath.Join(dir, "results.csv")
	must.Do(t, os.WriteFile(path, []byte("old"), 0o600))
	excel, err := os.Open(path)
	must.Do(t, err)
	if _, err := create(folder, path); err == nil || !strings.Contains(err.Error(), "close it in Excel") {
		t.Error(err)
	}
	must.Do(t, excel.Close())
	alone, err := windows.CreateFile(windows.StringToUTF16Ptr(path), windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, 0, 0)
	must.Do(t, err)
	if _, err := create(folder, path); err == nil || !strings.Contains(err.Error(), "close it in Excel") {
		t.Error(err)
	}
	must.Do(t, windows.CloseHandle(alone))
	out, err := create(folder, path)
	must.Do(t, err)
	_, err = out.Write([]byte("new"))
	must.Do(t, err)
	if excel, err = os.Open(path); err != nil { // again, while the run goes on
		t.Fatal(err)
	}
	if err := out.commit(); err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), "close it in Excel") {
		t.Error(err)
	}
	must.Do(t, excel.Close())
	if text, err := os.ReadFile(path + partialEnd); string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
}
