package delivery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"leadferry/leadapi"
)

// Breaker is where every request waits before it is sent, in one queue, and where it is sent again. It alone limits
// what is in flight. A wait that the service asks for holds back all requests. It asks the client's errors whether a
// request was applied.
type Breaker struct {
	Settings
	mu    sync.Mutex
	queue []*Pass     // in order of arrival
	timer *time.Timer // looks at the queue again
	places
	opens   time.Time // nothing leaves before
	asks    time.Time // the service asked this worker to wait until then
	silence silence
	creates creates
	pace    pace
	ended   *Stop // why nothing is sent any more, or nil
	shut    bool  // the run stops: no create is sent any more
}

// Settings of a Breaker are changed only while nothing is under way.
type Settings struct {
	Retries int // further tries of a request that was answered and may be sent again
	Resend  ResendOn
	Retried func()                      // is called for each further try
	Reach   func(context.Context) error // gets an answer from the service, any at all, or an error
	MaxWait time.Duration               // of a silent service
}

// places are those of requests in flight.
type places struct{ limit, inFlight, most int }

// silence is a time in which the service answers nothing at all. Only the answer to a probe ends it.
type silence struct {
	lasts   bool
	since   time.Time      // when it began
	fault   *leadapi.Error // why its last request got no answer
	backoff time.Duration  // before the next probe; none before the first: one broken connection is no reason to pause
}

// Kind says whether a request that may have been applied may be sent again: a create may not.
type Kind uint8

const (
	Repeatable Kind = iota // an update, a sign-in
	Create
)

// Pass is what a request waits for, and holds while it is in flight.
type Pass struct {
	kind     Kind
	getFirst bool // for a create: the service has to answer a GET first
	alone    bool // a create that is sent alone
	probe    bool // of a silence

	stopping context.Context
	decided  chan struct{} // closed once it may be sent, or never will be
	err      error         // why it never will
}

// NewBreaker allows limit requests in flight and perSecond requests a second (0: any number).
func NewBreaker(maxWait time.Duration, limit int, perSecond float64) *Breaker {
	b := &Breaker{
		Settings: Settings{MaxWait: maxWait, Retried: func() {}}, places: places{limit: max(limit, 1)},
		pace: pace{tell: func() {}},
	}
	b.timer = time.AfterFunc(maxWait, func() { b.then(func(time.Time) {}) })
	if perSecond > 0 {
		b.pace.every = time.Duration(float64(time.Second) / perSecond)
	}
	return b
}

// enter waits until a request may be sent, and makes p its pass. A create that has to send a GET first does so. It
// returns ErrStopping once stopping has ended, and a *Stop after too long a silence or too many doubts.
func (b *Breaker) enter(stopping context.Context, kind Kind, p *Pass) error {
	for {
		*p = Pass{kind: kind, stopping: stopping, decided: make(chan struct{})}
		b.then(func(time.Time) { b.queue = append(b.queue, p) })
		select {
		case <-p.decided:
		case <-stopping.Done():
			b.then(func(time.Time) {})
		}
		if p.err != nil || !p.getFirst {
			return p.err
		}
		ctx, cancel := context.WithTimeout(stopping, reachLimit)
		err := b.Reach(ctx)
		cancel()
		if stopping.Err() != nil {
			err = ErrStopping
		}
		asked := *p
		asked.kind = Repeatable
		b.back(&asked, err, backoffFor(1))
		b.Conclude(p, NothingShown)
		if e, failed := errors.AsType[*leadapi.Error](err); failed && halts(e) != nil {
			return halts(e)
		}
	}
}

// then changes the breaker, and lets out the requests that may be sent after that.
func (b *Breaker) then(change func(now time.Time)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	change(now)
	b.admit(now)
}

// admit lets requests out of the queue that may be sent, or never will be. It looks at stopping under the lock, so that
// an answer that ends the run does so before the next create is sent.
func (b *Breaker) admit(now time.Time) {
	wait, full := time.Duration(0), false
	b.queue = slices.DeleteFunc(b.queue, func(p *Pass) (out bool) {
		switch {
		case p.stopping.Err() != nil:
			p.err = ErrStopping
		case full:
			return false
		case b.ended != nil:
			p.err = b.ended
		case p.kind == Create && !b.creates.freely && b.creates.inFlight > 0: // the others need not wait for a create
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

// holds reports whether no request may be sent now, and for how long; 0: until another one ends. In a silence one
// request at a time probes.
func (b *Breaker) holds(now time.Time) (wait time.Duration, all bool) {
	if b.inFlight >= b.limit || b.silence.lasts && b.inFlight > 0 {
		return 0, true
	}
	wait = max(b.opens.Sub(now), b.pace.wait(now), 0)
	return wait, wait > 0
}

// noteSent notes that a request is sent now. A create that probes sends a GET first.
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

// MayLeave is asked just before the first byte of a request is sent: the request may have waited for a token or a
// connection since its pass.
func (b *Breaker) MayLeave(kind string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil || time.Now().Before(b.opens) {
		return false
	}
	return kind != "create" || !b.shut && !b.creates.getFirst && (b.creates.freely || b.creates.inFlight == 1)
}

// Shut stops creates that have a pass and are not sent yet. The run stops.
func (b *Breaker) Shut() { b.then(func(time.Time) { b.shut = true }) }

// back takes back a pass. err is the request's error, or nil. If the answer asks to wait, all requests wait: as long as
// it says, else for backoff.
func (b *Breaker) back(p *Pass, err error, backoff time.Duration) {
	e, failed := errors.AsType[*leadapi.Error](err)
	if failed && e.AsksToWait() { // before the place is another's
		if e.HasRetryAfter {
			backoff = max(e.RetryAfter, leastThrottle)
		}
		b.Hold(backoff)
		b.then(func(now time.Time) { b.asks = latest(b.asks, now.Add(backoff)) })
		b.pace.tell()
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

// answered notes a request that got an answer. After a create's 503 the next creates send a GET first.
func (b *Breaker) answered(p *Pass, unavailable bool) {
	b.creates.getFirst = !p.getFirst && (b.creates.getFirst || p.kind == Create && unavailable)
	if p.probe {
		b.silence.lasts = false
	} else if !b.silence.lasts {
		b.silence.backoff /= 2
	}
}

// unanswered notes a request without an answer. If it was a create that may have arrived, the next creates send a GET
// first. In a silence only probes count.
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

// Conclude says what a create has shown of the service; a lead ID only after it is durable. Other creates may wait for it.
// The pass is used up.
func (b *Breaker) Conclude(p *Pass, shown Proof) {
	if p.kind != Create || p.err != nil {
		return
	}
	p.kind = Repeatable
	b.then(func(time.Time) {
		c := &b.creates
		c.inFlight--
		switch alone := p.alone && !c.freely; {
		case shown == Usable && alone:
			c.freely, c.doubts = true, 0
		case shown == Doubtful && c.freely:
			c.freely, c.doubts = false, 1
		case shown == Doubtful && alone:
			c.doubts++
		}
		if c.doubts >= MostDoubts && b.ended == nil {
			b.ended = onlyDoubts
		}
	})
}

// Beware is for a run after one that stopped because of doubts: it begins with a GET and one create, and stops if that
// one leaves doubt.
func (b *Breaker) Beware() { b.creates.getFirst, b.creates.doubts = true, MostDoubts-1 }

// Hold lets nothing be sent for d, because the service asked somebody to wait.
func (b *Breaker) Hold(d time.Duration) {
	b.then(func(now time.Time) { b.opens = latest(b.opens, now.Add(min(d, leadapi.MaxRetryAfter))) })
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Over is why nothing is sent any more, or nil.
func (b *Breaker) Over() *Stop {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// Paused is a word that says why requests wait now, or "".
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

// InFlight is how many requests are in flight, and how many were at most.
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

// creates says whether the service answers creates in a usable way.
type creates struct {
	freely   bool // the last one left no doubt; else creates are sent one at a time
	inFlight int
	doubts   int  // in a row
	getFirst bool // after a create without an answer, or a 503: a GET comes first
}

const (
	maxLate  = time.Second           // later, a fleet's grant is void: others may have used it
	slipping = 10 * time.Millisecond // a request may be so late without delaying the next one
)

// pace spaces requests evenly: by --rate, or by what the fleet grants this worker.
type pace struct {
	every time.Duration // between requests; 0: any number may leave
	next  time.Time     // no request leaves before
	tell  func()        // the fleet, that there is news
	fleet bool          // its grants alone let requests be sent
	asked bool          // another grant is asked for
	left  int           // requests of the last grant
	from  time.Time     // when they may leave
}

// Share calls tell when there is News for the fleet; it must not wait. With a rate, Grant alone lets requests be sent.
func (b *Breaker) Share(tell func(), rate bool) { b.pace.tell, b.pace.fleet = tell, rate }

// News is what a fleet has to know: whether this worker wants a grant, and how long the service asked it to wait.
func (b *Breaker) News() (wants bool, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pace.asked, max(time.Until(b.asks), 0)
}

// Grant lets n requests be sent after a while, evenly spaced, together with those left of the grant before.
func (b *Breaker) Grant(n int, after time.Duration) {
	b.then(func(now time.Time) { b.pace.left, b.pace.from, b.pace.asked = b.pace.left+n, now.Add(after), false })
}

// wait is how long a request has to wait; 0 or less: it may be sent.
func (s *pace) wait(now time.Time) time.Duration {
	if !s.fleet {
		return s.next.Sub(now)
	}
	if now.Sub(s.from) > maxLate {
		s.left = 0
	}
	if s.left <= 1 && !s.asked {
		s.asked = true
		s.tell()
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
