package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// Many callers at once, gathered by a ledger.
func TestConcurrentUse(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	l := checkpoint.NewLedger(d, checkpoint.Gathering{Slots: 5})
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 25 {
				key := fmt.Sprintf("%d-%d", w, i)
				if err := l.Claim(t.Context(), checkpoint.Intent{Key: key, Line: i}); err != nil {
					t.Error(err)
				}
				sum := d.digests.Sum([]byte(key))
				e := createdEntry(key, "lead-"+key, i)
				e.Digest = sum
				if _, err := l.Settle(t.Context(), e); err != nil {
					t.Error(err)
				}
				out := make([]checkpoint.Entry, 1)
				if err := lookupAll(d, []string{key}, out); err != nil || out[0].State != checkpoint.Created || out[0].Digest != sum {
					t.Errorf("%+v, %v", out[0], err)
				}
			}
		})
	}
	all.Wait()
	if i := d.Info(); i.Leads != 200 || i.InDoubt != 0 {
		t.Errorf("%d leads, %d in doubt", i.Leads, i.InDoubt)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Claim(context.Background(), checkpoint.Intent{Key: "late"}); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
