package bolt

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
)

// Shapes outlive the process, are told from one another, and keep no name of a column:
// where a file's first lead was taken for its header, that is a person's. faults 131
func TestNotes(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	byID := checkpoint.Shape{Columns: []string{"id", "e-mail of Ann", "name"}, Key: "{id}"}
	claimNoting(t, d, byID)
	claimNoting(t, d, byID)
	claimNoting(t, d, checkpoint.Shape{Columns: []string{"other"}, Key: "{other}", Namespace: "dealers"})
	claimNoting(t, d, checkpoint.Shape{Key: "{id}"}) // without columns it says nothing
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("e-mail of Ann")) {
		t.Errorf("%v, or the file holds the name of a column", err)
	}
	d = opened(t, path, Options{Check: true})
	if n := d.tally.Load().notes; n != 2 {
		t.Errorf("%d notes, want 2", n)
	}
	for name, test := range map[string]struct {
		shape checkpoint.Shape
		known bool
		kin   []checkpoint.Kin
	}{
		"the same":              {shape: checkpoint.Shape{Columns: []string{"name", "id", "e-mail of Ann"}, Key: "{id}"}, known: true},
		"another key":           {shape: checkpoint.Shape{Columns: byID.Columns, Key: "{name}"}, kin: []checkpoint.Kin{{Key: "{id}"}}},
		"another namespace":     {shape: checkpoint.Shape{Columns: byID.Columns, Key: "{id}", Namespace: "a"}, kin: []checkpoint.Kin{{Key: "{id}"}}},
		"one more column":       {shape: checkpoint.Shape{Columns: append([]string{"new"}, byID.Columns...), Key: "{id}"}, kin: []checkpoint.Kin{{Key: "{id}", Strange: []string{"new"}}}},
		"one less":              {shape: checkpoint.Shape{Columns: []string{"id", "name"}}, kin: []checkpoint.Kin{{Key: "{id}", Lacking: 1}}},
		"one is another one":    {shape: checkpoint.Shape{Columns: []string{"id", "name", "city"}, Key: "{name}"}},
		"no columns":            {shape: checkpoint.Shape{Key: "{name}"}},
		"more than one, of all": {shape: checkpoint.Shape{Columns: append([]string{"other"}, byID.Columns...)}, kin: []checkpoint.Kin{{Key: "{other}", Namespace: "dealers", Strange: byID.Columns}, {Key: "{id}", Strange: []string{"other"}}}},
	} {
		known, kin, err := d.Noted(context.Background(), test.shape)
		diff := cmp.Diff(test.kin, kin)
		if back := len(kin) == 2 && cmp.Equal([]checkpoint.Kin{kin[1], kin[0]}, test.kin); back { // in no order
			diff = ""
		}
		if err != nil || known != test.known || diff != "" {
			t.Errorf("%s: known %v, %v (-want +got):\n%s", name, known, err, diff)
		}
	}
}

// What a damaged note was is not known any more, so that the file is damaged.
func TestDamagedNoteIsSeen(t *testing.T) {
	d, err := Open(newPath(t), target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	claimNoting(t, d, checkpoint.Shape{Columns: []string{"id"}, Key: "{" + strings.Repeat("i", 40) + "}"})
	err = d.alone(func(l *ledger) error {
		k, v := l.notes.Cursor().First()
		v = bytes.Clone(v)
		v[3]++
		return l.notes.Put(bytes.Clone(k), v)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(d.path, target(), Options{}); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("opened: %v", err)
	}
}
