package bolt

import (
	"bytes"
	"context"
	"fmt"
	"os"
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

// Of who was forgotten, the index keeps no text, whatever stood in it. faults 131
func TestForgettingTakesTheFoldAlong(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	for i, key := range []string{"Ann@X.example", "Bob@X.example", "other"} {
		if _, err := settle(d, createdEntry(key, fmt.Sprint("lead-", i), i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := checkpoint.Forget(context.Background(), d, []string{"Ann@X.example"}, false); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(d.path)
	if err != nil || bytes.Contains(bytes.ToLower(b), []byte("ann@x.example")) || !bytes.Contains(b, []byte("Bob@X.example")) {
		t.Errorf("%v, or the file holds the wrong folds", err)
	}
	d = opened(t, d.path, Options{})
	for key, want := range map[string]checkpoint.State{"ann@x.example": checkpoint.Forgotten, "ANN@x.example": checkpoint.Forgotten, "bob@X.example": checkpoint.Created, "Other": checkpoint.Unknown} {
		like := &checkpoint.Likeness{}
		if err := d.Find(context.Background(), []checkpoint.Query{{Key: key, Alike: like}}, make([]checkpoint.Entry, 1), make([]checkpoint.Match, 1)); err != nil || like.State != want {
			t.Errorf("%s looks like one that is %v, %v; want %v", key, like.State, err, want)
		}
	}
}
