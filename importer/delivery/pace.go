package delivery

import (
	"time"

	"golang.org/x/time/rate"
)

// pace spaces requests evenly. The breaker holds its lock whenever it asks.
type pace struct {
	limiter *rate.Limiter // nil: no limit
	ration  *ration       // of a fleet, instead; or nil
	queued  int           // requests that wait for it
}

// take lets a request leave, 0, or says how long it has to wait, behind those that wait already.
func (s *pace) take(now time.Time) time.Duration {
	if s.ration != nil {
		d := s.ration.take(now)
		if d > 0 {
			s.queued++
		}
		return d
	}
	if s.limiter == nil || s.limiter.AllowN(now, 1) {
		return 0
	}
	r := s.limiter.ReserveN(now, 1)
	defer r.CancelAt(now)
	s.queued++
	return r.DelayFrom(now) + time.Duration(float64(s.queued-1)/float64(s.limiter.Limit())*float64(time.Second))
}

// maxLate is how old a piece of the rate may be: others may have sent what this worker had not.
const maxLate = time.Second

// ration is this worker's part of the fleet's rate: pieces of time that are its own.
type ration struct {
	every  time.Duration // between requests
	pieces []piece       // in order
	next   time.Time     // no request leaves before
	asked  bool          // another piece is on its way
	ask    func()
}

type piece struct {
	from time.Time
	left int
}

// take lets a request leave, 0, or says how long it has to wait at most.
func (r *ration) take(now time.Time) time.Duration {
	for len(r.pieces) > 0 && (r.pieces[0].left == 0 || now.Sub(r.pieces[0].from) > maxLate) {
		r.pieces = r.pieces[1:]
	}
	if !r.asked && (len(r.pieces) == 0 || len(r.pieces) == 1 && r.pieces[0].left <= 1) {
		r.asked = true
		r.ask()
	}
	if len(r.pieces) == 0 {
		return maxBackoff // Grant wakes those who wait
	}
	first := &r.pieces[0]
	if first.from.After(r.next) {
		r.next = first.from
	}
	if d := r.next.Sub(now); d > 0 {
		return d
	}
	first.left--
	if r.next = r.next.Add(r.every); r.next.Before(now) {
		r.next = now
	}
	return 0
}

// ShareRate makes the breaker keep to a rate that it shares with others: nothing leaves but what Grant lets leave. ask is
// told when more is wanted; it must not wait.
func (b *Breaker) ShareRate(perSecond float64, ask func()) {
	b.pace = pace{ration: &ration{every: time.Duration(float64(time.Second) / perSecond), ask: ask}}
}

// Grant lets n requests leave from a time on, evenly spaced.
func (b *Breaker) Grant(n int, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.pace.ration; r != nil {
		r.pieces, r.asked = append(r.pieces, piece{time.Now().Add(after), n}), false
		b.wake()
	}
}
