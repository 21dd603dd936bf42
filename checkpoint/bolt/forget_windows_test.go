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

// ownPath is where a checkpoint may be made; wine does not know how T.TempDir removes a folder.
func ownPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bolt")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "c.db")
}

// What is forgotten is gone from the file also where an open file cannot be replaced. Who waits for it meanwhile
// opens the new one, and a refused opening leaves alone what belongs to the one that holds it.
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

// While the file is closed to be replaced, nobody takes the old one for it.
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

// What a virus scanner keeps to itself for a moment is opened once it lets go.
func TestAFileThatAnotherProgramKeepsIsWaitedFor(t *testing.T) {
	path := ownPath(t)
	withPerson(t, path).Close()
	scanner, err := windows.CreateFile(windows.StringToUTF16Ptr(path), windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, 0, 0)
	must.Do(t, err)
	time.AfterFunc(200*time.Millisecond, func() { windows.CloseHandle(scanner) })
	d := open(t, path, Options{})
	must.Do(t, d.Close())
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
