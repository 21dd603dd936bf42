package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// filesBeside returns the names of the files in the folder of a checkpoint.
func filesBeside(t *testing.T, path string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	must.Do(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// faults 136
func TestARefusedRunLeavesNoNewCheckpoint(t *testing.T) {
	ended := checkpoint.RunInfo{ID: "r", Command: "import", Started: time.Now(), Finished: time.Now(), Outcome: "complete"}
	for name, use := range map[string]func(d *Store) error{
		"refused": func(d *Store) error { return checkpoint.PutRun(context.Background(), d, ended) },
		"claimed": func(d *Store) error { return errors.Join(claim(d, intentOf("k", 1)), withdraw(d, "k")) },
		"refused by 422": func(d *Store) error {
			_, err := settle(d, checkpoint.Entry{Key: "k", State: checkpoint.Rejected, Code: 422})
			return err
		},
		"forgotten": func(d *Store) error {
			_, err := checkpoint.Forget(context.Background(), d, []string{"k"}, false)
			return err
		},
	} {
		path := newPath(t)
		d := open(t, path, Options{})
		must.Do(t, use(d))
		gone, err := d.Drop()
		if err != nil || gone != (name == "refused") || gone != (len(filesBeside(t, path)) == 0) {
			t.Errorf("%s: gone %v, %v, %q", name, gone, err, filesBeside(t, path))
		}
	}
	path := newPath(t)
	d := open(t, path, Options{})
	must.Do(t, errors.Join(checkpoint.PutRun(context.Background(), d, ended), d.Close()))
	d = opened(t, path, Options{Require: true, Used: true})
	if gone, err := d.Drop(); gone || err != nil || d.Info().New {
		t.Errorf("a checkpoint that a run has used: gone %v, %v", gone, err)
	}
}

// A run that is killed before its first claim leaves a file, but the file still counts as new.
func TestAFileWithoutClaimsOfAKilledRunCountsAsNew(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	must.Do(t, checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "r", Command: "import", Started: time.Now(), Outcome: "unfinished"}))
	dead := killed(t, path)
	if _, err := Open(dead, target(), Options{Require: true, Used: true}); !errors.Is(err, checkpoint.ErrMissing) {
		t.Errorf("it counts as used: %v", err)
	}
	again, err := Open(dead, target(), Options{})
	if err != nil || !again.Info().New {
		t.Fatalf("new: %v", err)
	}
	if gone, err := again.Drop(); gone || err != nil || len(filesBeside(t, dead)) == 0 { // there may be a witness
		t.Errorf("gone %v, %v, %q", gone, err, filesBeside(t, dead))
	}
}

// An incomplete checkpoint may have known leads, so it does not count as new, even if it is empty.
func TestAnEmptyIncompleteCheckpointIsNotDropped(t *testing.T) {
	path := newPath(t)
	h := emptyHeader()
	h.Lacks = "some"
	must.Do(t, writeEmpty(path, h))
	d := opened(t, path, Options{Require: true, Used: true})
	if gone, err := d.Drop(); gone || err != nil {
		t.Errorf("gone %v, %v", gone, err)
	}
}

// A file system without links holds a checkpoint, too.
func TestACheckpointIsPutInPlaceWithoutLinks(t *testing.T) {
	from, to := newPath(t), newPath(t)
	content("new")(t, from)
	if err := replaceNew(from, to); err != nil || string(read(t, to)) != "new" {
		t.Errorf("%v, %q", err, read(t, to))
	}
	content("second")(t, from)
	if err := replaceNew(from, to); !errors.Is(err, os.ErrExist) || string(read(t, to)) != "new" {
		t.Errorf("replaced what was there: %v", err)
	}
}

// After an error nobody knows what the file holds, so Drop keeps it and reports that.
func TestABrokenFileIsNotDropped(t *testing.T) {
	path := newPath(t)
	d := open(t, path, Options{})
	_ = d.fail(errors.New("disk full"))
	if gone, err := d.Drop(); gone || err == nil || len(filesBeside(t, path)) == 0 {
		t.Errorf("gone %v, %v, %q", gone, err, filesBeside(t, path))
	}
}

// A run that waits for a checkpoint gets it once it is closed. If it is dropped, the run makes a new one.
func TestAWaitingRunGetsTheCheckpointOnceItIsFree(t *testing.T) {
	for _, end := range []func(*Store) error{(*Store).Close, func(d *Store) error { _, err := d.Drop(); return err }} {
		path := newPath(t)
		d := open(t, path, Options{})
		result := make(chan error, 1)
		go func() {
			second, err := Open(path, target(), Options{Wait: time.Minute})
			if err == nil {
				err = errors.Join(claim(second, intentOf("k", 1)), second.Close())
			}
			result <- err
		}()
		must.Do(t, errors.Join(end(d), <-result))
		if d := opened(t, path, Options{Require: true}); d.Info().InDoubt != 1 {
			t.Errorf("%d in doubt", d.Info().InDoubt)
		}
	}
}

// No run begins on a file that a copy will fill, as if it were new. Only the same copy may remove it.
func TestNoRunBeginsOnAFileThatACopyWillFill(t *testing.T) {
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
	if err := makeRoom(path, "another", Options{}); err != nil || len(filesBeside(t, path)) != 1 {
		t.Error("a copy of another checkpoint removed it", err)
	}
	if err := makeRoom(path, "elsewhere", Options{}); err != nil || len(filesBeside(t, path)) != 0 {
		t.Error(err)
	}
}

// If a checkpoint in use is removed or replaced, everything stops, because further changes would be lost. fault 128
func TestRemovedWhileInUse(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed":               os.Remove,
		"moved":                 func(path string) error { return os.Rename(path, path+".old") },
		"its folder is removed": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"another in its place": func(path string) error {
			if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
	} {
		for _, last := range []bool{false, true} { // whether anything is written after the harm
			path := filepath.Join(t.TempDir(), "state", "c.db")
			must.Do(t, os.Mkdir(filepath.Dir(path), 0o700))
			d := open(t, path, Options{})
			together(t, d, checkpoint.Settle, createdEntry("a", "lead-a", 1))
			must.Do(t, harm(path))
			if !last {
				if err := claim(d, intentOf("b", 2)); !errors.Is(err, checkpoint.ErrRemoved) { // or it is sent
					t.Errorf("%s: claimed with %v", name, err)
				}
				if _, err := settle(d, createdEntry("c", "lead-c", 3)); !errors.Is(err, checkpoint.ErrRemoved) {
					t.Errorf("%s: went on with %v", name, err)
				}
				if d.looked.Store(0); !errors.Is(d.Guard(t.Context(), "a"), checkpoint.ErrRemoved) { // it waited before its send
					t.Errorf("%s: a claim may be sent", name)
				}
			}
			if err := d.Close(); !errors.Is(err, checkpoint.ErrRemoved) {
				t.Errorf("%s: closed with %v", name, err)
			}
		}
	}
}
