package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// slotted is a checkpoint with few slots that tells which claims became durable.
type slotted struct {
	*DB
	claimed []string
	refused []error
}

func newSlotted(t *testing.T, path string, most int) *slotted {
	t.Helper()
	d, err := Open(path, target(), Options{Slots: most})
	if err != nil {
		t.Fatal(err)
	}
	return &slotted{DB: d}
}

func (s *slotted) claim(key string) {
	s.Claim(intentOf(key, 1), func(err error) {
		if err != nil {
			s.refused = append(s.refused, err)
			return
		}
		s.claimed = append(s.claimed, key)
	})
}

// commit waits until all that can be committed is, and says how many commits that took.
func (s *slotted) commit() uint64 {
	seq := s.tally.Load().seq
	s.Hurry()
	synctest.Wait()
	time.Sleep(time.Second)
	synctest.Wait()
	return s.tally.Load().seq - seq
}

// Claims beyond the slots wait, in their order, and one commit frees slots and fills
// them. Invariant 2; fault 1
func TestClaimsWaitForSlots(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		d := newSlotted(t, path, 2)
		for _, key := range []string{"c", "b", "a", "e", "d"} {
			d.claim(key)
		}
		d.commit()
		d.is(t, "two slots", "c", "b")
		d.Settle(createdEntry("c", "lead-c", 1), func(Entry, error) {})
		if n := d.commit(); n != 1 {
			t.Errorf("%d commits to settle one and claim the next", n)
		}
		d.is(t, "settled", "c", "b", "a")
		d.Settle(Entry{Key: "b", State: InDoubt, Reason: "no-answer"}, func(Entry, error) {})
		d.Withdraw("a", func(error) {})
		d.commit()
		d.is(t, "in doubt and withdrawn", "c", "b", "a", "e", "d")
		if d.InDoubt() != 3 {
			t.Errorf("%d intents, want those in the slots and the one in doubt", d.InDoubt())
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	intact(t, path)
}

func (s *slotted) is(t *testing.T, when string, claimed ...string) {
	t.Helper()
	if !slices.Equal(s.claimed, claimed) || len(s.refused) > 0 {
		t.Errorf("%s: claimed %v, refused %v, want %v", when, s.claimed, s.refused, claimed)
	}
}

// An intent without a time has that of its commit: people look for the lead by it.
func TestClaimIsSentWhenItHasItsSlot(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		d := newSlotted(t, path, 1)
		began := time.Now()
		for _, key := range []string{"a", "b"} {
			d.Claim(Intent{Key: key}, func(error) {})
		}
		d.commit()
		time.Sleep(time.Hour)
		d.Withdraw("a", func(error) {})
		d.commit()
		if sent := lookup(t, d.DB, "b").Updated; sent.Sub(began) < time.Hour {
			t.Errorf("sent after %v, as it says, want an hour", sent.Sub(began))
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	intact(t, path)
}

// A claim that the ledger refuses takes no slot, not even from those that wait.
func TestRefusedClaimTakesNoSlot(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		d := newSlotted(t, path, 1)
		d.Settle(createdEntry("known", "lead", 1), func(Entry, error) {})
		d.commit()
		for _, key := range []string{"known", "known", "a", "b"} {
			d.claim(key)
		}
		d.commit()
		if !slices.Equal(d.claimed, []string{"a"}) || len(d.refused) != 2 || !errors.Is(d.refused[0], ErrKnown) {
			t.Errorf("claimed %v, refused %v", d.claimed, d.refused)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if len(d.refused) != 3 || !errors.Is(d.refused[2], ErrClosed) {
			t.Errorf("closed with a claim that waits: refused %v", d.refused)
		}
	})
	intact(t, path)
}

// A file that fails answers the claims that wait, too.
func TestFailureEndsClaimsThatWait(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		d := newSlotted(t, path, 1)
		d.claim("a")
		d.claim("b")
		d.claim("c")
		d.commit()
		d.is(t, "one slot", "a")
		broken := errors.New("broken")
		d.fail(broken)
		d.Settle(createdEntry("a", "lead", 1), func(Entry, error) {})
		d.commit()
		if len(d.refused) != 2 || !errors.Is(d.refused[0], broken) || !errors.Is(d.refused[1], broken) {
			t.Errorf("refused %v", d.refused)
		}
		d.Close()
	})
	intact(t, path)
}

// Whatever is asked in whichever order, no commit leaves more claims than slots, and all
// get their turn. Invariant 2
func TestSlotsHold(t *testing.T) {
	path := newPath(t)
	const most = 5
	d := opened(t, path, Options{Slots: most})
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		ends := rapid.SliceOfN(rapid.SampledFrom([]string{"settle", "withdraw", "doubt", "reject"}), 1, 40).Draw(t, "ends")
		doubts := d.InDoubt()
		var flying, worst, fell atomic.Int64
		over := make(chan struct{}, len(ends))
		ready := make(chan func(), len(ends))
		for i, end := range ends {
			key := fmt.Sprintf("%d-%d", run, i)
			finish := func(error) { flying.Add(-1); over <- struct{}{} }
			settled := func(_ Entry, err error) { finish(err) }
			d.Claim(intentOf(key, i), func(err error) {
				if err != nil {
					over <- struct{}{}
					return
				}
				worst.Store(max(worst.Load(), int64(d.InDoubt()-doubts)-fell.Load()))
				flying.Add(1)
				ready <- func() {
					switch end {
					case "settle":
						d.Settle(createdEntry(key, "lead-"+key, i), settled)
					case "reject":
						d.Settle(Entry{Key: key, State: Rejected}, settled)
					case "doubt":
						d.Settle(Entry{Key: key, State: InDoubt}, func(e Entry, err error) { fell.Add(1); settled(e, err) })
					default:
						d.Withdraw(key, finish)
					}
					d.Hurry()
				}
			})
		}
		d.Hurry()
		for done := 0; done < len(ends); {
			select {
			case f := <-ready:
				f()
			case <-over:
				done++
			}
		}
		if worst.Load() > most || flying.Load() != 0 {
			t.Fatalf("%d claims at once, %d left", worst.Load(), flying.Load())
		}
	})
}
