package delivery

import "time"

// The machines of the breaker. It holds its lock whenever it asks them.

// contact knows whether the service gives answers, any at all. While it gives none, one request at a time finds out.
// Only the answer to that probe ends the silence: what left before tells nothing new.
type contact struct {
	state   contactState
	silence int           // how many there have been
	probing bool          // a probe is under way
	since   time.Time     // when the silence began
	probeAt time.Time     // no probe leaves before
	backoff time.Duration // before the next probe; the first of all leaves at once: one broken connection is no reason to pause
}

type contactState uint8

const (
	answering contactState = iota
	silent
	gone // silent for too long: nobody passes any more
)

func (c *contact) leave(p *Pass) {
	p.silence, p.probe = c.silence, c.state == silent
	c.probing = p.probe
}

// probes reports whether a pass is the probe of the silence that there is now.
func (c *contact) probes(p Pass) bool { return c.state == silent && p.probe && p.silence == c.silence }

// heard notes an answer. Those of other nodes weigh against the silence of one.
func (c *contact) heard(p Pass) {
	switch {
	case c.probes(p):
		*c = contact{silence: c.silence, backoff: c.backoff}
	case c.state == answering && p.silence == c.silence:
		c.backoff /= 2
	}
}

// unheard notes a request without any answer.
func (c *contact) unheard(p Pass, now time.Time, maxWait time.Duration) {
	switch {
	case c.probes(p):
		c.probing = false
	case c.state == answering && p.silence == c.silence:
		c.state, c.silence, c.since = silent, c.silence+1, now
	default:
		return
	}
	c.probeAt = now.Add(min(jitter(c.backoff), c.since.Add(maxWait).Sub(now)))
	c.backoff = min(max(2*c.backoff, firstBackoff), maxProbing)
	if now.Sub(c.since) >= maxWait {
		c.state = gone
	}
}

func (c *contact) unused(p Pass) { c.probing = c.probing && !c.probes(p) }

// load bounds how many requests are under way, by --concurrency and by what the service has borne of late.
type load struct {
	limit    int
	window   float64   // of limit, at least 1
	cut      time.Time // when window was made smaller
	inFlight int
	most     int // that were in flight at once
}

func (l *load) leave() {
	l.inFlight++
	l.most = max(l.most, l.inFlight)
}

// bore notes that the service bore one request more: the window grows by one for as many as it lets through at once.
func (l *load) bore() { l.window = min(l.window+1/l.window, float64(l.limit)) }

// failed notes that it was too much: half as many go on. Those that were under way by then tell nothing new.
func (l *load) failed(p Pass, now time.Time) {
	if p.since.After(l.cut) {
		l.window, l.cut = max(l.window/2, 1), now
	}
}

// MostDoubts is how many creates in a row, each sent alone, may leave doubt. What was under way when the first of them
// did counts as one.
const MostDoubts = 4

// Proof is what a create has shown of the service.
type Proof uint8

// What a create may show.
const (
	NothingShown Proof = iota // it was not applied, and may be sent again
	Usable                    // a lead ID, or a refusal
	Doubtful                  // an answer that leaves doubt, or none
)

// creates knows whether the service answers creates in a usable way. A create is under way until what it has shown is
// known, and durable.
type creates struct {
	state    createState
	inFlight int
	doubts   int       // creates in a row that left doubt, what was under way with the first counted as one
	first    time.Time // when the first of them left
	ask      bool      // one got no answer at all, or a 503: none leaves before the service has answered something else
	wary     bool      // the run before stopped for doubts: the first doubt ends this one
}

// createState says how creates are sent.
type createState uint8

const (
	singly  createState = iota // until one has left no doubt
	freely                     // the last of which something is known left no doubt
	tripped                    // no more: too many in a row left doubt
)

// may reports whether a create may pass.
func (c *creates) may() bool { return c.state == freely || c.state == singly && c.inFlight == 0 }

// sends reports whether a create that has passed may still leave.
func (c *creates) sends() bool {
	return !c.ask && (c.state == freely || c.state == singly && c.inFlight == 1)
}

func (c *creates) leave(p *Pass) {
	c.inFlight++
	p.single, p.ask = c.state == singly, c.ask || p.probe
}

// back notes what a create has shown.
func (c *creates) back(p Pass, shown Proof) {
	c.inFlight--
	switch {
	case shown == Usable && p.single && c.state == singly:
		c.state, c.doubts, c.wary = freely, 0, false
	case shown == Usable && c.state == singly && p.since.After(c.first): // not alone, so it ends the row of doubts without setting creates free
		c.doubts = 0
	case shown == Doubtful && c.state == freely:
		c.state, c.doubts, c.first = singly, 1, p.since
	case shown == Doubtful && p.single && c.state == singly:
		if c.doubts++; c.doubts >= MostDoubts || c.wary {
			c.state = tripped
		}
	}
}

// maxLate is how old a piece of the fleet's rate may be: others may have sent what this worker had not. A request that
// leaves up to slipping late makes the next one no later.
const (
	maxLate  = time.Second
	slipping = 10 * time.Millisecond
)

// pace spaces requests evenly: by --rate, or by the pieces of time that a fleet grants this worker.
type pace struct {
	every  time.Duration // between requests; 0: any number may leave
	next   time.Time     // no request leaves before
	ask    func()        // for another piece; nil: the rate is this worker's alone
	asked  bool          // one is on its way
	pieces []piece       // in order
}

type piece struct {
	from time.Time
	left int
}

// wait is how long a request has to wait, 0 when it may leave.
func (s *pace) wait(now time.Time) time.Duration {
	if s.ask == nil {
		return max(s.next.Sub(now), 0)
	}
	for len(s.pieces) > 0 && (s.pieces[0].left == 0 || now.Sub(s.pieces[0].from) > maxLate) {
		s.pieces = s.pieces[1:]
	}
	if !s.asked && (len(s.pieces) == 0 || len(s.pieces) == 1 && s.pieces[0].left <= 1) {
		s.asked = true
		s.ask()
	}
	if len(s.pieces) == 0 {
		return maxBackoff // Grant looks at the queue again
	}
	return max(s.next.Sub(now), s.pieces[0].from.Sub(now), 0)
}

func (s *pace) leave(now time.Time) {
	if len(s.pieces) > 0 {
		s.pieces[0].left--
	}
	if now.Sub(s.next) > slipping {
		s.next = now
	}
	s.next = s.next.Add(s.every)
}
