package bolt

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"leadferry/checkpoint"
)

// fault 114: of 500 values of cells none is in the file, neither
// as it is nor as a plain hash; only keys, IDs, statuses, organizations and
// locators are.
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
		if err := claim(d, checkpoint.Entry{Key: e.Key, Digest: e.Digest, Content: e.Content}); err != nil {
			t.Fatal(err)
		}
		if _, err := settle(d, e); err != nil {
			t.Fatal(err)
		}
	}
	d.Close()
	file := read(t, path)
	for _, value := range append(planted, "planted", "name0") {
		if bytes.Contains(file, []byte(value)) {
			t.Errorf("%q is in the file", value)
		}
	}
}

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
