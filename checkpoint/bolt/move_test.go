package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"leadferry/checkpoint"
)

// From the first moment on in which a file is there that is to be filled from another checkpoint, no run begins on it as if
// it were new, and the same copy makes room for itself.
func TestAFileThatIsToBeFilledRefusesRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	h := emptyHeader()
	h.Filling = "elsewhere"
	if made, err := create(path, h); !made || err != nil {
		t.Fatal(made, err)
	}
	if d, err := Open(path, target(), Options{}); !errors.Is(err, checkpoint.ErrLocked) {
		d.Close()
		t.Errorf("opened: %v", err)
	}
	if err := makeRoom(path, "another", Options{}); err == nil {
		t.Error("a copy of another checkpoint has taken its place")
	}
	if err := makeRoom(path, "elsewhere", Options{}); err != nil {
		t.Error(err)
	}
}

// A damaged file that was copied is repaired only once its copy is gone, or was given up.
func TestRepairOfAFileThatWasCopied(t *testing.T) {
	path, to := newPath(t), newPath(t)
	d := opened(t, path, Options{})
	if err := errors.Join(d.SetMoved(to), d.Close(), os.WriteFile(to, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(path, newPath(t), target(), nil, true, Options{}); !errors.Is(err, checkpoint.ErrGone) {
		t.Errorf("beside its copy: %v", err)
	}
	os.Remove(to)
	if d, err := Open(killed(t, path), target(), Options{Moved: true}); err != nil {
		t.Fatal(err)
	} else if err := errors.Join(renewed(t, d, "some"), d.Close(), os.WriteFile(to, nil, 0o600)); err != nil {
		t.Fatal(err)
	} else if _, err := Repair(d.path, newPath(t), target(), nil, true, Options{}); err != nil {
		t.Errorf("taken again: %v", err)
	}
	os.Remove(to)
	if _, err := Repair(path, newPath(t), target(), nil, true, Options{}); err != nil {
		t.Errorf("without it: %v", err)
	}
}
