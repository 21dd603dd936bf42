// Package delivery sends requests: it says when each may leave, which are sent again, and when there is no sense in
// going on. It knows requests and answers, and nothing of rows.
//
//	Retrier.Deliver ─▶ [Breaker: enter] ─▶ call ─▶ what does the answer say?
//	       ▲                                         │ final: the caller's; a create's is concluded
//	       └── at once, or after a pause ────────────┘ it was not applied, or may be sent twice
//
// The Breaker knows whether the service gives answers (contact), how many requests it bears (load), what --rate or the
// fleet lets leave (pace), and whether its answers to creates leave doubt (creates). A create that may have been
// applied is never sent again.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"leadferry/leadapi"
)

// ResendOn says which answers mean that a create was not applied, beyond those
// that say so by themselves (INTERFACE, "When a create is sent again").
type ResendOn struct {
	NoDefault bool         // 429 does not count
	Codes     map[int]bool // further HTTP statuses
}

// Retrier is the one place where requests are sent again. It asks the client's errors
// whether the request was applied, and makes all of them pass one breaker.
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
// has ended. An error of call that is not the client's says that nothing has left, and is final. It returns nil, the
// last error of the service or of call, ErrStopping when the request is known not to have been applied and the run
// stops, or an *End; tries counts the requests that left.
func (c *Retrier) deliver(ctx, leaving context.Context, kind Kind, last *Pass, call func(ctx context.Context, anew bool) error) (tries int, err error) {
	for failures, unauthorized, misdirected := 0, 0, 0; ; {
		if err := c.enter(leaving, kind, last); err != nil {
			return tries, err
		}
		err = call(ctx, misdirected > 0)
		if left(err) {
			if tries++; tries > 1 {
				c.Retried()
			}
		}
		next, err := c.decide(*last, err)
		if next == final {
			return tries, err
		}
		c.Breaker.Conclude(last, NothingShown)
		switch statusOf(err) {
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
		if failures++; failures > c.Retries || !c.sleep(leaving, err, backoffFor(failures)) {
			return tries, err
		}
	}
}

// enter waits until a request may leave: a create, where that is wanted, after the service has answered something else.
func (c *Retrier) enter(leaving context.Context, kind Kind, last *Pass) (err error) {
	for {
		*last, err = c.Breaker.enter(leaving, kind)
		if err != nil || !last.ask {
			return err
		}
		if c.Reach == nil {
			c.Breaker.askFirst(false)
			return nil
		}
		err = c.preflight(leaving, *last)
		if c.Breaker.Conclude(last, NothingShown); err != nil {
			return err
		}
	}
}

// preflight asks the service for any answer at all before a create goes out, which would be in doubt without one. An
// error ends the run.
func (c *Retrier) preflight(leaving context.Context, p Pass) error {
	ctx, cancel := context.WithTimeout(leaving, reachLimit)
	defer cancel()
	err := c.Reach(ctx)
	e, fails := errors.AsType[*leadapi.Error](err)
	switch {
	case err == nil:
		c.Breaker.reached(p)
		return nil
	case leaving.Err() != nil || fails && e.Reason == leadapi.ReasonHeld:
		c.Breaker.unused(p)
		return nil
	case !fails:
		c.Breaker.unanswered(p, false, nil)
		return nil
	}
	if end := halts(e); end != nil {
		c.Breaker.unused(p)
		return end
	}
	if e.AsksToWait() {
		c.Breaker.throttle(waitOf(e, backoffFor(1)))
	}
	if e.Status != 0 && !e.Unavailable() {
		c.Breaker.reached(p)
	} else {
		c.Breaker.unanswered(p, false, e)
	}
	return nil
}

// left reports whether any of a request has left.
func left(err error) bool {
	e, is := errors.AsType[*leadapi.Error](err)
	return err == nil || is && e.Left()
}

// nextTry says whether a request is sent again after an answer, and when.
type nextTry uint8

const (
	final    nextTry = iota
	atOnce           // it is sent again as soon as the breaker lets it
	retrying         // the same after a pause, as one of the row's retries
)

// decide tells the breaker what the answer shows of the service and whether the request is sent again.
func (c *Retrier) decide(p Pass, err error) (nextTry, error) {
	e, is := errors.AsType[*leadapi.Error](err)
	switch {
	case err == nil:
		c.Breaker.answered(p)
		return final, nil
	case !is || e.Status == 0 && e.Reason == leadapi.ReasonRefused: // by the caller or the client: not a byte has left
		c.Breaker.unused(p)
		return final, err
	case e.Reason == leadapi.ReasonHeld: // the breaker closed after it had let the request pass
		c.Breaker.unused(p)
		return atOnce, e
	}
	if end := halts(e); end != nil {
		c.Breaker.answered(p)
		if p.kind == Create && e.Applied != leadapi.No {
			c.Breaker.end(end)
			return final, e // the row is in doubt, whatever ends the run
		}
		return final, end
	}
	if e.AsksToWait() { // all rows wait, whether or not this one is sent again; before its place is another's
		c.Breaker.throttle(waitOf(e, backoffFor(1)))
	}
	if e.Op == "token" || e.Status == 0 {
		return c.unanswered(p, e)
	}
	if p.kind == Create && e.Unavailable() && !c.Unapplied(e) {
		c.Breaker.askFirst(true)
	}
	if e.AsksToWait() || e.Unavailable() {
		c.Breaker.overloaded(p)
	} else {
		c.Breaker.answered(p)
	}
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusMisdirectedRequest:
		return atOnce, e
	case c.Unapplied(e) || p.kind == Repeatable && Transient(e.Status):
		return retrying, e
	}
	return final, e
}

// unanswered decides about a request that got no answer, or no token to be sent with. Whether the others get answers is
// found out by one request at a time.
func (c *Retrier) unanswered(p Pass, e *leadapi.Error) (nextTry, error) {
	switch {
	case e.Op == "token" || e.Applied == leadapi.No:
		if !c.Breaker.unanswered(p, false, e) {
			return final, unreached(e)
		}
		return atOnce, e
	case p.kind == Create:
		c.Breaker.askFirst(true)
		if p.probe {
			c.Breaker.unanswered(p, true, e)
		} else {
			c.Breaker.unused(p) // creates ask first from now on, and the others need not wait
		}
		return final, e
	}
	if !c.Breaker.unanswered(p, true, e) {
		return final, e
	}
	return retrying, e
}

// statusOf is the status of the answer that an error is about; 0: there was none.
func statusOf(err error) int {
	if e, is := errors.AsType[*leadapi.Error](err); is {
		return e.Status
	}
	return 0
}

// leastThrottle keeps a service that asks to wait 0 seconds from being asked at once.
const leastThrottle = 250 * time.Millisecond

// sleep waits before the next try: at the breaker, all workers together, when the
// service asked for it, else this row alone.
func (c *Retrier) sleep(leaving context.Context, err error, backoff time.Duration) bool {
	if e, is := errors.AsType[*leadapi.Error](err); is && (e.HasRetryAfter || e.Status == http.StatusTooManyRequests) {
		c.Breaker.throttle(waitOf(e, backoff))
		return true // the breaker does the waiting
	}
	timer := time.NewTimer(backoff)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-leaving.Done():
		return false
	}
}

// waitOf is how long an answer asks to wait; backoff where it does not say.
func waitOf(e *leadapi.Error, backoff time.Duration) time.Duration {
	if e.HasRetryAfter {
		return max(e.RetryAfter, leastThrottle)
	}
	return backoff
}

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

// ErrStopping says that the run sends nothing more, so a waiting request never left.
var ErrStopping = errors.New("the run is stopping")

// End is why no further request makes sense: nothing is delivered from then on.
type End struct {
	Reason string // a sentence for people
	Hint   string // what to do, or ""
}

// Error is the reason.
func (e *End) Error() string { return e.Reason }

// maxFreshRefusals is how many newly issued tokens running may be refused.
const maxFreshRefusals = 3

// halts returns why no further request makes sense, or nil.
func halts(e *leadapi.Error) *End {
	switch {
	case e.Status == http.StatusProxyAuthRequired:
		return &End{Reason: "a proxy asks for credentials (HTTP 407)", Hint: "what stands between this machine and the service wants a user and a password: ask whoever runs it"}
	case e.Op == "token" && e.Status >= 400 && e.Status < 500 && !Transient(e.Status):
		return &End{Reason: "sign-in was refused: " + e.Message, Hint: "check the client ID and the client secret, and that they belong to this base URL"}
	case e.Status == http.StatusUnauthorized && e.Refusals >= maxFreshRefusals:
		return &End{Reason: "the service refuses tokens that it has just issued (HTTP 401)", Hint: "check that the leads URL and the base URL belong to the same region, and the account's memberships"}
	case e.Reason == leadapi.ReasonTLS:
		return &End{Reason: "the connection cannot be trusted: " + e.Message, Hint: e.Hint}
	case slices.Contains([]string{leadapi.ReasonClientCert, leadapi.ReasonProxy, leadapi.ReasonProxyAuth}, e.Reason):
		return &End{Reason: e.Message, Hint: e.Hint}
	}
	return nil
}

// unreached ends a run whose request could not be sent, or got no token, for too long.
func unreached(e *leadapi.Error) *End {
	if e.Status == 0 {
		return &End{Reason: "the service cannot be reached: " + e.Message, Hint: e.Hint}
	}
	return &End{
		Reason: fmt.Sprintf("sign-in got no token (HTTP %d): %s", e.Status, e.Message),
		Hint:   "check the base URL, unless the service is out of order: what answers there may be something else, such as the page of a proxy",
	}
}
