package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// left are the files in the folder of a checkpoint.
func left(t *testing.T, path string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// faults 136
func TestWhatWasRefusedLeavesNoNewCheckpoint(t *testing.T) {
	ended := RunInfo{ID: "r", Command: "import", Started: time.Now(), Finished: time.Now()}
	for name, use := range map[string]func(d *DB) error{
		"refused":        func(d *DB) error { return d.AddRun(ended) },
		"claimed":        func(d *DB) error { return errors.Join(claim(d, intentOf("k", 1)), withdraw(d, "k")) },
		"refused by 422": func(d *DB) error { _, err := settle(d, Entry{Key: "k", State: Rejected, Code: 422}); return err },
		"forgotten":      func(d *DB) error { _, err := d.Forget([]string{"k"}, false); return err },
	} {
		path := newPath(t)
		d, err := Open(path, target(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := use(d); err != nil {
			t.Fatal(err)
		}
		gone, err := d.Drop()
		if err != nil || gone != (name == "refused") || gone != (len(left(t, path)) == 0) {
			t.Errorf("%s: gone %v, %v, %q", name, gone, err, left(t, path))
		}
	}
	path := newPath(t)
	d, err := Open(path, target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.AddRun(ended), d.Close()); err != nil {
		t.Fatal(err)
	}
	d = opened(t, path, Options{Require: true, Used: true})
	if gone, err := d.Drop(); gone || err != nil || d.New() {
		t.Errorf("a checkpoint that a run has used: gone %v, %v", gone, err)
	}
}

// One that is killed before it sends anything leaves a file that is no memory of leads.
func TestWhatWasKilledBeforeItBeganIsNoCheckpoint(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	if err := d.AddRun(RunInfo{ID: "r", Command: "import", Started: time.Now(), Outcome: "unfinished"}); err != nil {
		t.Fatal(err)
	}
	killed := crash(t, path)
	if _, err := Open(killed, target(), Options{Require: true, Used: true}); !errors.Is(err, ErrMissing) {
		t.Errorf("satisfied by it: %v", err)
	}
	halfGone := crash(t, path)
	if err := os.Remove(halfGone + ".seq"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(halfGone, target(), Options{Require: true, Used: true}); !errors.Is(err, ErrMissing) {
		t.Errorf("satisfied by one that was killed while it removed it: %v", err)
	}
	again, err := Open(killed, target(), Options{})
	if err != nil || !again.New() {
		t.Fatalf("new: %v", err)
	}
	if gone, err := again.Drop(); !gone || err != nil || len(left(t, killed)) != 0 {
		t.Errorf("gone %v, %v, %q", gone, err, left(t, killed))
	}
}

// What may have known leads is no new one, however empty it is.
func TestAnEmptyOneThatIsIncompleteIsNotDropped(t *testing.T) {
	path := newPath(t)
	if err := fill(path, newHeader(target(), time.Now()), lacking{some: true}); err != nil {
		t.Fatal(err)
	}
	d := opened(t, path, Options{Require: true, Used: true})
	if gone, err := d.Drop(); gone || err != nil {
		t.Errorf("gone %v, %v", gone, err)
	}
}

// A refusal in opening leaves nothing that it made itself.
func TestWhoWaitsForADroppedCheckpointMakesANewOne(t *testing.T) {
	path := newPath(t)
	d, err := Open(path, target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		second, err := Open(path, target(), Options{Wait: time.Minute})
		if err == nil {
			err = errors.Join(claim(second, intentOf("k", 1)), second.Close())
		}
		result <- err
	}()
	if _, err := d.Drop(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if d := opened(t, path, Options{Require: true}); d.InDoubt() != 1 {
		t.Errorf("%d in doubt", d.InDoubt())
	}
}

// A file system without links, or without renames that replace nothing, holds one too.
func TestACheckpointIsPutInPlaceWithoutLinks(t *testing.T) {
	for name, put := range map[string]func(from, to string) error{"rename": renameNew, "exclusive": replaceNew} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		if err := os.WriteFile(from, []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := put(from, to); errors.Is(err, errors.ErrUnsupported) {
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if b, err := os.ReadFile(to); string(b) != "new" || err != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		if err := os.WriteFile(from, []byte("second"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := put(from, to); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s replaced what was there: %v", name, err)
		}
	}
}
