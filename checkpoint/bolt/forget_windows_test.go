package bolt

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"leadferry/internal/testsupport/must"
)

// ownPath is where a checkpoint may be made; wine does not know how T.TempDir removes a folder.
func ownPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bolt")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "c.db")
}

// What is forgotten is gone from the file also where an open file cannot be replaced, and if another program has it open
// meanwhile, once the next writer closes it.
func TestAFileIsCompactedOnceItIsClosed(t *testing.T) {
	path := ownPath(t)
	d := withPerson(t, path)
	forget(t, d, person)
	if _, err := Open(path, target(), Options{}); err == nil {
		t.Fatal("opened twice")
	}
	other, err := os.Open(path)
	must.Do(t, err)
	if err := d.Close(); err == nil {
		t.Error("replaced while it was open")
	}
	must.Do(t, other.Close())
	if err := open(t, path, Options{}).Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(person)) {
		t.Error("a trace is left", err)
	}
}

// What a virus scanner keeps to itself for a moment is opened once it lets go.
func TestAFileThatAnotherProgramKeepsIsWaitedFor(t *testing.T) {
	path := ownPath(t)
	withPerson(t, path).Close()
	scanner, err := windows.CreateFile(windows.StringToUTF16Ptr(path), windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, 0, 0)
	must.Do(t, err)
	time.AfterFunc(200*time.Millisecond, func() { windows.CloseHandle(scanner) })
	d := open(t, path, Options{})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A new file that was refused its use goes.
func TestAFileIsDroppedOnceItIsClosed(t *testing.T) {
	path := ownPath(t)
	d := open(t, path, Options{})
	if gone, err := d.Drop(); !gone || err != nil {
		t.Error(gone, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
	if d = open(t, path, Options{}); !d.Info().New {
		t.Error("not as new")
	}
	d.Close()
}
