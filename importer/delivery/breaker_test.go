package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// passes lets a request pass, which must be possible at once.
func passes(t testing.TB, b *Breaker, kind Kind) *Pass {
	t.Helper()
	p, passed, err := b.tryNow(kind)
	if err != nil || !passed {
		t.Fatalf("it does not pass: %v, %v", passed, err)
	}
	return p
}

// entered waits until an update passes.
func entered(t testing.TB, b *Breaker) *Pass {
	p := new(Pass)
	if err := b.enter(t.Context(), Repeatable, p); err != nil {
		t.Error(err)
	}
	return p
}

// The ends of a request: an answer, no connection, or held back because the run stops.
func heard(b *Breaker, p *Pass)   { b.back(p, nil, 0) }
func silent(b *Breaker, p *Pass)  { b.back(p, unsentError, 0) }
func untried(b *Breaker, p *Pass) { b.back(p, ErrStopping, 0) }

// tryNow lets a request pass if that is possible at once.
func (b *Breaker) tryNow(kind Kind) (p *Pass, passed bool, err error) {
	ctx, stop := context.WithCancel(context.Background())
	p = &Pass{kind: kind, stopping: ctx, decided: make(chan struct{}, 1)}
	b.update(func(time.Time) { b.queue = append(b.queue, p) })
	select {
	case <-p.decided:
		stop()
		return p, p.err == nil, p.err
	default:
		stop()
		b.update(func(time.Time) {})
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
					p := entered(t, b)
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

// Many requests keep --rate together, and those that waited leave no faster than new ones. fault 139
func TestRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 64, 10)
		began := time.Now()
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for range 5 {
					p := entered(t, b)
					time.Sleep(time.Second)
					heard(b, p)
				}
			})
		}
		group.Wait()
		// A request that finds no place under the rate may wait a little longer than necessary.
		if took := time.Since(began); took < 32*time.Second || took > 40*time.Second {
			t.Errorf("320 requests at 10 a second took %v", took)
		}
	})
}

// While the service is silent only one request at a time finds out; an answer lets everybody through. faults 33, 46
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
					p := entered(t, b)
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

// During a silence only the probe counts. It leaves when all earlier requests have ended, in any way. faults 46, 139
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

// One of two addresses may be silent while the other answers every probe. Tries must still get rarer. fault 33
func TestPausesGrowWhenSilencesFollowOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(time.Hour, 4, 0)
		began, tries := time.Now(), 0
		for time.Since(began) < 10*time.Minute {
			p := entered(t, b)
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
			p := entered(t, b)
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

// fault 138
func TestCreatesGoOneAtATimeUntilOneLeavesNoDoubt(t *testing.T) {
	end := func(b *Breaker, p *Pass, shown Proof) { heard(b, p); b.Report(p, shown) }
	alone := func(t *testing.T, b *Breaker) *Pass {
		t.Helper()
		p := passes(t, b, Create)
		if _, passed, _ := b.tryNow(Create); passed {
			t.Fatal("a second create passes")
		}
		end(b, passes(t, b, Repeatable), NothingShown) // links and updates do not wait
		return p
	}
	for _, last := range []Proof{Usable, Doubtful} {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			b := NewBreaker(time.Hour, 8, 0)
			end(b, alone(t, b), Doubtful)
			end(b, alone(t, b), NothingShown) // 429: is sent again
			end(b, alone(t, b), Doubtful)
			b.update(func(time.Time) { b.creates.getFirst = true })
			p := alone(t, b)
			if !p.getFirst {
				t.Error("after a create without any answer the next one does not ask first")
			}
			p.kind = Repeatable // the GET
			heard(b, p)
			p.kind = Create
			if _, passed, _ := b.tryNow(Create); passed {
				t.Error("a create passes before what the one before has shown is known")
			}
			b.Report(p, Doubtful)
			end(b, alone(t, b), last)
			if last == Doubtful {
				if _, _, err := b.tryNow(Create); err != error(b.Over()) || b.Over() == nil {
					t.Errorf("after four in a row: %v, %v", err, b.Over())
				}
				return
			}
			var inFlight []*Pass
			for range 8 {
				inFlight = append(inFlight, passes(t, b, Create))
			}
			for _, p := range inFlight { // all of them count as one
				end(b, p, Doubtful)
			}
			for range MostDoubts - 1 {
				if b.Over() != nil {
					t.Fatal("it gives up too soon")
				}
				end(b, alone(t, b), Doubtful)
			}
			if b.Over() == nil {
				t.Error("it does not give up")
			}
		})
	}
}

// The next create waits for those under way. A create that has passed but not left stays back. faults 138, 139
func TestAfterADoubtTheNextCreateLeavesAlone(t *testing.T) {
	b := NewBreaker(time.Hour, 8, 0)
	first := passes(t, b, Create)
	heard(b, first)
	b.Report(first, Usable)
	doubted, dialling := passes(t, b, Create), passes(t, b, Create)
	other := passes(t, b, Create)
	if !b.MayLeave("create") || !b.MayLeave("update") {
		t.Error("what has passed cannot leave")
	}
	heard(b, doubted)
	b.Report(doubted, Doubtful)
	if b.MayLeave("create") || !b.MayLeave("update") {
		t.Error("a create leaves that had not left before the doubt, or an update does not")
	}
	for _, p := range []*Pass{dialling, other} {
		if _, passed, _ := b.tryNow(Create); passed {
			t.Error("a create passes beside those that were under way")
		}
		untried(b, p)
		b.Report(p, NothingShown)
	}
	passes(t, b, Create)
	if !b.MayLeave("create") {
		t.Error("the next one cannot leave")
	}
	b.Hold(time.Hour)
	if b.MayLeave("create") || b.MayLeave("token") {
		t.Error("something leaves though the service asked to wait")
	}
}

// Whatever the service does: at most four creates in a row that were sent alone leave doubt. No create passes beside
// one of these, no request while the service asked to wait, and every place is given back. faults 138, 139
func TestBreakerKeepsItsLimitsWhateverTheServiceDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 8).Draw(rt, "places")
		b := NewBreaker(time.Hour, limit, 0)
		var inFlight []*Pass
		row, single, opens := 0, 0, time.Time{}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				b.Hold(time.Minute)
				opens = time.Now().Add(time.Minute)
			case 1:
				b.mu.Lock() // a minute goes by
				b.opens, opens = time.Time{}, time.Time{}
				b.mu.Unlock()
			case 2, 3, 4, 5:
				create := rapid.Bool().Draw(rt, "create")
				p, passed, err := b.tryNow(map[bool]Kind{true: Create}[create])
				if err != nil || !passed {
					continue
				}
				if time.Now().Before(opens) || row >= MostDoubts && create || create && single > 0 {
					rt.Fatalf("%+v passes", p)
				}
				if p.alone {
					single++
				}
				inFlight = append(inFlight, p)
			default:
				if len(inFlight) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(inFlight)-1).Draw(rt, "which")
				p := inFlight[i]
				inFlight = append(inFlight[:i], inFlight[i+1:]...)
				shown := rapid.SampledFrom([]Proof{NothingShown, Usable, Doubtful}).Draw(rt, "shown")
				if p.alone {
					single--
					switch shown {
					case Usable:
						row = 0
					case Doubtful:
						row++
					}
				} else if p.kind == Create && b.creates.unlimited && shown == Doubtful {
					row = 1
				}
				switch {
				case shown == Doubtful && rapid.Bool().Draw(rt, "unheard"):
					silent(b, p)
				case shown == NothingShown:
					untried(b, p)
				default:
					heard(b, p)
				}
				b.Report(p, shown)
			}
			if tripped := b.creates.doubts >= MostDoubts; tripped != (row >= MostDoubts) {
				rt.Fatalf("given up: %v, after %d in a row", tripped, row)
			}
			if b.inFlight != len(inFlight) || len(b.queue) > 0 {
				rt.Fatalf("%d in flight of %d, %d in the queue", b.inFlight, len(inFlight), len(b.queue))
			}
		}
	})
}
