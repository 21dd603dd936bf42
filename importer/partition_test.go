package importer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/leadapi"
)

// cutOff makes the trial's network lose everything for a time: requests leave and are
// not answered within the 30 s that they have. It returns how long after
// the end of that the first request leaves.
func (tr *trial) cutOff(after, length time.Duration) (again *atomic.Int64) {
	again = new(atomic.Int64)
	from := time.Now().Add(after)
	back := from.Add(length)
	gone := func() bool { return time.Now().After(from) && time.Now().Before(back) }
	silence := &leadapi.Error{Op: "create", Applied: leadapi.Maybe, Reason: leadapi.ReasonTimeout, Message: "no answer in time"}
	var lost sync.Map // numbers of rows
	tr.service.arrive = func(key string) {
		if gone() {
			lost.Store(key[1:], true)
			time.Sleep(30 * time.Second)
		} else if time.Now().After(from) {
			again.CompareAndSwap(0, int64(time.Since(back)))
		}
	}
	tr.service.answer = func(name string, _ int) error {
		if _, is := lost.Load(name[1:]); is {
			return silence
		}
		return nil
	}
	tr.retrier.Reach = func(ctx context.Context) error {
		if !gone() {
			return nil
		}
		<-ctx.Done()
		return &leadapi.Error{Op: "reach", Applied: leadapi.Maybe, Reason: leadapi.ReasonTimeout, Message: "no answer in time"}
	}
	return again
}

// A network that loses everything for ten minutes costs the rows that were in flight
// and the one that found out first, however long it lasts; the run goes on within 30 s
// of its end. fault 46
func TestPartitionCostsNoMoreTheLongerItLasts(t *testing.T) {
	for _, concurrency := range []int{1, 8, 64} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			tried(t, numbered(500), Options{Sending: Sending{Concurrency: concurrency}}, func(t *testing.T, tr *trial) {
				again := tr.cutOff(50*time.Millisecond, 10*time.Minute)
				tr.carry(t.Context())
				doubts := tr.tally.outcomes[InDoubt]
				if doubts == 0 || doubts > concurrency+1 || tr.tally.outcomes[Created]+doubts != 500 {
					t.Errorf("at %d in flight: %s", concurrency, tr.outcomes())
				}
				if late := time.Duration(again.Load()); late == 0 || late > 30*time.Second {
					t.Errorf("went on %v after the network was back", late)
				}
			})
		})
	}
}

// A silence that outlasts --max-wait ends the run, whether requests had left or not, and
// costs no further doubts. fault 46
func TestPartitionForTooLongEndsTheRun(t *testing.T) {
	tried(t, numbered(500), Options{Sending: Sending{Concurrency: 8}}, func(t *testing.T, tr *trial) {
		tr.cutOff(50*time.Millisecond, 100*time.Hour)
		began := time.Now()
		tr.carry(t.Context())
		if tr.stopped == nil || tr.stopped.Code != CodeStopped {
			t.Fatalf("stopped for %v: %s", tr.stopped, tr.outcomes())
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+2*time.Minute {
			t.Errorf("gave up after %v, want an hour", took)
		}
		if n := tr.tally.outcomes[InDoubt]; n == 0 || n > 9 {
			t.Errorf("%s", tr.outcomes())
		}
	})
}
