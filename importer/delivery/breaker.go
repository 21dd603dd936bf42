package delivery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"leadferry/leadapi"
)

// The breaker's measures of time.
const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
	maxProbing   = 15 * time.Second // between probes: with reachLimit, a run goes on within 30 s of a silence's end
	reachLimit   = 10 * time.Second // for an answer, any at all
)

// Breaker is where every request waits before it leaves, in one queue. Nobody passes while the service asked to wait;
// one at a time does while it gives no answers (contact), else as many as it bears (load) and --rate allows (pace); and
// creates one at a time until one has left no doubt (creates). Each of these is a small machine that knows neither
// clock nor lock.
type Breaker struct {
	MaxWait time.Duration       // how long the service may stay silent; it changes while nothing is under way, or not at all
	Asked   func(time.Duration) // told of waits that the service asks for; nil: nobody else sends to it

	mu      sync.Mutex
	queue   []*waiter   // requests that may not leave yet, in the order in which they came
	timer   *time.Timer // looks at the queue again; nil: none was needed yet
	others  int         // rows that will come into the queue as soon as they have a place of their own
	opens   time.Time   // nobody passes before
	contact contact
	load    load
	creates creates
	pace    pace
	fault   *leadapi.Error // of the last request without any answer; nil: none yet
	ended   *End           // why nothing passes any more; nil: it does
}

// Kind says whether a request may be sent again although it may have been applied.
type Kind uint8

// A create may not. An update and a sign-in may.
const (
	Repeatable Kind = iota
	Create
)

// waiter is a request in the queue.
type waiter struct {
	kind     Kind
	stopping context.Context
	decided  chan struct{} // closed once it may leave, or never will
	pass     Pass
	err      error
}

// Pass is what a request holds while it is under way.
type Pass struct {
	kind    Kind
	ask     bool      // not to be used for a create before the service has answered something that can make nothing
	single  bool      // a create that is sent alone
	probe   bool      // of a silence
	silence int       // which one, or the last before it left
	since   time.Time // when it left
}

// NewBreaker makes one that lets at most limit requests be under way, and perSecond of them leave in a second; 0: any
// number.
func NewBreaker(maxWait time.Duration, limit int, perSecond float64) *Breaker {
	limit = max(limit, 1)
	b := &Breaker{MaxWait: maxWait, load: load{limit: limit, window: float64(limit)}}
	if perSecond > 0 {
		b.pace.every = time.Duration(float64(time.Second) / perSecond)
	}
	return b
}

// enter waits until a request may leave. It fails with ErrStopping once stopping has ended, the silence has lasted too
// long or, for creates, too many left doubt.
func (b *Breaker) enter(stopping context.Context, kind Kind) (Pass, error) {
	w := &waiter{kind: kind, stopping: stopping, decided: make(chan struct{})}
	b.mu.Lock()
	b.queue = append(b.queue, w)
	b.admit()
	b.mu.Unlock()
	select {
	case <-w.decided:
	case <-stopping.Done():
		b.mu.Lock()
		b.admit()
		b.mu.Unlock()
	}
	return w.pass, w.err
}

// admit goes through the queue and lets out who may leave, or never will. It looks at stopping under the lock: what
// ends the run because of an answer does so before it lets another create pass.
func (b *Breaker) admit() {
	now, held := time.Now(), hurdle{}
	b.queue = slices.DeleteFunc(b.queue, func(w *waiter) bool {
		switch {
		case w.stopping.Err() != nil || b.over(w.kind):
			w.err = ErrStopping
		case held.why != nothing:
			return false
		case w.kind == Create && !b.creates.may():
			return false // the others need not wait for what a create has shown
		default:
			if held = b.hurdle(now); held.why != nothing {
				return false
			}
			w.pass = b.leave(w.kind, now)
		}
		close(w.decided)
		return true
	})
	if held.why == moment && b.timer == nil {
		b.timer = time.AfterFunc(held.wait, func() { b.mu.Lock(); defer b.mu.Unlock(); b.admit() })
	} else if held.why == moment {
		b.timer.Reset(held.wait)
	}
}

// obstacle is what keeps a request from leaving.
type obstacle uint8

const (
	nothing obstacle = iota
	moment           // it is too early
	place            // as many are under way as may be
	answer           // what another one is answered decides
)

type hurdle struct {
	why  obstacle
	wait time.Duration // for a moment
}

// hurdle is what keeps any request from leaving now.
func (b *Breaker) hurdle(now time.Time) hurdle {
	if d := max(b.opens.Sub(now), b.contact.probeAt.Sub(now)); d > 0 {
		return hurdle{moment, d}
	}
	switch {
	case b.load.inFlight >= b.load.limit:
		return hurdle{why: place}
	case b.contact.probing || b.load.full():
		return hurdle{why: answer}
	}
	if d := b.pace.wait(now); d > 0 {
		return hurdle{moment, d}
	}
	return hurdle{}
}

func (b *Breaker) over(kind Kind) bool {
	return b.ended != nil || b.contact.state == gone || kind == Create && b.creates.state == tripped
}

// leave takes down that a request leaves.
func (b *Breaker) leave(kind Kind, now time.Time) Pass {
	p := Pass{kind: kind, since: now}
	b.pace.leave(now)
	b.contact.leave(&p)
	b.load.leave()
	if kind == Create {
		b.creates.leave(&p)
		p.ask = p.ask || p.probe
	}
	return p
}

// Leaves reports whether a request that has passed may still leave, just before its first byte does: it may have waited
// for a token or a connection since.
func (b *Breaker) Leaves(kind string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended == nil && !time.Now().Before(b.opens) && (kind != "create" || b.creates.sends())
}

// then changes the breaker and lets out who may leave after that.
func (b *Breaker) then(change func(now time.Time)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(time.Now())
	b.admit()
}

// answered takes a pass back after an answer.
func (b *Breaker) answered(p Pass) {
	b.then(func(now time.Time) { b.load.bore(); b.contact.heard(p, now) })
}

// overloaded takes a pass back after an answer of a service that has too much to do.
func (b *Breaker) overloaded(p Pass) {
	b.then(func(now time.Time) { b.load.failed(p, now); b.contact.heard(p, now) })
}

// reached takes a pass back after an answer to what was asked before a create: creates may leave again.
func (b *Breaker) reached(p Pass) {
	b.then(func(now time.Time) { b.creates.ask = false; b.load.inFlight--; b.contact.heard(p, now) })
}

// unused takes back a pass that shows nothing: nothing was sent with it, or a create whose doubt is told by Conclude.
func (b *Breaker) unused(p Pass) {
	b.then(func(time.Time) { b.load.inFlight--; b.contact.unused(p) })
}

// unanswered takes a pass back after silence, and why; left says that some of the request has left. Waiting longer than
// MaxWait since it began is too long: false.
func (b *Breaker) unanswered(p Pass, left bool, why *leadapi.Error) (goesOn bool) {
	b.then(func(now time.Time) {
		b.fault = why
		b.load.inFlight--
		b.contact.unheard(p, left, now, b.MaxWait)
		goesOn = b.contact.state != gone
	})
	return goesOn
}

// Conclude says what a create has shown of the service, once it is known; then p is used up. Until then others may have
// to wait for it.
func (b *Breaker) Conclude(p *Pass, shown Proof) {
	if p.kind == Create {
		b.then(func(time.Time) { b.creates.back(*p, shown) })
	}
	*p = Pass{}
}

// Beware makes the breaker that of a run after one that stopped for doubts: a GET goes first, then one create, and
// where that leaves doubt, too, it was the last.
func (b *Breaker) Beware() { b.creates.ask, b.creates.wary = true, true }

// askFirst notes, before anybody else may pass, whether the service is asked before the next create.
func (b *Breaker) askFirst(ask bool) { b.then(func(time.Time) { b.creates.ask = ask }) }

// end lets nothing pass any more.
func (b *Breaker) end(why *End) { b.then(func(time.Time) { b.ended = why }) }

// throttle closes the breaker for everybody for d, as the service asked.
func (b *Breaker) throttle(d time.Duration) {
	if b.Hold(d) && b.Asked != nil {
		b.Asked(d)
	}
}

// Hold closes the breaker for d, for which the service asked somebody to wait, and reports whether that is longer than
// it would have been closed anyway.
func (b *Breaker) Hold(d time.Duration) (longer bool) {
	b.then(func(now time.Time) {
		until := now.Add(min(d, leadapi.MaxRetryAfter))
		if longer = until.After(b.opens); longer {
			b.opens = until
		}
	})
	return longer
}

// ShareRate makes the breaker keep to a rate that it shares with others: nothing leaves but what Grant lets leave. ask
// is told when more is wanted; it must not wait.
func (b *Breaker) ShareRate(perSecond float64, ask func()) {
	b.pace = pace{every: time.Duration(float64(time.Second) / perSecond), ask: ask}
}

// Grant lets n requests leave from a time on, evenly spaced.
func (b *Breaker) Grant(n int, after time.Duration) {
	b.then(func(now time.Time) {
		b.pace.pieces, b.pace.asked = append(b.pace.pieces, piece{now.Add(after), n}), false
	})
}

// InFlight is how many requests are under way, and how many were at most.
func (b *Breaker) InFlight() (now, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.load.inFlight, b.load.most
}

// WhileWaiting counts a row among those that wait for a place, as long as wait takes.
func (b *Breaker) WhileWaiting(wait func()) {
	b.mu.Lock()
	b.others++
	b.mu.Unlock()
	wait()
	b.mu.Lock()
	b.others--
	b.mu.Unlock()
}

// Ahead is how many rows wait for nothing but a place, less the places that are free. It knows none where some wait for
// what an answer brings, which may have to be durable first.
func (b *Breaker) Ahead() (rows int, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.load.limit - b.load.inFlight
	if len(b.queue) == 0 {
		return b.others - free, true
	}
	switch b.hurdle(time.Now()).why {
	case moment:
		return b.others - free, true
	case place:
		return b.others + len(b.queue) - free, true
	}
	return 0, false
}

// Over is why nothing passes any more, or nil.
func (b *Breaker) Over() *End {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended != nil:
		return b.ended
	case b.creates.state == tripped && b.creates.wary:
		return &End{
			Reason: "the run before stopped for doubts, and the first create of this one left doubt, too",
			Hint:   "find out from its error why the service gives no usable answers, and settle what is in doubt, before going on",
		}
	case b.creates.state == tripped:
		return &End{
			Reason: fmt.Sprintf("%d creates in a row, each sent alone, left doubt whether a lead was made", MostDoubts),
			Hint:   "find out from their errors why the service gives no usable answers before going on; what is in doubt stays so until a person has looked",
		}
	case b.contact.state != gone:
		return nil
	case b.fault != nil && b.fault.Unavailable():
		return &End{Reason: "the service has answered with HTTP 503 for as long as --max-wait allows"}
	case b.fault != nil:
		return &End{Reason: "the service has given no answer for as long as --max-wait allows: " + b.fault.Message, Hint: b.fault.Hint}
	}
	return &End{Reason: "the service has given no answer for as long as --max-wait allows"}
}

// Paused says in a word why requests wait now, or nothing.
func (b *Breaker) Paused() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	const singleProbe = ", trying with one request at a time"
	switch {
	case time.Now().Before(b.opens):
		return "the service asked to wait"
	case b.contact.state == silent && b.fault != nil && b.fault.Unavailable():
		return "the service answers with HTTP 503" + singleProbe
	case b.contact.state == silent && b.fault != nil:
		return "no answer from the service" + singleProbe + ": " + b.fault.Message
	case b.contact.state == silent:
		return "no answer from the service" + singleProbe
	case b.creates.state == singly && b.creates.doubts > 0:
		return "a create left doubt, trying with one at a time"
	}
	return ""
}

// backoffFor is how long the n-th retry of a row waits, n from 1.
func backoffFor(n int) time.Duration { return jitter(min(firstBackoff<<min(n-1, 10), maxBackoff)) }

// jitter spreads d over [d/2, d], so that rows that failed together do not come back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
