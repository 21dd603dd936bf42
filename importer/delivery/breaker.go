package delivery

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"leadferry/leadapi"
)

// The breaker's measures of time.
const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
	maxProbing   = 15 * time.Second // between probes: with reachLimit, a run goes on within 30 s of a silence's end
	reachLimit   = 10 * time.Second // for an answer, any at all
)

// Breaker is where every request waits before it leaves. Nobody passes while the service asked to wait; one at a time
// does while it gives no answers (contact), else as many as it bears (load) and --rate allows (pace); and creates one at a
// time until one has left no doubt (creates). Each of these is a small machine that knows neither clock nor lock.
type Breaker struct {
	MaxWait time.Duration       // how long the service may stay silent; it changes while nothing is under way, or not at all
	Asked   func(time.Duration) // told of waits that the service asks for; nil: nobody else sends to it

	places  chan struct{} // one for each request that has passed, or tries to
	waiting atomic.Int64  // rows that could be sent if there were a place

	mu      sync.Mutex
	opens   time.Time // nobody passes before
	contact contact
	fault   *leadapi.Error // of the last request without any answer; nil: none yet
	load    load
	creates creates
	pace    pace
	ended   *End          // why nothing passes any more; nil: it does
	hoping  atomic.Int64  // requests that wait for what another one's answer may bring
	changed chan struct{} // closed and replaced when those who wait must look again
}

// Pass is what a request holds while it is under way.
type Pass struct {
	create  bool
	ask     bool      // not to be used for a create before the service has answered something that can make nothing
	single  bool      // a create that is sent alone
	probe   bool      // of a silence
	silence int       // which one, or the last before it left
	since   time.Time // when it left
}

// NewBreaker makes one that lets at most limit requests be under way, and perSecond of them leave in a second; 0: any number.
func NewBreaker(maxWait time.Duration, limit int, perSecond float64) *Breaker {
	limit = max(limit, 1)
	b := &Breaker{MaxWait: maxWait, places: make(chan struct{}, limit), changed: make(chan struct{})}
	b.load = load{limit: limit, window: float64(limit)}
	if perSecond > 0 {
		b.pace.limiter = rate.NewLimiter(rate.Limit(perSecond), 1)
	}
	return b
}

// enter waits until a request may leave. It fails with ErrStopping once stopping has ended, the silence has lasted too
// long or, for creates, too many left doubt.
func (b *Breaker) enter(stopping context.Context, create bool) (Pass, error) {
	for {
		b.waiting.Add(1)
		select {
		case b.places <- struct{}{}: // in the order in which they came; what follows is for few
			b.waiting.Add(-1)
		case <-stopping.Done():
			b.waiting.Add(-1)
			return Pass{}, ErrStopping
		}
		p, h, err := b.try(stopping, time.Now(), create)
		if err == nil && h.wait == 0 {
			return p, nil
		}
		<-b.places
		if err != nil {
			return Pass{}, err
		}
		b.await(stopping, h)
	}
}

// hurdle is why a request may not leave yet.
type hurdle struct {
	wait    time.Duration // at most
	hopes   bool          // for another one's answer
	paced   bool          // by --rate
	changed <-chan struct{}
}

func (b *Breaker) await(stopping context.Context, h hurdle) {
	timer := time.NewTimer(h.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.changed:
	case <-stopping.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.hopes {
		b.hoping.Add(-1)
	}
	if h.paced {
		b.pace.queued--
	}
}

// try lets a request through or says what it has to wait for. It looks at stopping under the lock: what ends the run
// because of an answer does so before it lets another create pass.
func (b *Breaker) try(stopping context.Context, now time.Time, create bool) (Pass, hurdle, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if stopping.Err() != nil || b.ended != nil || b.contact.state == gone || create && b.creates.state == tripped {
		return Pass{}, hurdle{}, ErrStopping
	}
	if d := max(b.opens.Sub(now), b.contact.probeAt.Sub(now)); d > 0 {
		return Pass{}, hurdle{wait: d, changed: b.changed}, nil
	}
	if b.contact.probing || b.load.full() || create && !b.creates.may() {
		b.hoping.Add(1)
		return Pass{}, hurdle{wait: maxBackoff, hopes: true, changed: b.changed}, nil
	}
	if d := b.pace.take(now); d > 0 {
		return Pass{}, hurdle{wait: d, paced: true, changed: b.changed}, nil
	}
	p := Pass{create: create, since: now}
	b.contact.leave(&p)
	b.load.inFlight++
	b.load.most = max(b.load.most, b.load.inFlight)
	if create {
		b.creates.leave(&p)
		p.ask = p.ask || p.probe
	}
	return p, hurdle{}, nil
}

// Leaves reports whether a request that has passed may still leave, just before its first byte does: it may have waited
// for a token or a connection since.
func (b *Breaker) Leaves(kind string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.opens.IsZero() && time.Now().Before(b.opens) {
		return false
	}
	return b.ended == nil && (kind != "create" || b.creates.sends())
}

// answered takes a pass back after an answer.
func (b *Breaker) answered(p Pass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load.bore()
	b.back(b.contact.heard(p, time.Now()))
}

// overloaded is answered by a service that has too much to do.
func (b *Breaker) overloaded(p Pass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load.failed(p, time.Now())
	b.back(b.contact.heard(p, time.Now()))
}

// Beware makes the breaker that of a run after one that stopped for doubts: a GET goes first, then one create, and where
// that leaves doubt, too, it was the last.
func (b *Breaker) Beware() { b.creates.ask, b.creates.wary = true, true }

// uncertain notes, before anybody else may pass, that a create met no answer or a 503: the service is asked before the next.
func (b *Breaker) uncertain() { b.askFirst(true) }

func (b *Breaker) askFirst(ask bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.creates.ask = ask
}

// reached is answered to what was asked before a create: creates may leave again.
func (b *Breaker) reached(p Pass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.creates.ask = false
	b.back(b.contact.heard(p, time.Now()))
}

// unused takes back a pass that shows nothing: nothing was sent with it, or a create whose doubt is told by conclude.
func (b *Breaker) unused(p Pass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.contact.unused(p)
	b.back(false)
}

// unanswered notes that a request met silence, and why; left says that some of it has left. Waiting longer than maxWait
// since it began is too long: false.
func (b *Breaker) unanswered(p Pass, left bool, why *leadapi.Error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = why
	b.contact.unheard(p, left, time.Now(), b.MaxWait)
	b.back(true)
	return b.contact.state != gone
}

// back frees the place of a request.
func (b *Breaker) back(news bool) {
	b.load.inFlight--
	<-b.places
	if news || b.hoping.Load() > 0 {
		b.wake()
	}
}

// Conclude says what a create has shown of the service, once it is known; then p is used up. Until then others may have
// to wait for it.
func (b *Breaker) Conclude(p *Pass, shown Proof) {
	if !p.create {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := b.creates.back(*p, shown)
	*p = Pass{}
	if changed || b.hoping.Load() > 0 {
		b.wake()
	}
}

// throttle closes the breaker for everybody for d, as the service asked.
func (b *Breaker) throttle(d time.Duration) {
	if b.Hold(d) && b.Asked != nil {
		b.Asked(d)
	}
}

// Hold closes the breaker for d, for which the service asked somebody to wait, and reports whether that is longer than
// it would have been closed anyway.
func (b *Breaker) Hold(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := time.Now().Add(min(d, leadapi.MaxRetryAfter))
	if !until.After(b.opens) {
		return false
	}
	b.opens = until
	b.wake()
	return true
}

// InFlight is how many requests are under way, and how many were at most.
func (b *Breaker) InFlight() (now, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.load.inFlight, b.load.most
}

// WhileWaiting counts a row among those that wait for nothing but a place, as long as wait takes.
func (b *Breaker) WhileWaiting(wait func()) {
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	wait()
}

// Ahead is how many rows wait for nothing but a place, less the places that are free. Where some wait for what an answer
// brings, which may have to be durable first, there are none.
func (b *Breaker) Ahead() int {
	if b.hoping.Load() > 0 {
		return math.MinInt32
	}
	return int(b.waiting.Load()) - (cap(b.places) - len(b.places))
}

// end lets nothing pass any more.
func (b *Breaker) end(why *End) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = why
	b.wake()
}

// Over is why nothing passes any more, or nil.
func (b *Breaker) Over() *End {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended != nil:
		return b.ended
	case b.creates.state == tripped && b.creates.wary:
		return &End{Reason: "the run before stopped for doubts, and the first create of this one left doubt, too", Hint: "find out from its error why the service gives no usable answers, and settle what is in doubt, before going on"}
	case b.creates.state == tripped:
		return &End{
			Reason: fmt.Sprintf("%d creates in a row, each sent alone, left doubt whether a lead was made", MostDoubts),
			Hint:   "find out from their errors why the service gives no usable answers before going on; what is in doubt stays so until a person has looked",
		}
	case b.contact.state == gone:
		end := &End{Reason: "the service has given no answer for as long as --max-wait allows"}
		if b.fault != nil && b.fault.Unavailable() {
			end.Reason = "the service has answered with HTTP 503 for as long as --max-wait allows"
		} else if b.fault != nil {
			end.Reason, end.Hint = end.Reason+": "+b.fault.Message, b.fault.Hint
		}
		return end
	}
	return nil
}

// Paused says in a word why requests wait now, or nothing.
func (b *Breaker) Paused() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case time.Now().Before(b.opens):
		return "the service asked to wait"
	case b.contact.state == silent:
		text := "no answer from the service, trying with one request at a time"
		if b.fault != nil && b.fault.Unavailable() {
			text = "the service answers with HTTP 503, trying with one request at a time"
		} else if b.fault != nil {
			text += ": " + b.fault.Message
		}
		return text
	case b.creates.state == singly && b.creates.doubts > 0:
		return "a create left doubt, trying with one at a time"
	}
	return ""
}

func (b *Breaker) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// backoffFor is how long the n-th retry of a row waits, n from 1.
func backoffFor(n int) time.Duration {
	return jitter(min(firstBackoff<<min(n-1, 10), maxBackoff))
}

// jitter spreads d over [d/2, d], so that rows that failed together do not come
// back together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}
