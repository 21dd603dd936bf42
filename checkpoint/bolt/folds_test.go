package bolt

import (
	"context"
	"fmt"
	"testing"

	"leadferry/checkpoint"
)

// The index goes when a key does: withdrawn, forgotten, or never sent. faults 131
func TestFoldsGoWithTheirKeys(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	folds := func() (n int) {
		if err := d.alone(func(w *writing) error { n = w.folds.Inspect().KeyN; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := range 5 {
		if err := claim(d, intentOf(fmt.Sprintf("00%d", i), i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := folds(); n != 5 {
		t.Errorf("%d records, want 5", n)
	}
	if err := withdraw(d, "000"); err != nil {
		t.Fatal(err)
	}
	if _, err := settle(d, createdEntry("001", "lead-1", 1)); err != nil {
		t.Fatal(err)
	}
	if n := folds(); n != 4 {
		t.Errorf("%d records, want 4", n)
	}
	for _, unblock := range []bool{false, true} {
		if _, err := checkpoint.Forget(context.Background(), d, []string{"001", "002", "003", "004", "7"}, unblock); err != nil {
			t.Fatal(err)
		}
		if n, want := folds(), map[bool]int{false: 4, true: 0}[unblock]; n != want { // the hashes of those that were forgotten
			t.Errorf("unblock %v: %d records, want %d", unblock, n, want)
		}
	}
}
