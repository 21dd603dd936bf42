package delivery

import "time"

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

// creates knows whether the service answers creates in a usable way.
type creates struct {
	freely   bool // the last one left no doubt; else each is sent alone until one leaves none
	inFlight int
	doubts   int  // in a row
	ask      bool // one got no answer, or a 503: none leaves before the service has answered something else
	ended    *End // why none leaves any more; nil: they do
}

// leave notes a request that leaves. In a silence a create asks first, but for one of the sign-in, in which it cannot leave.
func (c *creates) leave(p *Pass, s silence) {
	if p.kind == Create {
		c.inFlight++
		p.alone, p.ask = !c.freely, c.ask || p.probe && !s.ofSignIn()
	}
}

// back notes what a create has shown.
func (c *creates) back(p Pass, shown Proof) {
	c.inFlight--
	switch alone := p.alone && !c.freely; {
	case shown == Usable && alone:
		c.freely, c.doubts = true, 0
	case shown == Doubtful && c.freely:
		c.freely, c.doubts = false, 1
	case shown == Doubtful && alone:
		c.doubts++
	}
	if c.doubts >= MostDoubts {
		c.ended = onlyDoubts
	}
}

// maxLate is how late a fleet's grant may be used: others may have sent what this worker had not. A request that leaves
// up to slipping late makes the next one no later.
const (
	maxLate  = time.Second
	slipping = 10 * time.Millisecond
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
	if now.Sub(s.next) > slipping {
		s.next = now
	}
	s.next = s.next.Add(s.every)
}
