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
	maxThrottle  = 15 * time.Minute
)

// errStopping says that the run sends nothing more, so a waiting request never left.
var errStopping = errors.New("the run is stopping")

// gate is where every worker waits before each request. It is closed for a time
// when the service says that it has too much to do, and it lets one request
// through at a time while the service gives no answers.
type gate struct {
	maxWait time.Duration

	mu      sync.Mutex
	opens   time.Time     // nobody passes before: the service asked to wait
	probeAt time.Time     // while silent, no probe leaves before
	silent  bool          // no answers: one request at a time finds out
	probing bool          // that one is under way
	since   time.Time     // when the silence began
	backoff time.Duration // between probes
	changed chan struct{} // closed and replaced whenever the above changes
}

// pass is what a worker holds while its request is under way.
type pass struct{ probe bool }

func newGate(maxWait time.Duration) *gate {
	return &gate{maxWait: maxWait, changed: make(chan struct{})}
}

// enter waits until a request may leave. It fails with errStopping once stopping
// has ended.
func (g *gate) enter(stopping context.Context) (pass, error) {
	for {
		if stopping.Err() != nil {
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
	}
}

// try lets a request through (wait 0) or says how long to wait, at most, for what.
func (g *gate) try(now time.Time) (p pass, wait time.Duration, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := g.opens.Sub(now); d > 0 {
		return pass{}, d, g.changed
	}
	if !g.silent {
		return pass{}, 0, nil
	}
	if d := g.probeAt.Sub(now); d > 0 {
		return pass{}, d, g.changed
	}
	if g.probing {
		return pass{}, maxBackoff, g.changed
	}
	g.probing = true
	return pass{probe: true}, 0, nil
}

// answered opens the gate for all: the service speaks.
func (g *gate) answered(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.silent {
		g.silent, g.backoff, g.probeAt = false, 0, time.Time{}
		g.wake()
	}
	if p.probe {
		g.probing = false
	}
}

// unanswered notes that a request met silence and narrows the gate to one probe
// at a time. Waiting longer than maxWait since the last answer is too long: false.
// Where the request may have arrived, the first probe follows at once: one broken
// connection alone is no reason to pause.
func (g *gate) unanswered(p pass, pause bool) bool {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.silent {
		g.silent, g.since = true, now
	}
	if p.probe {
		g.probing = false
	}
	if now.Sub(g.since) >= g.maxWait {
		g.wake()
		return false
	}
	if pause || g.backoff > 0 {
		g.backoff = min(max(2*g.backoff, firstBackoff), maxBackoff)
		g.probeAt = now.Add(min(jitter(g.backoff), g.since.Add(g.maxWait).Sub(now)))
	}
	if !pause && g.backoff == 0 {
		g.backoff = firstBackoff / 2
	}
	g.wake()
	return true
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
