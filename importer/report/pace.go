package report

import "time"

// pace is how fast rows are done with, lately.
type pace struct {
	at        time.Time
	done      int
	perSecond float64
}

// memory is for how long the past weighs in the pace.
const memory = 5 * time.Second

func (p *pace) add(now time.Time, done int) {
	if p.at.IsZero() {
		p.at, p.done = now, done
		return
	}
	passed := now.Sub(p.at)
	if passed < time.Second {
		return
	}
	fresh := float64(done-p.done) / passed.Seconds()
	weight := min(1, float64(passed)/float64(memory))
	if p.perSecond == 0 {
		weight = 1
	}
	p.perSecond += weight * (fresh - p.perSecond)
	p.at, p.done = now, done
}

// eta is how long left rows take at this pace; false when nothing moves.
func (p *pace) eta(left int) (time.Duration, bool) {
	const slow = 0.01 // rows a second
	if p.perSecond < slow {
		return 0, false
	}
	return time.Duration(float64(left) / p.perSecond * float64(time.Second)).Round(time.Second), true
}
