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

// slowStore takes its time for each commit.
type slowStore struct {
	recordingStore
	pause time.Duration
	last  int // number of commits up to the last one with a claim
}

func (s *slowStore) Commit(ctx context.Context, changes []*checkpoint.Change) error {
	time.Sleep(s.pause)
	if slices.ContainsFunc(changes, func(c *checkpoint.Change) bool { return c.Kind == checkpoint.Claim }) {
		s.last = len(s.commits) + 1
	}
	return s.recordingStore.Commit(ctx, changes)
}

// With 64 requests in flight of about 20 ms, commits carry many changes, yet no place stays empty for long. This holds
// for a ledger on a fast disk and for a server some milliseconds away.
func TestCommitsAreFullAndPlacesAreInUse(t *testing.T) {
	for _, pause := range []time.Duration{200 * time.Microsecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond} {
		t.Run(fmt.Sprint("commits take ", pause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { measureImport(t, pause) })
		})
	}
}

func measureImport(t *testing.T, pause time.Duration) {
	const places, rows, service = 64, 9600, 20 * time.Millisecond
	s := &slowStore{recordingStore: recordingStore{intents: map[string]bool{}}, pause: pause}
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
	if pause > 5*time.Millisecond { // half of a request's time: either places or commits stay emptier
		least = 0.93
	}
	if commits := float64(s.last) * 128 / rows; commits > 2.8 || use < least {
		t.Errorf("%.2f commits per 128 rows, and %.3f of the places in use", commits, use)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
