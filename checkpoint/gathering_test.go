package checkpoint_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/checkpoint"
)

// pausingStore takes its time for each commit.
type pausingStore struct {
	notedStore
	pause time.Duration
	last  int // commits, the last of which had a claim
}

func (s *pausingStore) Commit(ctx context.Context, changes []*checkpoint.Change) error {
	time.Sleep(s.pause)
	if slices.ContainsFunc(changes, func(c *checkpoint.Change) bool { return c.Kind == checkpoint.Claim }) {
		s.last = len(s.commits) + 1
	}
	return s.notedStore.Commit(ctx, changes)
}

// At 64 requests in flight that take about 20 ms, commits are full, and yet no place stays empty for long: neither with
// a ledger on a fast disk nor with one some milliseconds away.
func TestCommitsAreFullAndPlacesToo(t *testing.T) {
	for _, pause := range []time.Duration{200 * time.Microsecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond} {
		t.Run(fmt.Sprint("commits take ", pause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { importBeside(t, pause) })
		})
	}
}

func importBeside(t *testing.T, pause time.Duration) {
	const places, rows, service = 64, 9600, 20 * time.Millisecond
	s := &pausingStore{notedStore: notedStore{intents: map[string]bool{}}, pause: pause}
	var next atomic.Int64
	free := make(chan struct{}, places)
	l := checkpoint.NewLedger(s, checkpoint.Gathering{Slots: 2 * places, Places: places})
	began := time.Now()
	var all sync.WaitGroup
	for range 4 * places {
		all.Go(func() {
			for n := next.Add(1); n <= rows; n = next.Add(1) {
				key := fmt.Sprint(n)
				_ = change(t.Context(), l, checkpoint.Claim, key)
				free <- struct{}{}
				time.Sleep(service*3/4 + time.Duration(n*7919%1000)*service/2000)
				<-free
				_ = change(t.Context(), l, checkpoint.Settle, key)
			}
		})
	}
	all.Wait()
	use := float64(rows) / places * service.Seconds() / time.Since(began).Seconds()
	least := 0.95
	if pause > 5*time.Millisecond { // half of a request's time: places stay empty, or commits do
		least = 0.93
	}
	if commits := float64(s.last) * 128 / rows; commits > 2.8 || use < least {
		t.Errorf("%.2f commits per 128 rows, and %.3f of the places in use", commits, use)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
