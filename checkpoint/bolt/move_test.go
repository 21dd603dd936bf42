package bolt

import (
	"errors"
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
