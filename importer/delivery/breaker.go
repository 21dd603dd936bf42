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

// Breaker is where every request waits before it leaves, in one queue. Four small machines say who may: contact, load,
// pace and creates. What the service asked to wait holds back everybody.
type Breaker struct {
	MaxWait time.Duration       // how long the service may stay silent; it changes while nothing is under way, or not at all
	Asked   func(time.Duration) // told of waits that the service asks for; nil: nobody else sends to it

	mu      sync.Mutex
	queue   []*waiter   // in the order in which they came
	timer   *time.Timer // looks at the queue again; nil: none was needed yet
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
	wait, full := time.Duration(0), false
	b.queue = slices.DeleteFunc(b.queue, func(w *waiter) bool {
		switch {
		case w.stopping.Err() != nil || b.over(w.kind):
			w.err = ErrStopping
		case full || w.kind == Create && !b.creates.may(b.creates.inFlight): // the others need not wait for a create
			return false
		default:
			if wait, full = b.holds(now); full {
				return false
			}
			w.pass = b.leave(w.kind, now)
		}
		close(w.decided)
		return true
	})
	if wait <= 0 {
		return
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(wait, func() { b.then(func(time.Time) {}) })
	}
	b.timer.Reset(wait)
}

// holds reports whether no request may leave now, and for how long; 0: until another one ends.
func (b *Breaker) holds(now time.Time) (wait time.Duration, all bool) {
	if wait = max(b.opens.Sub(now), b.contact.probeAt.Sub(now)); wait > 0 {
		return wait, true
	}
	if b.contact.probing || b.load.inFlight >= int(b.load.window) {
		return 0, true
	}
	wait = max(b.pace.wait(now), 0)
	return wait, wait > 0
}

func (b *Breaker) over(kind Kind) bool {
	return b.ended != nil || b.contact.gone || kind == Create && b.creates.state == tripped
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
	if b.ended != nil || time.Now().Before(b.opens) {
		return false
	}
	return kind != "create" || !b.creates.ask && b.creates.may(b.creates.inFlight-1)
}

// back takes a pass back with the error that its request ended with, nil for none; again says that a create answered so
// may be sent again. Where the answer asks to wait, all wait: for backoff, unless it says how long.
func (b *Breaker) back(p Pass, e *leadapi.Error, again bool, backoff time.Duration) {
	if e != nil && e.AsksToWait() { // before the place is another's
		d := backoff
		if e.HasRetryAfter {
			d = max(e.RetryAfter, leastThrottle)
		}
		b.throttle(d)
	}
	b.then(func(now time.Time) {
		b.load.inFlight--
		switch {
		case e != nil && unsent(e):
			b.contact.unused(p)
			return
		case e != nil && (e.Op == "token" || e.Status == 0):
			b.silence(p, e, now)
			return
		}
		b.contact.heard(p)
		if e != nil && (e.AsksToWait() || e.Unavailable()) {
			b.load.failed(p, now)
			b.creates.ask = b.creates.ask || p.kind == Create && e.Unavailable() && !again
		} else {
			b.load.bore()
		}
	})
}

// silence notes a request that got no answer. A create that may have arrived has the next ones ask first, and the
// others need not wait.
func (b *Breaker) silence(p Pass, e *leadapi.Error, now time.Time) {
	b.fault = e
	doubt := p.kind == Create && e.Left()
	b.creates.ask = b.creates.ask || doubt
	if !doubt || p.probe {
		b.contact.unheard(p, now, b.MaxWait)
	}
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

// throttle closes the breaker for d, as the service asked, and tells the others who send to it.
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

// Ahead is how many requests wait for nothing but a place, less the places that are free. It knows none where some wait
// for what an answer brings, which may have to be durable first.
func (b *Breaker) Ahead() (requests int, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return b.load.inFlight - b.load.limit, true
	}
	wait, all := b.holds(time.Now())
	return len(b.queue) + b.load.inFlight - b.load.limit, all && (wait > 0 || b.load.inFlight >= b.load.limit)
}

// backoffFor is how long the n-th retry of a row waits, n from 1.
func backoffFor(n int) time.Duration { return jitter(min(firstBackoff<<min(n-1, 10), maxBackoff)) }

// jitter spreads d over [d/2, d], so that rows that failed together do not come back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
