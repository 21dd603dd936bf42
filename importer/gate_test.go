package importer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateHoldsEverybodyWhileThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(time.Hour, 64)
		g.throttle(7 * time.Second)
		began := time.Now()
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				if _, err := g.enter(t.Context()); err != nil {
					t.Error(err)
				}
				if waited := time.Since(began); waited < 7*time.Second {
					t.Errorf("a request left after %v", waited)
				}
			})
		}
		group.Wait()
	})
}

func TestGateCapsWhatAServiceMayAskFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(time.Hour, 64)
		g.throttle(1e9 * time.Second)
		began := time.Now()
		g.enter(t.Context())
		if waited := time.Since(began); waited != maxThrottle {
			t.Errorf("waited %v, want %v", waited, maxThrottle)
		}
	})
}

// While the service is silent only one request at a time finds out; an answer lets
// everybody through. faults 33, 46
func TestGateLetsOneProbeThroughWhileSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(time.Hour, 64)
		var passing, most, passed atomic.Int32
		var down atomic.Bool
		down.Store(true)
		g.unanswered(pass{}, true)
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for {
					p, err := g.enter(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if n := passing.Add(1); down.Load() {
						most.Store(max(most.Load(), n))
					}
					time.Sleep(time.Second)
					passing.Add(-1)
					if !down.Load() {
						g.answered(p)
						passed.Add(1)
						return
					}
					g.unanswered(p, true)
				}
			})
		}
		time.Sleep(10 * time.Minute)
		down.Store(false)
		group.Wait()
		if most.Load() != 1 {
			t.Errorf("%d requests at once while the service was silent", most.Load())
		}
		if passed.Load() != 16 {
			t.Errorf("%d requests passed in the end, want 16", passed.Load())
		}
	})
}

func TestGateGivesUpAfterMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(5*time.Minute, 64)
		began := time.Now()
		for {
			p, err := g.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !g.unanswered(p, true) {
				break
			}
		}
		if waited := time.Since(began); waited != 5*time.Minute {
			t.Errorf("gave up after %v, want 5m", waited)
		}
	})
}

func TestGateEndsWaitingWhenTheRunStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(time.Hour, 64)
		g.throttle(10 * time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Second)
			stop()
		}()
		if _, err := g.enter(ctx); !errors.Is(err, errStopping) {
			t.Errorf("enter: %v, want errStopping", err)
		}
	})
}

func TestBackoffGrowsWithinItsBounds(t *testing.T) {
	for n := 1; n < 40; n++ {
		full := min(firstBackoff<<min(n-1, 10), maxBackoff)
		for range 100 {
			if d := backoffFor(n); d < full/2 || d > full {
				t.Fatalf("retry %d waits %v, want between %v and %v", n, d, full/2, full)
			}
		}
	}
}
