package bolt

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"leadferry/checkpoint"
)

// No name of a column is kept: where a file's first lead was taken for its header, that is a
// person's. faults 131
func TestNotesHoldNoNames(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	byID := checkpoint.Shape{Columns: []string{"id", "e-mail of Ann", "name"}, Key: "{id}"}
	for _, s := range []checkpoint.Shape{byID, byID, {Columns: []string{"other"}, Key: "{other}", Namespace: "dealers"}, {Key: "{id}"}} {
		claimNoting(t, d, s)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("e-mail of Ann")) {
		t.Errorf("%v, or the file holds the name of a column", err)
	}
	d = opened(t, path, Options{Check: true})
	if n := d.tally.Load().people; n != 2 {
		t.Errorf("%d shapes, want 2", n)
	}
}

// What a damaged note was is not known any more, so that the file is damaged.
func TestDamagedNoteIsSeen(t *testing.T) {
	d, err := Open(newPath(t), target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	claimNoting(t, d, checkpoint.Shape{Columns: []string{"id"}, Key: "{" + strings.Repeat("i", 40) + "}"})
	err = d.alone(func(w *writing) error {
		k, v := w.in(inNotes).Cursor().First()
		v = bytes.Clone(v)
		v[3]++
		return w.in(inNotes).Put(bytes.Clone(k), v)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(killed(t, d.path), target(), Options{}); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("opened: %v", err)
	}
}
