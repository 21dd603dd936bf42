package delivery

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// brownOut delivers rows by workers to a service that takes 20 ms a request and
// whose answer to the one that makes n requests in flight is given by answer. It
// returns the tries and the most that were in flight at once.
func brownOut(t *testing.T, workers, rows int, answer func(n int32) error) (tries, most int32) {
	c := &Retrier{Breaker: NewBreaker(time.Hour, workers, 0), Retries: 50, Retried: func() {}}
	var left, calls, inFlight, peak atomic.Int32
	left.Store(int32(rows))
	call := func(context.Context) error {
		calls.Add(1)
		n := inFlight.Add(1)
		defer inFlight.Add(-1)
		for m := peak.Load(); n > m && !peak.CompareAndSwap(m, n); m = peak.Load() {
		}
		time.Sleep(20 * time.Millisecond)
		return answer(n)
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := sendCreate(t, c, call); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	return calls.Load(), peak.Load()
}

// A brown-out with 20 % 429 costs at most 1.3 tries a row. fault 61
func TestBrownOutCostsFewTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 4000
		var dice sync.Mutex
		random := rand.New(rand.NewPCG(1, 2))
		tries, _ := brownOut(t, 64, rows, func(int32) error {
			dice.Lock()
			defer dice.Unlock()
			if random.IntN(5) == 0 {
				return status(429)
			}
			return nil
		})
		if tries > rows*13/10 {
			t.Errorf("%d tries for %d rows", tries, rows)
		}
	})
}

// A service that bears eight requests at once is soon asked for about as many: the
// refusals end, though 64 workers wait.
func TestWindowFindsWhatTheServiceBears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows, bears = 4000, 8
		tries, most := brownOut(t, 64, rows, func(n int32) error {
			if n > bears {
				return after(429, 300*time.Millisecond)
			}
			return nil
		})
		if tries > rows*12/10 {
			t.Errorf("%d tries for %d rows", tries, rows)
		}
		if most > 64 {
			t.Errorf("%d requests in flight, more than the workers", most)
		}
	})
}

func TestWindowGrowsBackToItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 8, 0)
		for range 10 {
			time.Sleep(time.Second)
			p, _ := b.enter(t.Context(), Repeatable)
			overload(b, p)
		}
		if b.load.window != 1 {
			t.Errorf("the window is %v after ten refusals, want 1", b.load.window)
		}
		for range 100 {
			p, err := b.enter(t.Context(), Repeatable)
			if err != nil {
				t.Fatal(err)
			}
			heard(b, p)
		}
		if b.load.window != 8 || b.load.inFlight != 0 {
			t.Errorf("window %v with %d in flight after a hundred answers, want 8 and 0", b.load.window, b.load.inFlight)
		}
	})
}

// Refusals of requests that were under way together count as one.
func TestWindowIsHalvedOnceForOneBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 64, 0)
		var passes []Pass
		for range 64 {
			p, err := b.enter(t.Context(), Repeatable)
			if err != nil {
				t.Fatal(err)
			}
			passes = append(passes, p)
		}
		time.Sleep(time.Second)
		for _, p := range passes {
			overload(b, p)
		}
		if b.load.window != 32 {
			t.Errorf("the window is %v after one burst, want 32", b.load.window)
		}
	})
}
