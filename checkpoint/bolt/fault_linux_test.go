package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// swapFile makes bbolt write to another file until the returned function is called.
func swapFile(t *testing.T, d *Store, name string) (back func()) {
	t.Helper()
	fd := int(d.file.Fd())
	saved, err := syscall.Dup(fd)
	must.Do(t, err)
	other, err := os.OpenFile(name, os.O_RDWR, 0)
	must.Do(t, err)
	defer other.Close()
	must.Do(t, syscall.Dup3(int(other.Fd()), fd, 0))
	return func() {
		must.Do(t, errors.Join(syscall.Dup3(saved, fd, 0), syscall.Close(saved)))
	}
}

// faults 13, m21, m22: after a failed commit nothing goes on, even if the disk works again.
func TestFailedCommitStopsEverything(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 20)
	book := attested(t, d).Witnesses
	back := swapFile(t, d, "/dev/full")
	first := claim(d, intentOf("lost", 1))
	if !errors.Is(first, syscall.ENOSPC) {
		t.Fatalf("commit on a full disk: %v", first)
	}
	back()
	_, settled := settle(d, createdEntry("a", "lead-a", 1))
	_, runs := checkpoint.Runs(context.Background(), d)
	for what, err := range map[string]error{
		"claim": claim(d, intentOf("b", 1)), "settle": settled, "withdraw": withdraw(d, "doubt-0"), "runs": runs,
		"look-up": lookupAll(d, []string{"key-00001"}, make([]checkpoint.Entry, 1)), "each": checkpoint.Each(context.Background(), d, checkpoint.Filter{State: checkpoint.Unknown}, func(checkpoint.Entry) error { return nil }),
		"resolve": resolve(d, checkpoint.Decision{Key: "doubt-0"}), "close": d.Close(),
	} {
		if !errors.Is(err, first) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !book.All()[0].Open {
		t.Error("the witness says that the run ended in order")
	}
	d = opened(t, path, Options{})
	if d.Info().Leads != 20 || d.Info().InDoubt != 3 || lookup(t, d, "lost").State != checkpoint.Unknown {
		t.Errorf("%d leads, %d in doubt after the fault", d.Info().Leads, d.Info().InDoubt)
	}
}

// fault 20, m19: a file that is cut while it is in use is an error, not a crash.
func TestFileCutWhileInUseIsAnError(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 400)
	copied := killed(t, path)
	for name, use := range map[string]func(*Store) error{
		"look-up": func(d *Store) error { return lookupAll(d, []string{"key-00399"}, make([]checkpoint.Entry, 1)) },
		"claim":   func(d *Store) error { return claim(d, intentOf("new", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Open(killed(t, copied), target(), Options{})
			must.Do(t, err)
			must.Do(t, os.Truncate(d.path, 2*int64(os.Getpagesize())))
			if err := use(d); !errors.Is(err, checkpoint.ErrDamaged) {
				t.Errorf("got %v", err)
			}
			if err := d.Close(); !errors.Is(err, checkpoint.ErrDamaged) {
				t.Errorf("close: %v", err)
			}
		})
	}
	if d.Info().Leads != 400 {
		t.Error("the original was touched")
	}
}

// smallDisk mounts a file system of this many KiB. enlarge makes it larger.
func smallDisk(t *testing.T, kib int) (dir string, enlarge func()) {
	t.Helper()
	dir = t.TempDir()
	size := func(kib int) string { return fmt.Sprintf("size=%dk", kib) }
	if err := syscall.Mount("none", dir, "tmpfs", 0, size(kib)); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		must.Do(t, syscall.Unmount(dir, 0))
	})
	return dir, func() {
		must.Do(t, syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, size(64<<10)))
	}
}

// A full disk ends everything with the system's error. When there is room again, everything that was reported is there.
// faults 13, 15, m22
func TestFullDiskLosesNothing(t *testing.T) {
	dir, enlarge := smallDisk(t, 600)
	path := filepath.Join(dir, "c.db")
	d := open(t, path, Options{})
	said, failed := "", 0
	for i := range 400 {
		key := fmt.Sprint("a", i)
		e := createdEntry(key, "lead-"+key, i)
		e.Location = strings.Repeat("a long name of a place ", 40)
		switch _, err := settle(d, e); {
		case err == nil && failed > 0:
			t.Fatal("went on after an error")
		case err == nil:
			said += "settled " + key + "\n"
		case failed == 0 && !errors.Is(err, syscall.ENOSPC):
			t.Fatal(err)
		default:
			failed++
		}
	}
	if failed == 0 || said == "" {
		t.Fatalf("%d failed: the disk is of the wrong size for this test", failed)
	}
	if err := d.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
	if err := durable(t, path, said); err != nil {
		t.Errorf("while the disk is full: %v", err)
	}
	enlarge()
	must.Do(t, durable(t, path, said))
	opened(t, path, Options{}).Close()
}

// Without room for a second file a key is still forgotten. A warning says that its bytes are still there, and the next
// writer with enough room removes them. fault 120
func TestForgettingOnAFullDiskIsFinishedLater(t *testing.T) {
	dir, enlarge := smallDisk(t, 2048)
	path := filepath.Join(dir, "c.db")
	d := withPerson(t, path)
	forget(t, d, person)
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	var broken *checkpoint.StoreError
	if err := d.Close(); !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &broken) || broken.Hint == "" {
		t.Errorf("close: %v", err)
	}
	again := open(t, path, Options{})
	if got := lookup(t, again, person); got.State != checkpoint.Forgotten || len(again.Info().Warnings) != 1 {
		t.Errorf("%+v, %q", got, again.Info().Warnings)
	}
	must.Do(t, again.Close())
	enlarge()
	opened(t, path, Options{}).Close()
	if n := traces(t, path); n != 0 {
		t.Errorf("%d traces left", n)
	}
}
