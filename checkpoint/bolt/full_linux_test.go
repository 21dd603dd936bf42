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
)

// smallDisk mounts a file system of so many KiB; what it returns makes it larger.
func smallDisk(t *testing.T, kib int) (dir string, enlarge func()) {
	t.Helper()
	dir = t.TempDir()
	size := func(kib int) string { return fmt.Sprintf("size=%dk", kib) }
	if err := syscall.Mount("none", dir, "tmpfs", 0, size(kib)); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir, func() {
		if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, size(64<<10)); err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that fills up ends everything with the system's own error; when there is room
// again, all that was reported is there. faults 13, 15, m22
func TestFullDiskLosesNothing(t *testing.T) {
	dir, enlarge := smallDisk(t, 600)
	path := filepath.Join(dir, "c.db")
	d, err := Open(path, target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := durable(t, path, said); err != nil {
		t.Error(err)
	}
	opened(t, path, Options{}).Close()
}

// Without room for a second file what was forgotten is forgotten, that its bytes are
// still there is said, and the next writer that has room removes them. fault 120
func TestForgettingOnAFullDiskIsFinishedLater(t *testing.T) {
	dir, enlarge := smallDisk(t, 2048)
	path := filepath.Join(dir, "c.db")
	d := withPerson(t, path)
	if _, err := checkpoint.Forget(context.Background(), d, []string{person}, false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := d.Close(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "hint: ") {
		t.Errorf("close: %v", err)
	}
	again, err := Open(path, target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := lookup(t, again, person); got.State != checkpoint.Forgotten || len(again.Info().Warnings) != 1 {
		t.Errorf("%+v, %q", got, again.Info().Warnings)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	enlarge()
	opened(t, path, Options{}).Close()
	if n := traces(t, path); n != 0 {
		t.Errorf("%d traces left", n)
	}
}
