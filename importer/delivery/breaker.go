package delivery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"leadferry/leadapi"
)

// Breaker holds every request in one queue until it may be sent, and Deliver (delivery.go) sends it again where that is
// safe. It limits requests in flight; the client has as many connections. If the service asks to wait, all wait.
type Breaker struct {
	Settings
	mu    sync.Mutex
	queue []*Pass     // in order of arrival
	timer *time.Timer // looks at the queue again
	places
	opens   time.Time // nothing is sent before this time
	asks    time.Time // the service asked this worker to wait until then
	silence silence
	creates creates
	pace    pace
	ended   *Stop // why nothing is sent any more, or nil
	shut    bool  // the run stops: no further create is sent
}

// Settings of a Breaker may change only while no request waits or is in flight.
type Settings struct {
	Retries int                         // how often to send a request again after a pause, if that is allowed
	Resend  map[int]bool                // statuses that mean that a create was not applied; some errors mean that anyway
	Retried func()                      // is called each time a request is sent again
	Reach   func(context.Context) error // sends a GET; nil: the service answered
	MaxWait time.Duration               // how long the service may be silent
}

// places counts the requests in flight.
type places struct{ limit, inFlight, most int }

// silence is a time in which the service answers nothing at all. Only an answer to a probe ends it.
type silence struct {
	lasts   bool
	since   time.Time      // when it began
	fault   *leadapi.Error // why its last request got no answer
	backoff time.Duration  // before the next probe; 0 before the first: one broken connection is no reason to pause
}

// Kind says whether a request that may have been applied may be sent again. A create may not.
type Kind uint8

const (
	Repeatable Kind = iota // an update, a sign-in
	Create
)

// Pass is a request in the queue, and then among the requests in flight.
type Pass struct {
	kind     Kind
	getFirst bool // for a create: the service must answer a GET first
	alone    bool // a create that is in flight as the only one
	probe    bool // it probes whether a silence has ended

	stopping context.Context
	decided  chan struct{} // gets a value once the request may be sent, or never may
	err      error         // why it may never be sent
}

// NewBreaker makes a Breaker for limit requests in flight and perSecond requests a second (0: any number).
func NewBreaker(maxWait time.Duration, limit int, perSecond float64) *Breaker {
	b := &Breaker{
		Settings: Settings{MaxWait: maxWait, Retried: func() {}}, places: places{limit: max(limit, 1)},
		pace: pace{tell: func() {}},
	}
	b.timer = time.AfterFunc(maxWait, func() { b.update(func(time.Time) {}) })
	if perSecond > 0 {
		b.pace.every = time.Duration(min(float64(time.Second)/perSecond, float64(365*24*time.Hour)))
	}
	return b
}

// enter waits until a request may be sent, and makes p its pass. If a create has to send a GET first, enter sends it.
// It returns ErrStopping once stopping has ended, and a *Stop after too long a silence or too many doubts.
func (b *Breaker) enter(stopping context.Context, kind Kind, p *Pass) error {
	if p.decided == nil {
		p.decided = make(chan struct{}, 1)
	}
	for {
		*p = Pass{kind: kind, stopping: stopping, decided: p.decided}
		b.update(func(time.Time) { b.queue = append(b.queue, p) })
		select {
		case <-p.decided:
		case <-stopping.Done():
			b.update(func(time.Time) {})
			<-p.decided
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
		b.back(&Pass{getFirst: p.getFirst, probe: p.probe}, err, jitter(firstBackoff))
		b.Report(p, NothingShown)
		if e, failed := errors.AsType[*leadapi.Error](err); failed && halts(e) != nil {
			return halts(e)
		}
	}
}

// update changes the breaker, and admits the requests that may be sent after that.
func (b *Breaker) update(change func(now time.Time)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	change(now)
	b.admit(now)
}

// admit takes requests from the queue that may be sent now, or may never be sent. It checks stopping under the lock, so
// that no create is sent after an answer has ended the run.
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
		case p.kind == Create && !b.creates.unlimited && b.creates.inFlight > 0: // other requests need not wait
			return false
		default:
			if wait, full = b.mustWait(now); full {
				return false
			}
			b.noteSent(p, now)
		}
		p.decided <- struct{}{}
		return true
	})
	if wait > 0 {
		b.timer.Reset(wait)
	}
}

// mustWait reports whether all must wait, and how long; 0: until a request ends. In a silence, one is sent at a time.
func (b *Breaker) mustWait(now time.Time) (wait time.Duration, all bool) {
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
		p.alone, p.getFirst = !b.creates.unlimited, b.creates.getFirst || p.probe
	}
}

// MayLeave reports whether a request may still be sent. The client calls it just before the first byte, because the
// request may have waited for a token or a connection.
func (b *Breaker) MayLeave(kind string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	goesOn := b.ended == nil && !time.Now().Before(b.opens)
	return goesOn &&
		(kind != "create" || !b.shut && !b.creates.getFirst && (b.creates.unlimited || b.creates.inFlight == 1))
}

// Shut stops creates that have a pass but are not sent yet, because the run stops.
func (b *Breaker) Shut() { b.update(func(time.Time) { b.shut = true }) }

// back takes a pass back. err is the request's error, or nil. If it asks to wait, all wait: as it says, or for backoff.
func (b *Breaker) back(p *Pass, err error, backoff time.Duration) {
	e, failed := errors.AsType[*leadapi.Error](err)
	if failed && e.AsksToWait() { // before another request gets the place
		if e.HasRetryAfter {
			backoff = max(e.RetryAfter, leastThrottle)
		}
		b.Hold(backoff)
		b.update(func(now time.Time) { b.asks = latest(b.asks, now.Add(backoff)) })
		b.pace.tell()
	}
	b.update(func(now time.Time) {
		b.inFlight--
		switch {
		case err == nil, failed && e.Status != 0 && e.Op != "token" && !(e.Op == "reach" && e.Unavailable()):
			b.answered(p, failed && e.Unavailable())
		case failed && e.Reason != leadapi.ReasonHeld && e.Reason != leadapi.ReasonRefused:
			b.unanswered(p, e, now)
		}
	})
}

// answered notes a request that got an answer. After a create's 503, the next create sends a GET first.
func (b *Breaker) answered(p *Pass, unavailable bool) {
	b.creates.getFirst = !p.getFirst && (b.creates.getFirst || p.kind == Create && unavailable)
	if p.probe {
		b.silence.lasts = false
	} else if !b.silence.lasts {
		b.silence.backoff /= 2
	}
}

// unanswered notes a request without an answer. If it was a create that may have arrived, the next create sends a GET
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

// Report notes what a create has shown about the service. After a lead ID, call it only once the ID is durable. Other
// creates may be waiting for the report. Only the first report of a pass counts.
func (b *Breaker) Report(p *Pass, shown Proof) {
	if p.kind != Create || p.err != nil {
		return
	}
	p.kind = Repeatable
	b.update(func(time.Time) {
		c := &b.creates
		c.inFlight--
		switch alone := p.alone && !c.unlimited; {
		case shown == Usable && alone:
			c.unlimited, c.doubts = true, 0
		case shown == Doubtful && c.unlimited:
			c.unlimited, c.doubts = false, 1
		case shown == Doubtful && alone:
			c.doubts++
		}
		if c.doubts >= MostDoubts && b.ended == nil {
			b.ended = onlyDoubts
		}
	})
}

// StartCautiously is for a run after one that doubts stopped: it begins with a GET and one create. One doubt ends it.
func (b *Breaker) StartCautiously() { b.creates.getFirst, b.creates.doubts = true, MostDoubts-1 }

// Hold keeps requests waiting for d, at most leadapi.MaxRetryAfter: the service asked this worker or another to wait.
func (b *Breaker) Hold(d time.Duration) {
	b.update(func(now time.Time) { b.opens = latest(b.opens, now.Add(min(d, leadapi.MaxRetryAfter))) })
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Over returns why nothing is sent any more, or nil.
func (b *Breaker) Over() *Stop {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// Paused says to people why requests wait now. It returns "" if they do not.
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

// InFlight returns how many requests are in flight, and the most that ever were.
func (b *Breaker) InFlight() (now, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inFlight, b.most
}

// Proof is what a create has shown about the service.
type Proof uint8

const (
	NothingShown Proof = iota // it was not applied and may be sent again
	Usable                    // a lead ID, or a refusal
	Doubtful                  // no answer, or one that leaves doubt
)

// creates says whether the service answers creates in a usable way.
type creates struct {
	unlimited bool // the last create left no doubt; else creates are sent one at a time
	inFlight  int
	doubts    int  // in a row
	getFirst  bool // after a create without an answer or with a 503, a GET comes first
}

const (
	maxLate  = time.Second           // a grant of the fleet ends after this: others may use it then
	slipping = 10 * time.Millisecond // a request that is at most this late does not delay the next
)

// pace spaces requests evenly, by --rate or by the fleet's grants to this worker.
type pace struct {
	every time.Duration // between requests; 0: no limit
	next  time.Time     // no request is sent before this time
	tell  func()        // tells the fleet that there is News
	fleet bool          // requests need the fleet's grants
	asked bool          // a further grant was requested
	left  int           // requests left of the last grant
	from  time.Time     // when the first of these may be sent
}

// Share returns a channel that gets a value when there is News for the fleet. With rate, requests need a Grant.
func (b *Breaker) Share(rate bool) <-chan struct{} {
	news := make(chan struct{}, 1)
	b.pace.fleet, b.pace.tell = rate, func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	return news
}

// News is what a fleet must know: whether this worker wants a grant, and how long the service asked it to wait.
func (b *Breaker) News() (wants bool, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pace.asked, max(time.Until(b.asks), 0)
}

// Grant allows n requests in addition to those left of the last grant, evenly spaced, once the time after has passed.
func (b *Breaker) Grant(n int, after time.Duration) {
	b.update(func(now time.Time) { b.pace.left, b.pace.from, b.pace.asked = b.pace.left+n, now.Add(after), false })
}

// wait returns how long the next request has to wait; 0 or less: it may be sent.
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
		return maxBackoff // the next grant checks the queue again
	}
	return max(s.next.Sub(now), s.from.Sub(now))
}

func (s *pace) leave(now time.Time) {
	s.left = max(s.left-1, 0)
	s.next = latest(s.next, now.Add(-slipping)).Add(s.every)
}
