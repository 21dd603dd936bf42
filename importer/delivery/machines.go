package delivery

import "time"

// The machines of the breaker. It holds its lock whenever it asks them, and hands them the time.

// contact knows whether the service gives answers, any at all. While it gives none, one request at a time finds out:
// only the answer to that probe ends the silence. Requests that left before it tell nothing new.
type contact struct {
	silent  bool
	silence int           // how many there have been
	since   time.Time     // when the silence began
	probing bool          // a probe is under way
	probeAt time.Time     // none leaves before
	backoff time.Duration // before the next probe. The first of all leaves at once: one broken connection is no reason to pause
	gone    bool          // silent for too long: nothing leaves any more
}

func (c *contact) leave(p *Pass) {
	p.silence, p.probe, c.probing = c.silence, c.silent, c.silent
}

func (c *contact) heard(p Pass) {
	switch {
	case p.silence != c.silence:
	case p.probe && c.silent:
		*c = contact{silence: c.silence, backoff: c.backoff}
	case !c.silent:
		c.backoff /= 2
	}
}

func (c *contact) unheard(p Pass, now time.Time, maxWait time.Duration) {
	switch {
	case p.silence != c.silence || c.silent && !p.probe:
		return
	case c.silent:
		c.probing = false
	default:
		c.silent, c.silence, c.since = true, c.silence+1, now
	}
	c.probeAt = now.Add(min(jitter(c.backoff), c.since.Add(maxWait).Sub(now)))
	c.backoff = min(max(2*c.backoff, firstBackoff), maxProbing)
	c.gone = now.Sub(c.since) >= maxWait
}

// unused notes that a request did not leave after all.
func (c *contact) unused(p Pass) { c.probing = c.probing && !(p.probe && p.silence == c.silence) }

// load bounds how many requests are under way: by --concurrency, and by half after each one that was too much.
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

// bore notes an answer: the window grows by one for as many answers as it lets requests through.
func (l *load) bore() { l.window = min(l.window+1/l.window, float64(l.limit)) }

// failed notes that a request was too much. Those that left before the last cut tell nothing new.
func (l *load) failed(p Pass, now time.Time) {
	if p.since.After(l.cut) {
		l.window, l.cut = max(l.window/2, 1), now
	}
}

// MostDoubts is how many creates in a row, each sent alone, may leave doubt. Those under way with the first count as one.
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
	doubts   int       // in a row
	first    time.Time // when the first of them left
	ask      bool      // one got no answer, or a 503: none leaves before the service has answered something else
	wary     bool      // the run before stopped for doubts: the first doubt ends this one
}

// createState says how creates are sent.
type createState uint8

const (
	singly  createState = iota // until one has left no doubt
	freely                     // the last of which something is known left no doubt
	tripped                    // no more: too many in a row left doubt
)

// may reports whether a create may leave beside so many others.
func (c *creates) may(others int) bool { return c.state == freely || c.state == singly && others == 0 }

func (c *creates) leave(p *Pass) {
	c.inFlight++
	p.single, p.ask = c.state == singly, c.ask || p.probe
}

// back notes what a create has shown.
func (c *creates) back(p Pass, shown Proof) {
	c.inFlight--
	alone := p.single && c.state == singly
	switch {
	case shown == Usable && alone:
		c.state, c.doubts, c.wary = freely, 0, false
	case shown == Usable && c.state == singly && p.since.After(c.first): // it left after the doubt, but not alone
		c.doubts = 0
	case shown == Doubtful && c.state == freely:
		c.state, c.doubts, c.first = singly, 1, p.since
	case shown == Doubtful && alone:
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
		return s.next.Sub(now)
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
	return max(s.next.Sub(now), s.pieces[0].from.Sub(now))
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
