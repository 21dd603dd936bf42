package delivery

import (
	"context"
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
	fault   *leadapi.Error // of the last request without an answer; nil: none yet
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
	b.then(func(time.Time) { b.queue = append(b.queue, w) })
	select {
	case <-w.decided:
	case <-stopping.Done():
		b.then(func(time.Time) {})
	}
	return w.pass, w.err
}

// then changes the breaker and lets out who may leave after that.
func (b *Breaker) then(change func(now time.Time)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	change(now)
	b.admit(now)
}

// admit goes through the queue and lets out who may leave, or never will. It looks at stopping under the lock: what
// ends the run because of an answer does so before it lets another create pass.
func (b *Breaker) admit(now time.Time) {
	held := hurdle{}
	b.queue = slices.DeleteFunc(b.queue, func(w *waiter) bool {
		switch {
		case w.stopping.Err() != nil || b.over(w.kind):
			w.err = ErrStopping
		case held.why != nothing || w.kind == Create && !b.creates.may(): // the others need not wait for what a create has shown
			return false
		default:
			if held = b.hurdle(now); held.why != nothing {
				return false
			}
			w.pass = b.leave(w.kind, now)
		}
		close(w.decided)
		return true
	})
	if held.why != moment {
		return
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(held.wait, func() { b.then(func(time.Time) {}) })
	}
	b.timer.Reset(held.wait)
}

// hurdle is what keeps a request from leaving.
type hurdle struct {
	why  obstacle
	wait time.Duration // for a moment
}

type obstacle uint8

const (
	nothing obstacle = iota
	moment           // it is too early
	place            // as many are under way as may be
	answer           // what another one is answered decides
)

// hurdle is what keeps any request from leaving now.
func (b *Breaker) hurdle(now time.Time) hurdle {
	if d := max(b.opens.Sub(now), b.contact.probeAt.Sub(now)); d > 0 {
		return hurdle{moment, d}
	}
	switch {
	case b.load.inFlight >= b.load.limit:
		return hurdle{why: place}
	case b.contact.probing || b.load.inFlight >= int(b.load.window):
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

// back takes a pass back with the error that its request ended with, nil for none; again says that a create answered so
// may be sent again. Where the answer asks to wait, all wait: for backoff, unless it says how long.
func (b *Breaker) back(p Pass, e *leadapi.Error, again bool, backoff time.Duration) {
	if e != nil && e.AsksToWait() {
		b.throttle(waitOf(e, backoff)) // before the place is another's
	}
	b.then(func(now time.Time) {
		b.load.inFlight--
		switch {
		case e == nil:
			b.load.bore()
			b.contact.heard(p)
		case unsent(e):
			b.contact.unused(p)
		case e.Op == "token" || e.Status == 0:
			b.silence(p, e, now)
		default:
			b.creates.ask = b.creates.ask || p.kind == Create && e.Unavailable() && !again
			if e.AsksToWait() || e.Unavailable() {
				b.load.failed(p, now)
			} else {
				b.load.bore()
			}
			b.contact.heard(p)
		}
	})
}

// silence notes a request that got no answer. A create that may have arrived has the next ones ask first, and the
// others need not wait.
func (b *Breaker) silence(p Pass, e *leadapi.Error, now time.Time) {
	b.fault = e
	doubt := p.kind == Create && e.Left()
	b.creates.ask = b.creates.ask || doubt
	if doubt && !p.probe {
		return
	}
	b.contact.unheard(p, now, b.MaxWait)
}

// answers notes that the service has answered what was asked before a create: creates may leave again.
func (b *Breaker) answers() { b.then(func(time.Time) { b.creates.ask = false }) }

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
	rows = b.others + b.load.inFlight - b.load.limit
	if len(b.queue) == 0 {
		return rows, true
	}
	switch b.hurdle(time.Now()).why {
	case moment:
		return rows, true
	case place:
		return rows + len(b.queue), true
	}
	return 0, false
}

// backoffFor is how long the n-th retry of a row waits, n from 1.
func backoffFor(n int) time.Duration { return jitter(min(firstBackoff<<min(n-1, 10), maxBackoff)) }

// jitter spreads d over [d/2, d], so that rows that failed together do not come back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
