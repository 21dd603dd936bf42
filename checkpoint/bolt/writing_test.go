package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// fault 114: none of 500 cell values is in the file as plain text.
func TestNoCellValueReachesTheFile(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	var planted []string
	for i := range 50 {
		e := createdEntry(fmt.Sprint("key", i), fmt.Sprint("lead", i), i)
		e.Content = nil
		var body []byte
		for j := range 10 {
			value := fmt.Sprintf("planted-%d-%d@example.com", i, j)
			planted = append(planted, value)
			body = append(body, value...)
			e.Content = append(e.Content, sumField(d, fmt.Sprint("name", j), value))
		}
		e.Digest = d.digests.Sum(body)
		must.Do(t, claim(d, checkpoint.Entry{Key: e.Key, Digest: e.Digest, Content: e.Content}))
		together(t, d, checkpoint.Settle, e)
	}
	d.Close()
	file := read(t, path)
	for _, value := range append(planted, "planted", "name0") {
		if bytes.Contains(file, []byte(value)) {
			t.Errorf("%q is in the file", value)
		}
	}
}

// No column name is stored. If a file has no header, its first lead is taken for one, with personal data. faults 131
func TestNotesHoldNoColumnNames(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	byID := checkpoint.Shape{Columns: []string{"id", "e-mail of Ann", "name"}, Key: "{id}"}
	for _, s := range []checkpoint.Shape{byID, byID, {Columns: []string{"other"}, Key: "{other}", Namespace: "dealers"}, {Key: "{id}"}} {
		claimNoting(t, d, s)
	}
	must.Do(t, d.Close())
	if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("e-mail of Ann")) {
		t.Errorf("%v, or the file holds the name of a column", err)
	}
	d = opened(t, path, Options{Check: true})
	if all, err := d.Notes(t.Context(), "shape "); err != nil || len(all) != 2 {
		t.Errorf("%d shapes, want 2; %v", len(all), err)
	}
}

// After a panic inside a commit nothing is written, not even to the witness that the run ended in order.
func TestPanicInACommitEndsEverything(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	book := attested(t, d).Witnesses
	must.Do(t, claim(d, intentOf("before", 1)))
	first := d.Alone(t.Context(), func(tx checkpoint.Tx) error { panic(tx.PutNote(checkpoint.Note{Name: "a"})) })
	for what, err := range map[string]error{"commit": first, "claim": claim(d, intentOf("b", 1)), "close": d.Close()} {
		if err == nil || !errors.Is(err, first) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !book.All()[0].Open {
		t.Error("the witness says that the run ended in order")
	}
	d = opened(t, path, Options{})
	if lookup(t, d, "before").State != checkpoint.InDoubt || lookup(t, d, "a").State != checkpoint.Unknown {
		t.Error("the file is not as it was before")
	}
}

// An index record is removed with its key, which may be withdrawn or forgotten. faults 131
func TestFoldsAreRemovedWithTheirKeys(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	folds := func() (n int) {
		must.Do(t, d.transact("other", func(w *writing) error { n = w.tx.Bucket(inFolds).Inspect().KeyN; return nil }))
		return n
	}
	for i := range 5 {
		must.Do(t, claim(d, intentOf(fmt.Sprintf("00%d", i), i)))
	}
	if n := folds(); n != 5 {
		t.Errorf("%d records, want 5", n)
	}
	must.Do(t, withdraw(d, "000"))
	together(t, d, checkpoint.Settle, createdEntry("001", "lead-1", 1))
	if n := folds(); n != 4 {
		t.Errorf("%d records, want 4", n)
	}
	for _, unblock := range []bool{false, true} {
		if _, err := checkpoint.Forget(context.Background(), d, []string{"001", "002", "003", "004", "7"}, unblock); err != nil {
			t.Fatal(err)
		}
		if n, want := folds(), map[bool]int{false: 4, true: 0}[unblock]; n != want { // of forgotten keys only hashes
			t.Errorf("unblock %v: %d records, want %d", unblock, n, want)
		}
	}
}
