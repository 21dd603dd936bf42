package checkpoint

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// swap puts another file under the checkpoint's descriptor until the returned
// function is called: bbolt's writes go there.
func swap(t *testing.T, d *DB, name string) (back func()) {
	t.Helper()
	fd := int(d.file.Fd())
	saved, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Dup3(int(other.Fd()), fd, 0); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(syscall.Dup3(saved, fd, 0), syscall.Close(saved)); err != nil {
			t.Fatal(err)
		}
	}
}

// faults 13, m21, m22: after a commit that failed nothing goes on, even though the
// disk works again, and the next opening checks everything.
func TestFailedCommitStopsEverything(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 20)
	back := swap(t, d, "/dev/full")
	first := claim(d, intentOf("lost", 1))
	if !errors.Is(first, syscall.ENOSPC) {
		t.Fatalf("commit on a full disk: %v", first)
	}
	back()
	_, settled := settle(d, createdEntry("a", "lead-a", 1))
	_, runs := d.Runs()
	_, counts := d.Counts()
	for what, err := range map[string]error{
		"claim": claim(d, intentOf("b", 1)), "settle": settled, "withdraw": withdraw(d, "doubt-0"), "runs": runs, "counts": counts,
		"look-up": d.Lookup([]string{"key-00001"}, make([]Entry, 1)), "each": d.Each(Unknown, func(Entry) error { return nil }),
		"resolve": resolve(d, Decision{Key: "doubt-0"}), "close": d.Close(),
	} {
		if !errors.Is(err, first) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if m, ok, err := readMark(path + ".seq"); err != nil || !ok || m.clean {
		t.Errorf("mark %+v: it claims an end in order", m)
	}
	d = opened(t, path, Options{})
	if d.Leads() != 20 || d.InDoubt() != 3 || lookup(t, d, "lost").State != Unknown {
		t.Errorf("%d leads, %d in doubt after the fault", d.Leads(), d.InDoubt())
	}
}

// fault 13: what was committed stays reported as such when only PATH.seq fails.
func TestSequenceFileThatCannotBeWrittenStopsTheNextChange(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 5)
	kept := d.mark
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.mark = full
	if err := claim(d, intentOf("durable", 1)); err != nil {
		t.Errorf("a durable change was reported as lost: %v", err)
	}
	if err := claim(d, intentOf("next", 1)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("next: %v", err)
	}
	if err := errors.Join(kept.Close(), d.Close()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
	if d = opened(t, path, Options{}); lookup(t, d, "durable").State != InDoubt {
		t.Error("the durable change is gone")
	}
}

// fault 20, m19: a file that is cut while it is in use is an error, not a crash.
func TestFileCutWhileInUseIsAnError(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 400)
	copied := crash(t, path)
	for name, use := range map[string]func(*DB) error{
		"look-up": func(d *DB) error { return d.Lookup([]string{"key-00399"}, make([]Entry, 1)) },
		"claim":   func(d *DB) error { return claim(d, intentOf("new", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Open(crash(t, copied), target(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(d.Path(), 2*int64(os.Getpagesize())); err != nil {
				t.Fatal(err)
			}
			if err := use(d); !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v", err)
			}
			if err := d.Close(); !errors.Is(err, ErrDamaged) {
				t.Errorf("close: %v", err)
			}
		})
	}
	if d.Leads() != 400 {
		t.Error("the original was touched")
	}
}
