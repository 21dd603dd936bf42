package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"leadferry/internal/testsupport/must"
)

// folder makes an empty folder and removes it if it can: under wine, T.TempDir fails to remove its own.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "disk")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func written(t *testing.T, path, text string) string {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// While one opening of a file has its lock, others get none, but can read the file. Shared locks go together.
func TestLockExcludesOtherOpenings(t *testing.T) {
	path := written(t, filepath.Join(folder(t), "f"), "text")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must.Do(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	takes := func(f *os.File, shared, want bool) {
		t.Helper()
		if held, err := TryLock(f, shared); held != want || err != nil {
			t.Errorf("held %v, %v", held, err)
		}
	}
	first, second := open(), open()
	takes(first, false, true)
	takes(second, false, false)
	takes(second, true, false)
	if text, err := os.ReadFile(path); string(text) != "text" {
		t.Error(err)
	}
	must.Do(t, Unlock(first))
	takes(first, true, true)
	takes(second, true, true)
	takes(open(), false, false)
}

// Patiently tries a rename again, until the reader has closed the file.
func TestAFileIsReplacedOnceItIsClosed(t *testing.T) {
	dir := folder(t)
	from, to := filepath.Join(dir, "new"), written(t, filepath.Join(dir, "f"), "old")
	reader, err := os.Open(to)
	must.Do(t, err)
	defer reader.Close()
	tries := 0
	err = Patiently(0, func() error {
		if tries++; tries == 1 {
			written(t, from, "new")
		} else {
			reader.Close()
		}
		return os.Rename(from, to)
	})
	if text, _ := os.ReadFile(to); err != nil || string(text) != "new" || tries != 2 {
		t.Errorf("%q after %d tries, %v", text, tries, err)
	}
}

func TestErrorForAnOpenFileSaysToCloseIt(t *testing.T) {
	dir := folder(t)
	from, to := written(t, filepath.Join(dir, "new"), "new"), written(t, filepath.Join(dir, "f"), "old")
	reader, err := os.Open(to)
	must.Do(t, err)
	for _, err := range []error{Rename(from, to), Replaceable(to)} {
		if err == nil || !strings.Contains(err.Error(), "close it in Excel") {
			t.Error(err)
		}
	}
	must.Do(t, errors.Join(reader.Close(), Replaceable(to), Replaceable(to+"-none")))
	if text, _ := os.ReadFile(to); string(text) != "old" {
		t.Errorf("%q", text)
	}
	if Held(&os.PathError{Err: windows.ERROR_SHARING_VIOLATION}) == "" || Held(os.ErrNotExist) != "" {
		t.Error("Held does not tell an open file from one that is not there")
	}
}

func TestReserved(t *testing.T) {
	for path, want := range map[string]bool{
		`con.csv`: true, `NUL`: true, `C:\state\aux.db`: true, `a.db:b`: true, `\\.\NUL`: true, `..`: true,
		`c.db`: false, `C:\state\c.db`: false, `C:c.db`: false, `console.csv`: false,
	} {
		if Reserved(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

func TestFoldersOnOtherMachinesAreRecognized(t *testing.T) {
	for path, want := range map[string]bool{
		`\\server\share\state`: true, `//server/share`: true, `\\?\UNC\server\share`: true, `\\wsl.localhost\Debian\home`: true,
		`C:\state`: false, `\\?\C:\state`: false, `\\.\C:\state`: false, `state`: false, `\state`: false, ``: false,
	} {
		if shared(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if number, err := FileSystem(folder(t)); number != 0 || err != nil {
		t.Error(number, err)
	}
	if number, err := FileSystem(`\\server\share\state`); number != NetworkDrive || err != nil {
		t.Error(number, err)
	}
}
