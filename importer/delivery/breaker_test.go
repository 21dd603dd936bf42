package delivery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/leadapi"
)

// passes lets an update or a create through, now.
func passes(t testing.TB, b *Breaker, create bool) Pass {
	t.Helper()
	p, h, err := b.tryNow(create)
	if err != nil || h.wait > 0 {
		t.Fatalf("it does not pass: %v, %v", h.wait, err)
	}
	return p
}

// tryNow tries to pass, now.
func (b *Breaker) tryNow(create bool) (Pass, hurdle, error) {
	select {
	case b.places <- struct{}{}:
	default:
		return Pass{}, hurdle{wait: maxBackoff}, nil
	}
	p, h, err := b.try(context.Background(), time.Now(), create)
	if err != nil || h.wait > 0 {
		<-b.places
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.hopes {
		b.hoping.Add(-1)
	}
	if h.paced {
		b.pace.queued--
	}
	return p, h, err
}

// fault 139
func TestBreakerHoldsEverybodyWhileThrottled(t *testing.T) {
	for _, perSecond := range []float64{0, 4} {
		synctest.Test(t, func(t *testing.T) {
			b := NewBreaker(time.Hour, 64, perSecond)
			began := time.Now()
			var group sync.WaitGroup
			var passed []time.Duration
			for range 16 {
				group.Go(func() {
					p, err := b.enter(t.Context(), false)
					if err != nil {
						t.Error(err)
					}
					b.mu.Lock()
					passed = append(passed, time.Since(began))
					b.mu.Unlock()
					b.answered(p)
				})
			}
			synctest.Wait() // those that --rate lets through have left
			early := len(passed)
			b.throttle(7 * time.Second)
			group.Wait()
			for i, at := range passed[early:] {
				if at < 7*time.Second || perSecond > 0 && at != 7*time.Second+time.Duration(i)*time.Second/4 {
					t.Errorf("at %v a second, request %d left after %v", perSecond, i, at)
				}
			}
		})
	}
}

func TestBreakerCapsWhatAServiceMayAskFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 64, 0)
		b.throttle(1e9 * time.Second)
		began := time.Now()
		b.enter(t.Context(), false)
		if waited := time.Since(began); waited != leadapi.MaxRetryAfter {
			t.Errorf("waited %v, want %v", waited, leadapi.MaxRetryAfter)
		}
	})
}

// --rate is kept by many as by one, and by those who wait no faster than by those who come. fault 139
func TestRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 64, 10)
		began := time.Now()
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for range 5 {
					p, err := b.enter(t.Context(), false)
					if err != nil {
						t.Error(err)
					}
					time.Sleep(time.Second)
					b.answered(p)
				}
			})
		}
		group.Wait()
		// Who finds no place under the rate waits a little longer than has to be, by the order in which they come.
		if took := time.Since(began); took < 32*time.Second || took > 40*time.Second {
			t.Errorf("320 requests at 10 a second took %v", took)
		}
	})
}

// While the service is silent only one request at a time finds out; an answer lets
// everybody through. faults 33, 46
func TestBreakerLetsOneProbeThroughWhileSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 64, 0)
		var passing, most, passed atomic.Int32
		var down atomic.Bool
		down.Store(true)
		b.unanswered(passes(t, b, false), false, nil)
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for {
					p, err := b.enter(t.Context(), false)
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
						b.answered(p)
						passed.Add(1)
						return
					}
					b.unanswered(p, false, nil)
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

// Of what left before the silence, neither an answer that comes late nor its lack tells anything: the probe alone does.
// faults 46, 139
func TestStaleAnswersDoNotEndASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 4, 0)
		slow, slower, first := passes(t, b, false), passes(t, b, false), passes(t, b, false)
		b.unanswered(first, false, nil)
		probe := passes(t, b, false)
		b.answered(slow)
		if _, h, _ := b.tryNow(false); !probe.probe || h.wait == 0 {
			t.Error("a late answer lets others pass beside the probe")
		}
		b.answered(probe)
		b.unanswered(slower, false, nil) // of the first silence
		if again := passes(t, b, false); again.probe {
			t.Error("a request from before the silence begins another one")
		}
	})
}

// Of two addresses one may be silent and the other answer every probe: that is no reason to hurry. fault 33
func TestSilencesThatFollowOneAnotherPauseLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 4, 0)
		began, tries := time.Now(), 0
		for time.Since(began) < 10*time.Minute {
			p, err := b.enter(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			if p.probe {
				b.answered(p)
				continue
			}
			b.unanswered(p, false, nil)
			tries++
		}
		if tries < 20 || tries > 90 {
			t.Errorf("%d tries in ten minutes", tries)
		}
		time.Sleep(time.Minute)
		b.answered(passes(t, b, false))
		time.Sleep(time.Minute)
		b.unanswered(passes(t, b, false), false, nil)
		probe := passes(t, b, false)
		if !probe.probe {
			t.Error("after a long while the first probe waits, too")
		}
		b.answered(probe)
		b.unanswered(passes(t, b, false), true, nil)
		if !passes(t, b, false).probe {
			t.Error("one broken connection after another makes all wait")
		}
	})
}

// One connection of many that fails is no reason to pause for long: answers in between count. fault 33
func TestFlickeringConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 4, 0)
		began := time.Now()
		for n := range 1000 {
			p, err := b.enter(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			if n%20 == 0 {
				b.unanswered(p, false, nil)
			} else {
				b.answered(p)
			}
		}
		if waited := time.Since(began); waited > 50*time.Second {
			t.Errorf("50 of 1000 connections failed, which took %v", waited)
		}
	})
}

// A probe of a silence that has ended lets no second probe of the next one pass. fault 46
func TestProbesOfAnEarlierSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 4, 0)
		b.unanswered(passes(t, b, false), false, nil)
		b.answered(passes(t, b, false))
		late := passes(t, b, false)
		time.Sleep(time.Minute)
		b.unanswered(passes(t, b, false), false, nil)
		probe := passes(t, b, false)
		b.unanswered(late, false, nil)
		if _, h, _ := b.tryNow(false); !probe.probe || h.wait == 0 {
			t.Error("two probes are under way")
		}
	})
}

func TestBreakerGivesUpAfterMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(5*time.Minute, 64, 0)
		began := time.Now()
		for {
			p, err := b.enter(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			if !b.unanswered(p, false, nil) {
				break
			}
		}
		if waited := time.Since(began); waited != 5*time.Minute {
			t.Errorf("gave up after %v, want 5m", waited)
		}
		if b.Over() == nil {
			t.Error("it does not say so")
		}
	})
}

func TestBreakerEndsWaitingWhenTheRunStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 1, 0)
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		wait := func() {
			group.Go(func() {
				if _, err := b.enter(ctx, true); !errors.Is(err, ErrStopping) {
					t.Errorf("enter: %v, want ErrStopping", err)
				}
			})
		}
		p := passes(t, b, true)
		wait() // for a place
		synctest.Wait()
		b.answered(p)
		wait() // for what the first create has shown
		b.throttle(10 * time.Minute)
		wait() // for the service
		synctest.Wait()
		stop()
		group.Wait()
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
