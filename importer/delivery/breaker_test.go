package delivery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// passes lets a request through, now.
func passes(t testing.TB, b *Breaker, kind Kind) *Pass {
	t.Helper()
	p, passed, err := b.tryNow(kind)
	if err != nil || !passed {
		t.Fatalf("it does not pass: %v, %v", passed, err)
	}
	return p
}

// What a request may end with.
func heard(b *Breaker, p *Pass)   { b.back(p, nil, 0) }
func silent(b *Breaker, p *Pass)  { b.back(p, unsentError, 0) }
func untried(b *Breaker, p *Pass) { b.back(p, ErrStopping, 0) }

// tryNow tries to pass, now.
func (b *Breaker) tryNow(kind Kind) (p *Pass, passed bool, err error) {
	ctx, stop := context.WithCancel(context.Background())
	p = &Pass{kind: kind, stopping: ctx, decided: make(chan struct{})}
	b.then(func(time.Time) { b.queue = append(b.queue, p) })
	select {
	case <-p.decided:
		stop()
		return p, p.err == nil, p.err
	default:
		stop()
		b.then(func(time.Time) {})
		return p, false, nil
	}
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
					p := new(Pass)
					err := b.enter(t.Context(), Repeatable, p)
					if err != nil {
						t.Error(err)
					}
					b.mu.Lock()
					passed = append(passed, time.Since(began))
					b.mu.Unlock()
					heard(b, p)
				})
			}
			synctest.Wait() // those that --rate lets through have left
			early := len(passed)
			b.Hold(7 * time.Second)
			group.Wait()
			for i, at := range passed[early:] {
				if at < 7*time.Second || perSecond > 0 && (at-7*time.Second-time.Duration(i)*time.Second/4).Abs() > slipping {
					t.Errorf("at %v a second, request %d left after %v", perSecond, i, at)
				}
			}
		})
	}
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
					p := new(Pass)
					err := b.enter(t.Context(), Repeatable, p)
					if err != nil {
						t.Error(err)
					}
					time.Sleep(time.Second)
					heard(b, p)
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
		silent(b, passes(t, b, Repeatable))
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for {
					p := new(Pass)
					err := b.enter(t.Context(), Repeatable, p)
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
						heard(b, p)
						passed.Add(1)
						return
					}
					silent(b, p)
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

// In a silence the probe alone tells something: what left before it has ended first, however it ended. faults 46, 139
func TestStaleAnswersDoNotEndASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 4, 0)
		slow, slower, first := passes(t, b, Repeatable), passes(t, b, Repeatable), passes(t, b, Repeatable)
		silent(b, first)
		heard(b, slow)
		if _, passed, _ := b.tryNow(Repeatable); passed {
			t.Error("a probe passes beside what left before the silence")
		}
		silent(b, slower)
		probe := passes(t, b, Repeatable)
		if _, passed, _ := b.tryNow(Repeatable); !probe.probe || passed {
			t.Error("a second request passes beside the probe")
		}
		heard(b, probe)
		if one, other := passes(t, b, Repeatable), passes(t, b, Repeatable); one.probe || other.probe {
			t.Error("the answer to the probe does not end the silence")
		}
	})
}

// Of two addresses one may be silent and the other answer every probe: that is no reason to hurry. fault 33
func TestSilencesThatFollowOneAnotherPauseLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 4, 0)
		began, tries := time.Now(), 0
		for time.Since(began) < 10*time.Minute {
			p := new(Pass)
			err := b.enter(t.Context(), Repeatable, p)
			if err != nil {
				t.Fatal(err)
			}
			if p.probe {
				heard(b, p)
				continue
			}
			silent(b, p)
			tries++
		}
		if tries < 20 || tries > 90 {
			t.Errorf("%d tries in ten minutes", tries)
		}
		time.Sleep(time.Minute)
		for range 40 {
			heard(b, passes(t, b, Repeatable))
		}
		silent(b, passes(t, b, Repeatable))
		if !passes(t, b, Repeatable).probe {
			t.Error("after many answers the first probe waits, too")
		}
	})
}

func TestBreakerGivesUpAfterMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(5*time.Minute, 64, 0)
		began := time.Now()
		for {
			p := new(Pass)
			err := b.enter(t.Context(), Repeatable, p)
			if err != nil {
				t.Fatal(err)
			}
			if silent(b, p); b.Over() != nil {
				break
			}
		}
		if waited := time.Since(began); waited != 5*time.Minute {
			t.Errorf("gave up after %v, want 5m", waited)
		}
		if err := b.enter(t.Context(), Repeatable, new(Pass)); err != error(b.Over()) {
			t.Errorf("afterwards: %v", err)
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
				if err := b.enter(ctx, Create, new(Pass)); !errors.Is(err, ErrStopping) {
					t.Errorf("enter: %v, want ErrStopping", err)
				}
			})
		}
		p := passes(t, b, Create)
		wait() // for a place
		synctest.Wait()
		heard(b, p)
		wait() // for what the first create has shown
		b.Hold(10 * time.Minute)
		wait() // for the service
		synctest.Wait()
		stop()
		group.Wait()
	})
}
