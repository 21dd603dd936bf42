package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"leadferry/checkpoint"
	"leadferry/internal/crash"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recordingStore notes what is committed, and stores nothing.
type recordingStore struct {
	checkpoint.Store
	mu      sync.Mutex
	commits []string         // one text for each: the kinds and keys of its changes
	intents map[string]bool  // open claims
	most    int              // the highest number of claims open at once
	refused map[string]error // by key
	broken  error
	panics  bool
	hold    chan struct{} // if not nil, each commit waits for it
	closed  bool
}

func (s *recordingStore) Commit(_ context.Context, changes []*checkpoint.Change) error {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics {
		panic("planted")
	}
	var done []string
	for _, c := range changes {
		key := c.Entry.Key
		done = append(done, [...]string{"claim ", "withdraw ", "settle ", "mark "}[c.Kind]+key)
		if c.Err = s.refused[key]; c.Err != nil || s.broken != nil {
			continue
		}
		switch c.Kind {
		case checkpoint.Claim:
			s.intents[key] = true
		case checkpoint.Withdraw, checkpoint.Settle:
			delete(s.intents, key)
		}
		c.Entry.Seq = uint64(len(s.commits)) + 1
	}
	s.most = max(s.most, len(s.intents))
	s.commits = append(s.commits, strings.Join(done, ", "))
	return s.broken
}

func (s *recordingStore) Close() error {
	s.closed = true
	return nil
}

// trackedLedger is a ledger over a recordingStore. It notes which claims succeeded and which were refused.
type trackedLedger struct {
	*checkpoint.Ledger
	store    *recordingStore
	mu       sync.Mutex
	claimed  []string
	refusals []error
}

// Numbers of places for tests: idle means that a lane is always idle, busy that no lane ever is.
const idle, busy = 1 << 20, -10

func newTracked(slots, places int) *trackedLedger {
	k := &trackedLedger{store: &recordingStore{intents: map[string]bool{}, refused: map[string]error{}}}
	k.Ledger = checkpoint.NewLedger(k.store, checkpoint.Gathering{Slots: slots, Places: places})
	return k
}

func change(ctx context.Context, l *checkpoint.Ledger, kind checkpoint.ChangeKind, key string) error {
	return l.Do(ctx, &checkpoint.Change{Kind: kind, Entry: checkpoint.Entry{Key: key, State: checkpoint.Created}})
}

// claim asks for claims, one after another.
func (k *trackedLedger) claim(ctx context.Context, keys ...string) {
	for _, key := range keys {
		go func() {
			err := change(ctx, k.Ledger, checkpoint.Claim, key)
			k.mu.Lock()
			defer k.mu.Unlock()
			if err != nil {
				k.refusals = append(k.refusals, err)
				return
			}
			k.claimed = append(k.claimed, key)
		}()
		synctest.Wait()
	}
}

// settle asks for an outcome and does not wait for the commit.
func (k *trackedLedger) settle(key string) {
	go change(context.Background(), k.Ledger, checkpoint.Settle, key)
	synctest.Wait()
}

// waitForCommits waits until everything that can be committed is committed.
func waitForCommits() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (k *trackedLedger) wantClaimed(t *testing.T, when string, claimed ...string) {
	t.Helper()
	slices.Sort(k.claimed)
	if !slices.Equal(k.claimed, claimed) {
		t.Errorf("%s: claimed %q, want %q; refused %v", when, k.claimed, claimed, k.refusals)
	}
}

func (k *trackedLedger) wantCommits(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := k.store.commits; !slices.Equal(got, want) {
		t.Errorf("%s: commits\n%q, want\n%q", when, got, want)
	}
}

func (k *trackedLedger) close(t *testing.T) {
	t.Helper()
	if err := k.Close(); err != nil || !k.store.closed {
		t.Errorf("close: %v", err)
	}
	synctest.Wait()
}

// While more claims are open than there are places, changes gather for some milliseconds. An outcome that leaves no
// more claims than places is committed at once, with all that has gathered.
func TestChangesGatherUntilALaneIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTracked(0, 1)
		k.claim(t.Context(), "first", "a", "b", "c")
		k.settle("first")
		waitForCommits()
		for i, key := range []string{"a", "b"} {
			began := time.Now()
			var all sync.WaitGroup
			all.Go(func() { _ = change(context.Background(), k.Ledger, checkpoint.Mark, "m") })
			synctest.Wait()
			all.Go(func() { _ = change(context.Background(), k.Ledger, checkpoint.Withdraw, key) })
			all.Wait()
			if waited := time.Since(began); i == 0 != (waited > 0) || waited > 30*time.Millisecond {
				t.Errorf("%s waited %v", key, waited)
			}
		}
		k.wantCommits(t, "all", "claim first", "claim a", "settle first, claim b, claim c", "mark m, withdraw a", "mark m, withdraw b")
		k.close(t)
	})
}

// Changes that come during a commit form the next one: first outcomes, marks and withdrawals as they came, then claims.
func TestChangesGatherDuringACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTracked(0, idle)
		k.store.hold = make(chan struct{})
		k.claim(t.Context(), "a", "c")
		k.settle("z")
		k.claim(t.Context(), "b")
		go change(context.Background(), k.Ledger, checkpoint.Mark, "y")
		synctest.Wait()
		go change(context.Background(), k.Ledger, checkpoint.Withdraw, "z")
		synctest.Wait()
		close(k.store.hold)
		waitForCommits()
		k.wantCommits(t, "gathered", "claim a", "settle z, mark y, withdraw z, claim c, claim b")
		k.close(t)
	})
}

// If all slots are taken, claims wait in their order. One commit both frees slots and fills them. Invariant 2; fault 1
func TestClaimsWaitForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTracked(2, busy)
		k.claim(t.Context(), "c", "b", "a", "e", "d")
		waitForCommits()
		k.wantClaimed(t, "two slots", "b", "c")
		k.settle("c")
		waitForCommits()
		k.wantClaimed(t, "settled", "a", "b", "c")
		go change(context.Background(), k.Ledger, checkpoint.Settle, "b")
		synctest.Wait()
		go change(context.Background(), k.Ledger, checkpoint.Withdraw, "a")
		waitForCommits()
		k.wantClaimed(t, "in doubt and withdrawn", "a", "b", "c", "d", "e")
		k.wantCommits(t, "all", "claim c, claim b", "settle c, claim a", "settle b, withdraw a, claim e, claim d")
		k.close(t)
	})
}

// A claim that the Store refuses takes no slot, so waiting claims get it. The refusal ends only its own row.
func TestRefusedClaimTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTracked(1, idle)
		k.store.refused["known"] = checkpoint.ErrKnown
		began := time.Now()
		k.claim(t.Context(), "known", "known", "a", "b")
		k.wantClaimed(t, "refused", "a")
		if waited := time.Since(began); waited != 0 || len(k.refusals) != 2 || !errors.Is(k.refusals[0], checkpoint.ErrKnown) {
			t.Errorf("refused %v after %v", k.refusals, waited)
		}
		k.close(t)
		if len(k.refusals) != 3 || !errors.Is(k.refusals[2], checkpoint.ErrClosed) {
			t.Errorf("closed while a claim waits: refused %v", k.refusals)
		}
	})
}

// A claim given up before a commit takes it is not written. Given up later, it is. An outcome cannot be given up.
func TestOnlyAWaitingClaimCanBeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTracked(1, busy)
		ctx, giveUp := context.WithCancel(t.Context())
		k.claim(t.Context(), "a")
		waitForCommits()
		k.claim(ctx, "waits")
		giveUp()
		if err := change(ctx, k.Ledger, checkpoint.Settle, "a"); err != nil {
			t.Errorf("an outcome was given up: %v", err)
		}
		waitForCommits()
		if len(k.refusals) != 1 || !errors.Is(k.refusals[0], context.Canceled) {
			t.Errorf("refused %v", k.refusals)
		}
		k.store.hold = make(chan struct{})
		ctx, giveUp = context.WithCancel(t.Context())
		k.claim(ctx, "b")
		waitForCommits() // it is being committed
		giveUp()
		synctest.Wait()
		close(k.store.hold)
		synctest.Wait()
		k.wantClaimed(t, "under way", "a", "b")
		k.wantCommits(t, "all", "claim a", "settle a", "claim b")
		k.close(t)
	})
}

// After the first error of the Store nothing is written, and all waiting claims and outcomes get the error. Invariant 8
func TestNothingIsWrittenAfterTheStoreFailed(t *testing.T) {
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprint("panics ", panics), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newTracked(1, busy)
				k.claim(t.Context(), "a", "b", "c")
				waitForCommits()
				k.wantClaimed(t, "one slot", "a")
				broken := errors.New("broken")
				if k.store.panics = panics; !panics {
					k.store.broken = broken
				}
				failed := func(err error) bool {
					if panics {
						return errors.As(err, new(*crash.Error))
					}
					return errors.Is(err, broken)
				}
				if err := change(context.Background(), k.Ledger, checkpoint.Settle, "a"); !failed(err) {
					t.Errorf("settled: %v", err)
				}
				waitForCommits()
				if len(k.refusals) != 2 || !failed(k.refusals[0]) || !failed(k.refusals[1]) {
					t.Errorf("refused %v", k.refusals)
				}
				k.store.broken, k.store.panics = nil, false // the Store works again, which must change nothing
				before := len(k.store.commits)
				if err := change(context.Background(), k.Ledger, checkpoint.Withdraw, "a"); !failed(err) || len(k.store.commits) != before {
					t.Errorf("afterwards: %v", err)
				}
				k.close(t)
			})
		})
	}
}

func TestCloseFinishesWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTracked(0, busy)
		for i := range 100 {
			go func() { _ = change(context.Background(), k.Ledger, checkpoint.Claim, fmt.Sprint(i)) }()
		}
		synctest.Wait()
		k.close(t)
		if len(k.store.intents) != 100 || len(k.store.commits) != 1 {
			t.Errorf("%d claimed by %d commits", len(k.store.intents), len(k.store.commits))
		}
		settled := change(context.Background(), k.Ledger, checkpoint.Settle, "a")
		for what, err := range map[string]error{
			"claim": change(t.Context(), k.Ledger, checkpoint.Claim, "a"), "settle": settled, "withdraw": change(t.Context(), k.Ledger, checkpoint.Withdraw, "a"),
		} {
			if !errors.Is(err, checkpoint.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// In any order of changes, at most as many claims are open as there are slots, and each gets its turn. Invariant 2
func TestNeverMoreOpenClaimsThanSlots(t *testing.T) {
	const most = 5
	rapid.Check(t, func(t *rapid.T) {
		ends := rapid.SliceOfN(rapid.SampledFrom([]string{"settle", "withdraw", "refuse", "give up"}), 1, 40).Draw(t, "ends")
		k := newTracked(most, rapid.SampledFrom([]int{idle, busy}).Draw(t, "places"))
		for i, end := range ends {
			if end == "refuse" {
				k.store.refused[fmt.Sprint(i)] = checkpoint.ErrKnown
			}
		}
		var all sync.WaitGroup
		for i, end := range ends {
			key := fmt.Sprint(i)
			all.Go(func() {
				ctx, giveUp := context.WithCancel(context.Background())
				defer giveUp()
				if end == "give up" {
					go giveUp()
				}
				err := change(ctx, k.Ledger, checkpoint.Claim, key)
				switch {
				case err != nil && end != "refuse" && end != "give up":
					t.Error(end, err)
				case err == nil && end == "settle":
					err = change(ctx, k.Ledger, checkpoint.Settle, key)
				case err == nil:
					err = change(ctx, k.Ledger, checkpoint.Withdraw, key)
				}
				if err != nil && end != "refuse" && end != "give up" {
					t.Error(end, err)
				}
			})
		}
		all.Wait()
		if err := k.Close(); err != nil || k.store.most > most || len(k.store.intents) != 0 {
			t.Fatalf("%d claims at once, %d left, %v", k.store.most, len(k.store.intents), err)
		}
	})
}
