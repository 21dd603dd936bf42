package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"leadferry/checkpoint"
)

// What is reported is durable: a copy taken then holds it. faults 2, 10
func TestWhatIsReportedIsDurable(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	together(t, d, checkpoint.Claim, intentOf("c", 1), intentOf("a", 1), intentOf("b", 1))
	if c := opened(t, killed(t, path), Options{}); lookup(t, c, "c").State != checkpoint.InDoubt {
		t.Error("reported before it was durable")
	}
}

// An intent without a time has that of its commit: people look for the lead by it.
func TestClaimIsSentWhenItIsCommitted(t *testing.T) {
	now := time.UnixMilli(1_770_000_000_000).UTC()
	d := opened(t, newPath(t), Options{Now: func() time.Time { return now }})
	if err := claim(d, checkpoint.Entry{Key: "a"}); err != nil {
		t.Fatal(err)
	}
	if sent := lookup(t, d, "a").Updated; !sent.Equal(now) {
		t.Errorf("sent %v, as it says, want %v", sent, now)
	}
}

func TestClosedCheckpointRefusesEverything(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	_, settled := settle(d, createdEntry("a", "lead", 1))
	_, counted := d.Runs(t.Context())
	for what, err := range map[string]error{
		"claim": claim(d, intentOf("a", 1)), "settle": settled, "withdraw": withdraw(d, "a"),
		"look-up": lookupAll(d, []string{"a"}, make([]checkpoint.Entry, 1)), "runs": counted,
		"resolve": resolve(d, checkpoint.Decision{Key: "a"}),
	} {
		if !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A refused change is refused alone.
func TestBadChangeDoesNotHarmItsNeighbours(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	if _, err := settle(d, createdEntry("known", "lead-1", 1)); err != nil {
		t.Fatal(err)
	}
	long := string(make([]byte, checkpoint.MaxKey+1))
	changes := []*checkpoint.Change{
		{Kind: checkpoint.Claim, Entry: intentOf("known", 1)},
		{Kind: checkpoint.Claim, Entry: intentOf("", 1)},
		{Kind: checkpoint.Claim, Entry: intentOf(long, 1)},
		{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: "odd"}},
		{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: long, State: checkpoint.Created}},
		{Kind: checkpoint.Claim, Entry: intentOf(long[:checkpoint.MaxKey], 1)},
	}
	if err := d.Commit(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{checkpoint.ErrKnown, checkpoint.ErrKey, checkpoint.ErrKey, checkpoint.ErrState, checkpoint.ErrKey, nil} {
		if err := changes[i].Err; !errors.Is(err, want) || checkpoint.IsRefusal(err) != (want != nil) {
			t.Errorf("change %d: %v, want %v", i, err, want)
		}
	}
	if i := d.Info(); i.Leads != 1 || i.InDoubt != 1 {
		t.Errorf("%+v", i)
	}
}

// Nothing is written after a panic inside a commit, not even that the run ended in order.
func TestPanicInACommitEndsEverything(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	if err := claim(d, intentOf("before", 1)); err != nil {
		t.Fatal(err)
	}
	first := d.Commit(t.Context(), []*checkpoint.Change{{Entry: intentOf("a", 1)}, nil})
	for what, err := range map[string]error{"commit": first, "claim": claim(d, intentOf("b", 1)), "close": d.Close()} {
		if err == nil || !errors.Is(err, first) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if m, _, err := readMark(path + ".seq"); err != nil || m.clean {
		t.Errorf("ended in order: %+v, %v", m, err)
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
