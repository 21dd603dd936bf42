// Package delivery decides when requests may be sent, which are sent again, and when to stop. It does not know rows.
//
//	Deliver ─▶ [enter] ─▶ call ─▶ what does the answer say?
//	   ▲                            │ final: the caller gets it, and reports on a create
//	   └── at once, or after a pause ┘ it was not applied, or may be applied twice
//
// The Breaker knows the requests in flight, whether the service answers at all (silence), how many requests --rate or
// the fleet allows (pace), and whether creates leave doubt (creates). It repeats no create that may have been applied.
package delivery

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"leadferry/leadapi"
)

const (
	firstBackoff     = 500 * time.Millisecond
	maxBackoff       = 30 * time.Second
	maxProbing       = 15 * time.Second       // between probes: a run goes on within 30 s after a silence ends
	reachLimit       = 10 * time.Second       // wait this long for any answer at all
	leastThrottle    = 250 * time.Millisecond // wait at least this, even if the service asks for less
	maxFreshRefusals = 3                      // how many new tokens may be refused, one after another

	// MostDoubts creates in a row that leave doubt end the run. Those in flight with the first count as one.
	MostDoubts = 4
)

// ErrStopping says that the run sends no more: the waiting request was not sent. Earlier tries of it may have been.
var ErrStopping = errors.New("the run is stopping")

// Call sends one request; anew asks for a new connection. After an error other than *leadapi.Error, nothing was sent.
type Call func(ctx context.Context, anew bool) error

// Deliver runs call(awaiting) in the caller's goroutine until the answer is final. It returns the number of sends, and
// an error: the last one of call, ErrStopping (leaving has ended), a *Stop, or nil. The caller reports what a create
// showed.
func (b *Breaker) Deliver(awaiting, leaving context.Context, kind Kind, pass *Pass, call Call) (tries int, err error) {
	left := [...]int{never: 0, atOnce: math.MaxInt, newToken: maxFreshRefusals, newConnection: 1, afterPause: b.Retries}
	for anew := false; ; {
		backoff := jitter(min(firstBackoff<<min(b.Retries-left[afterPause], 10), maxBackoff))
		if err := b.enter(leaving, kind, pass); err != nil {
			return tries, err
		}
		err = call(awaiting, anew)
		b.back(pass, err, backoff)
		e, failed := errors.AsType[*leadapi.Error](err)
		if err == nil || failed && e.Left() {
			if tries++; tries > 1 {
				b.Retried()
			}
		}
		if !failed {
			return tries, err
		}
		if end := halts(e); end != nil {
			if kind == Create && e.Applied != leadapi.No {
				b.update(func(time.Time) { b.ended = end })
				return tries, e // the row is in doubt, whatever ends the run
			}
			return tries, end
		}
		again := b.again(kind, e)
		if left[again] == 0 {
			return tries, e
		}
		left[again]--
		anew = anew || again == newConnection
		b.Report(pass, NothingShown)
		if again == afterPause && !e.AsksToWait() {
			select {
			case <-time.After(backoff):
			case <-leaving.Done():
				return tries, e
			}
		}
	}
}

// nextTry says how to go on after an answer.
type nextTry uint8

const (
	never         nextTry = iota
	atOnce                // as soon as the breaker allows it
	newToken              // at once with a new token, a few times: the service may refuse this row with any token
	newConnection         // at once with a new connection
	afterPause            // as one of the row's retries
)

func (b *Breaker) again(kind Kind, e *leadapi.Error) nextTry {
	switch {
	case e.Status == http.StatusUnauthorized:
		return newToken
	case e.Status == http.StatusMisdirectedRequest:
		return newConnection
	case !e.Left() && e.Reason != leadapi.ReasonRefused: // not a byte left, maybe because there was no token
		return atOnce
	case b.Over() != nil:
	case kind == Create && b.Unapplied(e), kind == Repeatable && (e.Status == 0 || Transient(e.Status)):
		return afterPause
	}
	return never
}

// Unapplied reports whether this answer to a create means that it was not applied, so that it may be sent again.
func (b *Breaker) Unapplied(e *leadapi.Error) bool { return b.Resend[e.Status] }

// Transient reports whether a repeatable request may succeed if it is sent again.
func Transient(status int) bool {
	return status >= 500 || slices.Contains([]int{408, 421, 425, 429, 499}, status)
}

// jitter spreads d over [d/2, d], so that rows that failed together are not sent again together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
