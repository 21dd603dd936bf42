package importer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// The gate's measures of time.
const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
	maxProbing   = 15 * time.Second // between probes: with reachLimit, a run goes on within 30 s of a silence's end
	reachLimit   = 10 * time.Second // for an answer, any at all
	maxThrottle  = 15 * time.Minute
)

// errStopping says that the run sends nothing more, so a waiting request never left.
var errStopping = errors.New("the run is stopping")

// gate is where every worker waits before each request. It is closed for a time
// when the service says that it has too much to do, it lets fewer requests through
// at once after that, and one at a time while the service gives no answers.
type gate struct {
	maxWait time.Duration
	limit   int // requests in flight at most

	mu      sync.Mutex
	window  float64       // as many of limit as the service has borne of late, at least 1
	cut     time.Time     // when window was made smaller
	flying  int           // requests that have passed and not come back
	waiting int           // workers that wait for their turn
	opens   time.Time     // nobody passes before: the service asked to wait
	probeAt time.Time     // while silent, no probe leaves before
	silent  bool          // no answers: one request at a time finds out
	probing bool          // that one is under way
	deaf    bool          // a probe of this silence met it, too
	silence int           // how many there have been
	lost    bool          // the silence has lasted for maxWait: nobody passes any more
	since   time.Time     // when the silence began
	backoff time.Duration // between probes
	changed chan struct{} // closed and replaced whenever the above changes
}

// pass is what a worker holds while its request is under way.
type pass struct {
	probe bool
	knock bool // ask first whether there are answers, by a request that can make nothing
	since time.Time

	silence int // the probe's
}

// probes reports whether a pass is the probe of the silence that there is now.
func (g *gate) probes(p pass) bool { return p.probe && g.silent && p.silence == g.silence }

func newGate(maxWait time.Duration, limit int) *gate {
	limit = max(limit, 1)
	return &gate{maxWait: maxWait, limit: limit, window: float64(limit), changed: make(chan struct{})}
}

// enter waits until a request may leave. It fails with errStopping once stopping
// has ended or the silence has lasted too long.
func (g *gate) enter(stopping context.Context) (pass, error) {
	for {
		if stopping.Err() != nil || g.gaveUp() {
			return pass{}, errStopping
		}
		p, wait, changed := g.try(time.Now())
		if wait == 0 {
			return p, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-stopping.Done():
		}
		timer.Stop()
		g.mu.Lock()
		g.waiting--
		g.mu.Unlock()
	}
}

// try lets a request through (wait 0) or says how long to wait, at most, for what.
func (g *gate) try(now time.Time) (p pass, wait time.Duration, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait = g.shut(now); wait > 0 {
		g.waiting++
		return pass{}, wait, g.changed
	}
	g.probing = g.silent
	g.flying++
	return pass{probe: g.silent, knock: g.silent && g.deaf, since: now, silence: g.silence}, 0, nil
}

// shut is how long nobody passes, at most; 0 means that the gate is open.
func (g *gate) shut(now time.Time) time.Duration {
	if d := g.opens.Sub(now); d > 0 {
		return d
	}
	if !g.silent {
		if g.flying >= int(g.window) {
			return maxBackoff
		}
		return 0
	}
	if d := g.probeAt.Sub(now); d > 0 {
		return d
	}
	if g.probing {
		return maxBackoff
	}
	return 0
}

// answered opens the gate for all: the service speaks. It bore one request more,
// so the window grows by one for as many as it lets through at once.
func (g *gate) answered(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.window = min(g.window+1/g.window, float64(g.limit))
	g.back(p)
}

// overloaded is answered by a service that has too much to do: half as many
// requests go on from now. Those that were under way by then tell nothing new.
func (g *gate) overloaded(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.since.After(g.cut) {
		g.window, g.cut = max(g.window/2, 1), time.Now()
	}
	g.back(p)
}

// back takes a pass back after an answer.
func (g *gate) back(p pass) {
	g.flying--
	if g.silent {
		g.silent, g.probing, g.deaf, g.backoff, g.probeAt = false, false, false, 0, time.Time{}
		g.wake()
	} else if g.waiting > 0 {
		g.wake()
	}
}

// unused takes back a pass with which nothing was sent.
func (g *gate) unused(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying--
	if g.probes(p) {
		g.probing = false
	}
	g.wake()
}

// unanswered notes that a request met silence and narrows the gate to one probe
// at a time. Waiting longer than maxWait since the last answer is too long: false.
// Where the request may have arrived, the first probe follows at once: one broken
// connection alone is no reason to pause.
func (g *gate) unanswered(p pass, pause bool) bool {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying--
	probed := g.probes(p)
	news := !g.silent || probed // the others that were under way tell nothing new
	if !g.silent {
		g.silent, g.since = true, now
		g.silence++
	}
	if probed {
		g.probing, g.deaf = false, true
	}
	if now.Sub(g.since) >= g.maxWait {
		g.lost = true
		g.wake()
		return false
	}
	if news && (pause || g.backoff > 0) {
		g.backoff = min(max(2*g.backoff, firstBackoff), maxProbing)
		g.probeAt = now.Add(min(jitter(g.backoff), g.since.Add(g.maxWait).Sub(now)))
	}
	if !pause && g.backoff == 0 {
		g.backoff = firstBackoff / 2
	}
	g.wake()
	return true
}

// gaveUp reports whether the service has been silent for too long.
func (g *gate) gaveUp() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost
}

// throttle closes the gate for everybody for d.
func (g *gate) throttle(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(min(d, maxThrottle)); until.After(g.opens) {
		g.opens = until
	}
	g.wake()
}

// paused says in a word why requests wait now, or nothing.
func (g *gate) paused() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.silent:
		return "no answer from the service, trying with one request at a time"
	case time.Now().Before(g.opens):
		return "the service asked to wait"
	}
	return ""
}

func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
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
