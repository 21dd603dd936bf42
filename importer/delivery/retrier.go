// Package delivery sends requests: it says when each may leave, which are sent again, and when to stop. It knows requests
// and answers, and nothing of rows.
//
//	Retrier.Create, Repeat ─▶ [Breaker: enter] ─▶ call ─▶ what does the answer say?
//	       ▲                                                │ final: the caller's, who concludes a create
//	       └── at once, or after a pause ───────────────────┘ it was not applied, or may be applied twice
//
// The Breaker knows whether the service answers (contact), how many requests it bears (load), what --rate or the fleet
// lets leave (pace), and whether answers to creates leave doubt (creates). A create that may have been applied is never
// sent again.
package delivery

import (
	"context"
	"errors"
	"net/http"
	"time"

	"leadferry/leadapi"
)

// ResendOn says which answers mean that a create was not applied, beyond those that say so by themselves (INTERFACE,
// "When a create is sent again").
type ResendOn struct {
	NoDefault bool         // 429 does not count
	Codes     map[int]bool // further HTTP statuses
}

// Retrier is the one place where requests are sent again. It asks the client's errors whether the request was applied.
type Retrier struct {
	Breaker *Breaker
	Retries int // further tries of a request that was answered and may be sent again
	Resend  ResendOn
	Retried func()                      // told of each further try
	Reach   func(context.Context) error // gets an answer, any at all, or an error; nil: creates find out
}

// Create delivers a create, which may have been applied when its answer does not say otherwise. pass is where it keeps
// the pass of its last try, which the caller concludes.
func (c *Retrier) Create(ctx, leaving context.Context, pass *Pass, call func(ctx context.Context, anew bool) error) (tries int, err error) {
	return c.deliver(ctx, leaving, Create, pass, call)
}

// Repeat delivers an update or a sign-in, which may be sent again although it may have been applied.
func (c *Retrier) Repeat(ctx, leaving context.Context, call func(ctx context.Context, anew bool) error) (tries int, err error) {
	return c.deliver(ctx, leaving, Repeatable, new(Pass), call)
}

// deliver calls until the answer is final, after a 421 with the wish for a new connection; nothing leaves once leaving
// has ended. It returns nil, the last error of the client or of call, ErrStopping when the request was not applied and
// the run stops, or an *End; tries counts the requests that left. An error of call that is not the client's is final:
// nothing has left.
func (c *Retrier) deliver(ctx, leaving context.Context, kind Kind, pass *Pass, call func(ctx context.Context, anew bool) error) (tries int, err error) {
	for failures, unauthorized, misdirected := 0, 0, 0; ; {
		if err := c.enter(leaving, kind, pass); err != nil {
			return tries, err
		}
		err = call(ctx, misdirected > 0)
		e, answered := errors.AsType[*leadapi.Error](err)
		if err == nil || answered && e.Left() {
			if tries++; tries > 1 {
				c.Retried()
			}
		}
		if err != nil && !answered {
			e = heldBack
		}
		backoff := backoffFor(failures + 1)
		c.Breaker.back(*pass, e, answered && c.Unapplied(e), backoff)
		if err == nil || !answered {
			return tries, err
		}
		next, err := c.decide(kind, e)
		if next == final {
			return tries, err
		}
		c.Breaker.Conclude(pass, NothingShown)
		switch e.Status {
		case http.StatusUnauthorized:
			unauthorized++
		case http.StatusMisdirectedRequest:
			misdirected++
		}
		if unauthorized > maxFreshRefusals || misdirected > 1 { // each token may be good for every other row and never for this one
			return tries, err
		}
		if next == atOnce {
			continue
		}
		if failures++; failures > c.Retries || !e.AsksToWait() && !sleep(leaving, backoff) {
			return tries, err
		}
	}
}

// heldBack stands for an error of a call's own, after which nothing has left.
var heldBack = &leadapi.Error{Reason: leadapi.ReasonHeld}

// unsent reports whether the client has not even tried to send.
func unsent(e *leadapi.Error) bool {
	return e.Status == 0 && (e.Reason == leadapi.ReasonHeld || e.Reason == leadapi.ReasonRefused)
}

// enter waits until a request may leave. Before a create it has the service answer something else, where that is wanted.
func (c *Retrier) enter(leaving context.Context, kind Kind, pass *Pass) (err error) {
	for {
		*pass, err = c.Breaker.enter(leaving, kind)
		if err != nil || !pass.ask {
			return err
		}
		if c.Reach == nil {
			c.Breaker.answers()
			return nil
		}
		err = c.preflight(leaving, *pass)
		if c.Breaker.Conclude(pass, NothingShown); err != nil {
			return err
		}
	}
}

// preflight asks the service for any answer at all before a create goes out, which would be in doubt without one. An
// error ends the run.
func (c *Retrier) preflight(leaving context.Context, p Pass) error {
	p.kind = Repeatable // what is asked can make nothing
	ctx, cancel := context.WithTimeout(leaving, reachLimit)
	defer cancel()
	e, _ := errors.AsType[*leadapi.Error](c.Reach(ctx))
	if leaving.Err() != nil {
		e = heldBack
	}
	c.Breaker.back(p, e, false, backoffFor(1))
	if e != nil {
		if end := halts(e); end != nil {
			return end
		}
	}
	if e == nil || e.Status != 0 && !e.Unavailable() {
		c.Breaker.answers()
	}
	return nil
}

// nextTry says whether a request is sent again after an answer, and when.
type nextTry uint8

const (
	final    nextTry = iota
	atOnce           // as soon as the breaker lets it
	retrying         // the same after a pause, as one of the row's retries
)

// decide says what follows on a failed request, and with what error it ends.
func (c *Retrier) decide(kind Kind, e *leadapi.Error) (nextTry, error) {
	if end := halts(e); end != nil {
		if kind == Create && e.Applied != leadapi.No {
			c.Breaker.end(end)
			return final, e // the row is in doubt, whatever ends the run
		}
		return final, end
	}
	unconnected := !e.Left() && e.Reason != leadapi.ReasonRefused && e.Reason != leadapi.ReasonHeld // or without a token
	if end := c.Breaker.Over(); end != nil && unconnected {
		return final, end
	}
	switch {
	case unconnected, e.Reason == leadapi.ReasonHeld, e.Status == http.StatusUnauthorized, e.Status == http.StatusMisdirectedRequest:
		return atOnce, e
	case kind == Create && c.Unapplied(e), kind == Repeatable && (e.Status == 0 || Transient(e.Status)):
		if c.Breaker.Over() == nil {
			return retrying, e
		}
	}
	return final, e
}

// sleep waits before a row's next try.
func sleep(leaving context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-leaving.Done():
		return false
	}
}

// leastThrottle keeps a service that asks to wait 0 seconds from being asked at once.
const leastThrottle = 250 * time.Millisecond

// Unapplied reports whether a create answered so may be sent again.
func (c *Retrier) Unapplied(e *leadapi.Error) bool {
	return c.Resend.Codes[e.Status] || !c.Resend.NoDefault && e.Status == http.StatusTooManyRequests
}

// Transient reports whether another try of a repeatable request may fare better.
func Transient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests, 499:
		return true
	}
	return status >= 500
}
