package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestChangesGatherUntilHurried(t *testing.T) {
	for _, hurried := range []bool{false, true} {
		t.Run(fmt.Sprint("hurried ", hurried), func(t *testing.T) {
			path := newPath(t)
			synctest.Test(t, func(t *testing.T) {
				d, err := Open(path, target(), Options{})
				if err != nil {
					t.Fatal(err)
				}
				seq, start := d.tally.Load().seq, time.Now()
				var waited [3]time.Duration
				for i := range waited {
					d.Claim(intentOf(fmt.Sprint(i), i), func(error) { waited[i] = time.Since(start) })
				}
				if hurried {
					d.Hurry()
				}
				time.Sleep(time.Second)
				synctest.Wait()
				want := patience
				if hurried {
					want = 0
				}
				if waited != [3]time.Duration{want, want, want} {
					t.Errorf("waited %v, want %v", waited, want)
				}
				if n := d.tally.Load().seq - seq; n != 1 {
					t.Errorf("%d commits", n)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			intact(t, path)
		})
	}
}

// What is reported is durable: a copy taken inside the callback holds it, and
// callbacks come in the order of the calls. faults 2, 10
func TestCallbackComesAfterTheCommitAndInOrder(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	var order []string
	var copied string
	keys := []string{"c", "a", "b", "z", "m"}
	var all sync.WaitGroup
	all.Add(len(keys))
	for _, k := range keys {
		d.Claim(intentOf(k, 1), func(err error) {
			if order = append(order, k); k == "c" {
				copied = crash(t, path)
			}
			all.Done()
		})
	}
	d.Hurry()
	all.Wait()
	if !slices.Equal(order, keys) {
		t.Errorf("order %v, want %v", order, keys)
	}
	if c := opened(t, copied, Options{}); lookup(t, c, "c").State != InDoubt {
		t.Error("reported before it was durable")
	}
}

func TestCloseFinishesWhatIsQueued(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	failed := 0
	for i := range 100 {
		d.Claim(intentOf(fmt.Sprint(i), i), func(err error) {
			if err != nil {
				failed++
			}
		})
	}
	if err := d.Close(); err != nil || failed != 0 {
		t.Fatalf("%d failed, %v", failed, err)
	}
	if d = opened(t, path, Options{}); d.InDoubt() != 100 {
		t.Errorf("%d in doubt", d.InDoubt())
	}
}

func TestClosedCheckpointRefusesEverything(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	_, settled := settle(d, createdEntry("a", "lead", 1))
	_, counted := d.Runs()
	for what, err := range map[string]error{
		"claim": claim(d, intentOf("a", 1)), "settle": settled, "withdraw": withdraw(d, "a"),
		"look-up": d.Lookup([]string{"a"}, make([]Entry, 1)), "runs": counted,
		"resolve": resolve(d, Decision{Key: "a"}),
	} {
		if !errors.Is(err, ErrClosed) {
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
	long := string(make([]byte, MaxKey+1))
	results := make(chan error, 6)
	report := func(err error) { results <- err }
	d.Claim(intentOf("known", 1), report)
	d.Claim(intentOf("", 1), report)
	d.Claim(intentOf(long, 1), report)
	d.Settle(Entry{Key: "odd"}, func(_ Entry, err error) { report(err) })
	d.Settle(Entry{Key: long, State: Created}, func(_ Entry, err error) { report(err) })
	d.Claim(intentOf(long[:MaxKey], 1), report)
	d.Hurry()
	for i, want := range []error{ErrKnown, ErrKey, ErrKey, ErrState, ErrKey, nil} {
		if err := <-results; !errors.Is(err, want) {
			t.Errorf("change %d: %v, want %v", i, err, want)
		}
	}
	if counts, err := d.Counts(); err != nil || counts[Created] != 1 || counts[InDoubt] != 1 {
		t.Errorf("%v, %v", counts, err)
	}
}

// Many callers at once, none of them waiting for the writer's patience.
func TestConcurrentUse(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 25 {
				key := fmt.Sprintf("%d-%d", w, i)
				if err := claim(d, intentOf(key, i)); err != nil {
					t.Error(err)
				}
				sum := d.Sum([]byte(key))
				e := createdEntry(key, "lead-"+key, i)
				e.Digest = sum
				if _, err := settle(d, e); err != nil {
					t.Error(err)
				}
				out := make([]Entry, 1)
				if err := d.Lookup([]string{key}, out); err != nil || out[0].State != Created || out[0].Digest != sum {
					t.Errorf("%+v, %v", out[0], err)
				}
			}
		})
	}
	all.Wait()
	if d.Leads() != 200 || d.InDoubt() != 0 {
		t.Errorf("%d leads, %d in doubt", d.Leads(), d.InDoubt())
	}
}
