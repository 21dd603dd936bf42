package bolt

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"leadferry/internal/disk"
	"leadferry/internal/testsupport/must"
)

// ownPath returns a path for a checkpoint. It does not use T.TempDir, whose removal of folders fails under wine.
func ownPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bolt")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "c.db")
}

// Windows cannot replace an open file, yet Close removes forgotten data from it. A waiting run opens the new file. A
// refused opening leaves the holder's files alone.
func TestAFileIsCompactedOnceItIsClosed(t *testing.T) {
	path := ownPath(t)
	d := withPerson(t, path)
	forget(t, d, person)
	if _, err := Open(path, target(), Options{}); err == nil {
		t.Fatal("opened twice")
	}
	next := make(chan error)
	go func() {
		waiting, err := Open(path, target(), Options{Wait: time.Minute})
		if err == nil {
			err = waiting.Close()
		}
		next <- err
	}()
	must.Do(t, d.Close())
	must.Do(t, <-next)
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(person)) {
		t.Error("a trace is left", err)
	}
}

// While the file is closed to be replaced, nobody opens the old one.
func TestNobodyOpensAFileThatIsBeingReplaced(t *testing.T) {
	path := ownPath(t)
	withPerson(t, path).Close()
	lock, err := os.OpenFile(path+".replacing", os.O_RDWR|os.O_CREATE, 0o600)
	must.Do(t, err)
	if held, err := disk.TryLock(lock, false); !held {
		t.Fatal(err)
	}
	opened := make(chan error)
	go func() {
		d, err := Open(path, target(), Options{})
		if err == nil {
			err = d.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Error("opened the old one", err)
	case <-time.After(300 * time.Millisecond):
	}
	lock.Close()
	must.Do(t, <-opened)
}

// If a virus scanner holds the file for a moment, opening waits until it lets go.
func TestWaitsForAFileThatAnotherProgramHolds(t *testing.T) {
	path := ownPath(t)
	withPerson(t, path).Close()
	scanner, err := windows.CreateFile(windows.StringToUTF16Ptr(path), windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, 0, 0)
	must.Do(t, err)
	time.AfterFunc(200*time.Millisecond, func() { windows.CloseHandle(scanner) })
	d := open(t, path, Options{})
	must.Do(t, d.Close())
}

// Drop removes a new file after a refusal.
func TestDropRemovesANewFile(t *testing.T) {
	path := ownPath(t)
	d := open(t, path, Options{})
	if gone, err := d.Drop(); !gone || err != nil {
		t.Error(gone, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
	if d = open(t, path, Options{}); !d.Info().New {
		t.Error("the checkpoint does not count as new")
	}
	d.Close()
}
