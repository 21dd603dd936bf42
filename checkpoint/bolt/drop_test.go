package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"leadferry/checkpoint"
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
	ended := checkpoint.RunInfo{ID: "r", Command: "import", Started: time.Now(), Finished: time.Now()}
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
	if err := errors.Join(checkpoint.PutRun(context.Background(), d, ended), d.Close()); err != nil {
		t.Fatal(err)
	}
	d = opened(t, path, Options{Require: true, Used: true})
	if gone, err := d.Drop(); gone || err != nil || d.Info().New {
		t.Errorf("a checkpoint that a run has used: gone %v, %v", gone, err)
	}
}

// One that is killed before it sends anything leaves a file that is no memory of leads.
func TestWhatWasKilledBeforeItBeganIsNoCheckpoint(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	if err := checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "r", Command: "import", Started: time.Now(), Outcome: "unfinished"}); err != nil {
		t.Fatal(err)
	}
	dead := killed(t, path)
	if _, err := Open(dead, target(), Options{Require: true, Used: true}); !errors.Is(err, checkpoint.ErrMissing) {
		t.Errorf("satisfied by it: %v", err)
	}
	again, err := Open(dead, target(), Options{})
	if err != nil || !again.Info().New {
		t.Fatalf("new: %v", err)
	}
	if gone, err := again.Drop(); !gone || err != nil || len(left(t, dead)) != 0 {
		t.Errorf("gone %v, %v, %q", gone, err, left(t, dead))
	}
}

// What may have known leads is no new one, however empty it is.
func TestAnEmptyOneThatIsIncompleteIsNotDropped(t *testing.T) {
	path := newPath(t)
	h := emptyHeader()
	h.Lacks = "some"
	if err := writeEmpty(path, h); err != nil {
		t.Fatal(err)
	}
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

// Who waits for a checkpoint gets its turn once it is closed, and makes a new one once it is dropped.
func TestWhoWaitsGetsItsTurn(t *testing.T) {
	for _, end := range []func(*Store) error{(*Store).Close, func(d *Store) error { _, err := d.Drop(); return err }} {
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
		if err := errors.Join(end(d), <-result); err != nil {
			t.Fatal(err)
		}
		if d := opened(t, path, Options{Require: true}); d.Info().InDoubt != 1 {
			t.Errorf("%d in doubt", d.Info().InDoubt)
		}
	}
}
