package bolt

import (
	"errors"
	"testing"

	"leadferry/checkpoint"
)

// Nothing is written after a panic inside a commit, not even that the run ended in order.
func TestPanicInACommitEndsEverything(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	ended := endsOf(d)
	if err := claim(d, intentOf("before", 1)); err != nil {
		t.Fatal(err)
	}
	first := d.Commit(t.Context(), []*checkpoint.Change{{Entry: intentOf("a", 1)}, nil})
	for what, err := range map[string]error{"commit": first, "claim": claim(d, intentOf("b", 1)), "close": d.Close()} {
		if err == nil || !errors.Is(err, first) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if *ended != 0 {
		t.Error("said to have ended in order")
	}
	d = opened(t, path, Options{})
	if lookup(t, d, "before").State != checkpoint.InDoubt || lookup(t, d, "a").State != checkpoint.Unknown {
		t.Error("the file is not as it was before")
	}
}
