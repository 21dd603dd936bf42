package bolt

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"leadferry/checkpoint"
)

// swap puts another file under the checkpoint's descriptor until the returned
// function is called: bbolt's writes go there.
func swap(t *testing.T, d *Store, name string) (back func()) {
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
	ended := endsOf(d)
	back := swap(t, d, "/dev/full")
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
	if *ended != 0 {
		t.Error("said to have ended in order")
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
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(d.path, 2*int64(os.Getpagesize())); err != nil {
				t.Fatal(err)
			}
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
