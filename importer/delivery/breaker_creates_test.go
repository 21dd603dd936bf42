package delivery

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fault 138
func TestCreatesGoSinglyUntilOneLeavesNoDoubt(t *testing.T) {
	end := func(b *Breaker, p *Pass, shown Proof) { heard(b, p); b.Conclude(p, shown) }
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
			b.then(func(time.Time) { b.creates.getFirst = true })
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
			b.Conclude(p, Doubtful)
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

// What was under way is waited for, and what has passed but not left does not leave. faults 138, 139
func TestAfterADoubtNothingLeavesBesideTheNext(t *testing.T) {
	b := NewBreaker(time.Hour, 8, 0)
	first := passes(t, b, Create)
	heard(b, first)
	b.Conclude(first, Usable)
	doubted, dialling := passes(t, b, Create), passes(t, b, Create)
	other := passes(t, b, Create)
	if !b.Leaves("create") || !b.Leaves("update") {
		t.Error("what has passed cannot leave")
	}
	heard(b, doubted)
	b.Conclude(doubted, Doubtful)
	if b.Leaves("create") || !b.Leaves("update") {
		t.Error("a create leaves that had not left before the doubt, or an update does not")
	}
	for _, p := range []*Pass{dialling, other} {
		if _, passed, _ := b.tryNow(Create); passed {
			t.Error("a create passes beside those that were under way")
		}
		untried(b, p)
		b.Conclude(p, NothingShown)
	}
	passes(t, b, Create)
	if !b.Leaves("create") {
		t.Error("the next one cannot leave")
	}
	b.Hold(time.Hour)
	if b.Leaves("create") || b.Leaves("token") {
		t.Error("something leaves though the service asked to wait")
	}
}

// Whatever a service does: creates that leave doubt are no more than four in a row that were sent alone; none passes
// beside one that was sent alone, nor while the service asked to wait; every place comes back. faults 138, 139
func TestBreakerProperties(t *testing.T) {
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
				} else if p.kind == Create && b.creates.freely && shown == Doubtful {
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
				b.Conclude(p, shown)
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
