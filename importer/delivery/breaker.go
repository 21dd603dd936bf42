package delivery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"leadferry/leadapi"
)

// Breaker is where every request waits before it leaves, in one queue, and the one place that bounds what is in flight.
// What the service asked to wait holds back everybody.
type Breaker struct {
	MaxWait time.Duration       // how long the service may stay silent; to be changed while nothing is under way only
	Asked   func(time.Duration) // is told of waits that the service asks for

	mu       sync.Mutex
	queue    []*Pass     // in the order in which they came
	timer    *time.Timer // looks at the queue again
	limit    int         // requests in flight at most
	inFlight int
	most     int       // that were in flight at once
	opens    time.Time // nothing leaves before
	silence  silence
	creates  creates
	pace     pace
	ended    *End // why nothing leaves any more; nil: it does
	shut     bool // no create leaves any more, since the run stops
}

// silence is a time in which the service gives no answer, any at all. Only a probe's answer ends it.
type silence struct {
	lasts   bool
	since   time.Time      // when it began
	fault   *leadapi.Error // why its last request got no answer
	backoff time.Duration  // before the next probe; none before the first: one broken connection is no reason to pause
}

// Kind says whether a request may be sent again although it may have been applied: a create may not.
type Kind uint8

const (
	Repeatable Kind = iota // an update, a sign-in
	Create
)

// Pass is what a request waits for, and holds while it is under way.
type Pass struct {
	kind     Kind
	getFirst bool // it is not for a create before the service has answered a GET
	alone    bool // a create that is sent alone
	probe    bool // of a silence

	stopping context.Context
	decided  chan struct{} // closed once it may leave, or never will
	err      error         // why it never will
}

// NewBreaker lets at most limit requests be under way, and perSecond of them leave in a second; 0: any number.
func NewBreaker(maxWait time.Duration, limit int, perSecond float64) *Breaker {
	b := &Breaker{MaxWait: maxWait, Asked: func(time.Duration) {}, limit: max(limit, 1)}
	b.timer = time.AfterFunc(maxWait, func() { b.then(func(time.Time) {}) })
	if perSecond > 0 {
		b.pace.every = time.Duration(float64(time.Second) / perSecond)
	}
	return b
}

// enter waits until a request may leave, and makes p its pass. It fails with ErrStopping once stopping has ended, and
// with an *End once the silence has lasted too long or, for creates, too many left doubt.
func (b *Breaker) enter(stopping context.Context, kind Kind, p *Pass) error {
	*p = Pass{kind: kind, stopping: stopping, decided: make(chan struct{})}
	b.then(func(time.Time) { b.queue = append(b.queue, p) })
	select {
	case <-p.decided:
	case <-stopping.Done():
		b.then(func(time.Time) {})
	}
	return p.err
}

// then changes the breaker and lets out who may leave after that.
func (b *Breaker) then(change func(now time.Time)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	change(now)
	b.admit(now)
}

// admit lets out of the queue who may leave, or never will, until all others have to wait. It looks at stopping under
// the lock: what ends the run because of an answer does so before it lets another create leave.
func (b *Breaker) admit(now time.Time) {
	wait, full := time.Duration(0), false
	b.queue = slices.DeleteFunc(b.queue, func(p *Pass) (out bool) {
		create := p.kind == Create
		switch {
		case p.stopping.Err() != nil:
			p.err = ErrStopping
		case full:
			return false
		case b.ended != nil:
			p.err = b.ended
		case create && b.creates.doubts >= MostDoubts:
			p.err = onlyDoubts
		case create && !b.creates.freely && b.creates.inFlight > 0: // the others need not wait for a create
			return false
		default:
			if wait, full = b.holds(now); full {
				return false
			}
			b.noteSent(p, now)
		}
		close(p.decided)
		return true
	})
	if wait > 0 {
		b.timer.Reset(wait)
	}
}

// holds reports whether no request may leave now, and for how long; 0: until another one ends. In a silence one request
// at a time finds out, once those from before it have ended.
func (b *Breaker) holds(now time.Time) (wait time.Duration, all bool) {
	if b.inFlight >= b.limit || b.silence.lasts && b.inFlight > 0 {
		return 0, true
	}
	wait = max(b.opens.Sub(now), b.pace.wait(now), 0)
	return wait, wait > 0
}

// noteSent notes a request that is sent now. A create that probes asks first.
func (b *Breaker) noteSent(p *Pass, now time.Time) {
	b.inFlight++
	b.most = max(b.most, b.inFlight)
	b.pace.leave(now)
	p.probe = b.silence.lasts
	if p.kind == Create {
		b.creates.inFlight++
		p.alone, p.getFirst = !b.creates.freely, b.creates.getFirst || p.probe
	}
}

// Leaves is asked just before a request's first byte leaves: it may have waited for a token or a connection since.
func (b *Breaker) Leaves(kind string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil || time.Now().Before(b.opens) {
		return false
	}
	return kind != "create" || !b.shut && !b.creates.getFirst && (b.creates.freely || b.creates.inFlight == 1)
}

// Shut lets no create leave any more that has passed but not left, since the run stops.
func (b *Breaker) Shut() { b.then(func(time.Time) { b.shut = true }) }

// back takes a pass back with the error that its request ended with, or nil. Where the answer asks to wait, all wait:
// for backoff, unless it says how long. A request that was not even tried says nothing of the service.
func (b *Breaker) back(p *Pass, err error, backoff time.Duration) {
	e, failed := errors.AsType[*leadapi.Error](err)
	if failed && e.AsksToWait() { // before the place is another's
		if e.HasRetryAfter {
			backoff = max(e.RetryAfter, leastThrottle)
		}
		b.Hold(backoff)
		b.Asked(backoff)
	}
	b.then(func(now time.Time) {
		b.inFlight--
		switch {
		case err == nil, failed && e.Status != 0 && e.Op != "token" && !(e.Op == "reach" && e.Unavailable()):
			b.answered(p, failed && e.Unavailable())
		case failed && e.Reason != leadapi.ReasonHeld && e.Reason != leadapi.ReasonRefused:
			b.unanswered(p, e, now)
		}
	})
}

// answered notes a request that got an answer, any at all. After a create's 503 the next ones ask first.
func (b *Breaker) answered(p *Pass, unavailable bool) {
	b.creates.getFirst = !p.getFirst && (b.creates.getFirst || p.kind == Create && unavailable)
	if p.probe {
		b.silence.lasts = false
	} else if !b.silence.lasts {
		b.silence.backoff /= 2
	}
}

// unanswered notes a request that got none. A create that may have arrived has the next ones ask first, and the others
// need not wait. In a silence only a probe says more than what is known.
func (b *Breaker) unanswered(p *Pass, e *leadapi.Error, now time.Time) {
	doubt := p.kind == Create && e.Left()
	b.creates.getFirst = b.creates.getFirst || doubt
	s := &b.silence
	if !p.probe && (doubt || s.lasts) {
		return
	}
	if !s.lasts {
		s.lasts, s.since = true, now
	}
	s.fault = e
	left := b.MaxWait - now.Sub(s.since)
	if left <= 0 {
		b.ended = unreached(e)
	}
	b.opens = latest(b.opens, now.Add(min(jitter(s.backoff), left)))
	s.backoff = min(max(2*s.backoff, firstBackoff), maxProbing)
}

// Conclude says what a create has shown of the service, once it is known and durable; then its pass is used up. Until
// then others may have to wait for it.
func (b *Breaker) Conclude(p *Pass, shown Proof) {
	if p.kind == Create && p.err == nil {
		p.kind = Repeatable
		b.then(func(time.Time) { b.creates.back(p.alone, shown) })
	}
}

// Beware begins a run after one that stopped for doubts: a GET, then one create, the last one if it leaves doubt.
func (b *Breaker) Beware() { b.creates.getFirst, b.creates.doubts = true, MostDoubts-1 }

// Hold closes the breaker for d, for which the service asked somebody to wait.
func (b *Breaker) Hold(d time.Duration) {
	b.then(func(now time.Time) { b.opens = latest(b.opens, now.Add(min(d, leadapi.MaxRetryAfter))) })
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Over is why nothing leaves any more, or no create; nil while all may.
func (b *Breaker) Over() *End {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil && b.creates.doubts >= MostDoubts {
		return onlyDoubts
	}
	return b.ended
}

// Paused says in a word why requests wait now, or nothing.
func (b *Breaker) Paused() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.silence.lasts:
		return "no usable answer, trying with one request at a time: " + b.silence.fault.Error()
	case time.Now().Before(b.opens):
		return "the service asked to wait"
	case b.creates.doubts > 0:
		return "a create left doubt, trying with one at a time"
	}
	return ""
}

// InFlight is how many requests are under way, and how many were at most.
func (b *Breaker) InFlight() (now, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inFlight, b.most
}

// Proof is what a create has shown of the service.
type Proof uint8

const (
	NothingShown Proof = iota // it was not applied, and may be sent again
	Usable                    // a lead ID, or a refusal
	Doubtful                  // an answer that leaves doubt, or none
)

// creates knows whether the service answers creates in a usable way.
type creates struct {
	freely   bool // the last one left no doubt; else each is sent alone until one leaves none
	inFlight int
	doubts   int  // in a row
	getFirst bool // one got no answer, or a 503: none leaves before the service has answered a GET
}

// back notes what a create has shown that was sent alone, or beside others.
func (c *creates) back(alone bool, shown Proof) {
	c.inFlight--
	switch alone = alone && !c.freely; {
	case shown == Usable && alone:
		c.freely, c.doubts = true, 0
	case shown == Doubtful && c.freely:
		c.freely, c.doubts = false, 1
	case shown == Doubtful && alone:
		c.doubts++
	}
}

const (
	maxLate  = time.Second           // a fleet's grant is used no later: others may have sent what this worker had not
	slipping = 10 * time.Millisecond // a request that leaves so late makes the next one no later
)

// pace spaces requests evenly: by --rate, or by the pieces of time that a fleet grants this worker.
type pace struct {
	every time.Duration // between requests; 0: any number may leave
	next  time.Time     // no request leaves before
	ask   func()        // for another grant; nil: the rate is this worker's alone
	asked bool          // one is on its way
	left  int           // requests of the last grant
	from  time.Time     // when they may leave
}

// ShareRate has Grant alone let requests leave. ask is told when more is wanted; it must not wait.
func (b *Breaker) ShareRate(ask func()) { b.pace.ask = ask }

// Grant lets n requests leave after a while, evenly spaced, and with them what is left of the grant before.
func (b *Breaker) Grant(n int, after time.Duration) {
	b.then(func(now time.Time) { b.pace.left, b.pace.from, b.pace.asked = b.pace.left+n, now.Add(after), false })
}

// wait is how long a request has to wait, 0 or less when it may leave.
func (s *pace) wait(now time.Time) time.Duration {
	if s.ask == nil {
		return s.next.Sub(now)
	}
	if now.Sub(s.from) > maxLate {
		s.left = 0
	}
	if s.left <= 1 && !s.asked {
		s.asked = true
		s.ask()
	}
	if s.left == 0 {
		return maxBackoff // the next grant looks at the queue again
	}
	return max(s.next.Sub(now), s.from.Sub(now))
}

func (s *pace) leave(now time.Time) {
	s.left = max(s.left-1, 0)
	s.next = latest(s.next, now.Add(-slipping)).Add(s.every)
}
