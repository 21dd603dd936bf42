package importer

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"leadferry/leadapi"
)

// Sender makes the service's calls. It never retries; its errors are
// *leadapi.Error and say whether the request was applied.
type Sender interface {
	Create(ctx context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error)
	Update(ctx context.Context, leadID string, r *leadapi.UpdateRequest) (*leadapi.Lead, error)
}

// ResendOn says which answers mean that a create was not applied, beyond those
// that say so by themselves (INTERFACE, "When a create is sent again").
type ResendOn struct {
	NoDefault bool         // 429, and 503 with Retry-After, do not count
	Codes     map[int]bool // further HTTP statuses
}

// maxFreshRefusals is how many newly issued tokens running may be refused.
const maxFreshRefusals = 3

// retrier is the one place where requests are sent again. It asks the client's errors
// whether the request was applied, and makes all of them pass one breaker.
type retrier struct {
	breaker *breaker
	retries int
	resend  ResendOn
	retried func()                      // told of each further try
	reach   func(context.Context) error // gets an answer, any at all, or an error; nil: creates find out
}

// deliver calls until the answer is final, after a 421 with the wish for a new connection; nothing leaves once leaving has ended. For a create,
// last is where it keeps the pass of its last try, which the caller concludes. Where last is nil
// the request is a PATCH, or a sign-in: it may be sent again even if it may have been applied.
// It returns nil, the last error of the service, errStopping when the request is known not to
// have been applied and the run stops, or a *Stop that ends the run; tries counts the
// requests that left.
func (c *retrier) deliver(ctx, leaving context.Context, last *pass, call func(ctx context.Context, anew bool) error) (tries int, err error) {
	repeatable := last == nil
	if repeatable {
		last = new(pass)
	}
	for failures, unauthorized, misdirected := 0, 0, 0; ; {
		p, err := c.breaker.enter(leaving, !repeatable)
		if err != nil {
			return tries, err
		}
		if *last = p; p.ask && c.reach != nil {
			err := c.preflight(leaving, p)
			if c.breaker.conclude(last, nothingShown); err != nil {
				return tries, err
			}
			continue
		}
		err = call(ctx, misdirected > 0)
		if err != nil && reasonOf(err) == leadapi.ReasonHeld {
			c.breaker.unused(p)
			c.breaker.conclude(last, nothingShown)
			continue
		}
		if c.askedToWait(p, err) {
			c.breaker.conclude(last, nothingShown)
			continue
		}
		if tries++; tries > 1 {
			c.retried()
		}
		next, err := c.decide(p, repeatable, err)
		if next == final {
			return tries, err
		}
		c.breaker.conclude(last, nothingShown)
		// Each token may be good for every other row and never for this one.
		if unauthorized += isStatus(err, http.StatusUnauthorized); unauthorized > maxFreshRefusals {
			return tries, err
		}
		if misdirected += isStatus(err, http.StatusMisdirectedRequest); misdirected > 1 {
			return tries, err
		}
		if next == atOnce {
			continue
		}
		if failures++; failures > c.retries || !c.sleep(leaving, err, backoffFor(failures)) {
			return tries, err
		}
	}
}

// preflight asks the service for any answer at all before a create goes out, which
// would be in doubt without one. An error ends the run.
func (c *retrier) preflight(leaving context.Context, p pass) error {
	ctx, cancel := context.WithTimeout(leaving, reachLimit)
	defer cancel()
	err := c.reach(ctx)
	var e *leadapi.Error
	if errors.As(err, &e) {
		if stop := halts(e); stop != nil {
			c.breaker.unused(p)
			return stop
		}
	}
	switch {
	case err == nil:
		c.breaker.reached(p)
	case e != nil && e.Status != 0:
		c.breaker.throttle(waitOf(e, backoffFor(1)))
		c.breaker.reached(p)
	case leaving.Err() != nil, reasonOf(err) == leadapi.ReasonHeld:
		c.breaker.unused(p)
	default:
		c.breaker.missed(e)
		c.breaker.unanswered(p, false)
	}
	return nil
}

// askedToWait hears a wait that the service asked for when it was asked, before a create left, whether a connection still
// serves.
func (c *retrier) askedToWait(p pass, err error) bool {
	var e *leadapi.Error
	if !errors.As(err, &e) || e.Op != "reach" || !throttled(e) {
		return false
	}
	c.breaker.throttle(waitOf(e, backoffFor(1)))
	c.breaker.overloaded(p)
	return true
}

// nextTry says whether a request is sent again after an answer, and when.
type nextTry uint8

const (
	final    nextTry = iota
	atOnce           // it is sent again as soon as the breaker lets it
	retrying         // the same after a pause, as one of the row's retries
)

// decide tells the breaker what the answer shows of the service and whether the request
// is sent again.
func (c *retrier) decide(p pass, repeatable bool, err error) (nextTry, error) {
	if err == nil {
		c.breaker.answered(p)
		return final, nil
	}
	var e *leadapi.Error
	var held *Stop
	switch {
	case errors.Is(err, errStopping) || errors.As(err, &held): // not a byte has left
		c.breaker.unused(p)
		return final, err
	case !errors.As(err, &e):
		c.breaker.answered(p)
		return final, err
	}
	if stop := halts(e); stop != nil {
		c.breaker.answered(p)
		return final, stop
	}
	switch {
	case e.Status == 0 && e.Reason == leadapi.ReasonRefused: // by the client itself
		c.breaker.unused(p)
		return final, err
	case e.Op == "token" || e.Status == 0 && e.Applied == leadapi.No:
		if throttled(e) {
			c.breaker.throttle(waitOf(e, backoffFor(1)))
		}
		c.breaker.missed(e)
		if !c.breaker.unanswered(p, false) {
			return final, unreached(e)
		}
		return atOnce, err
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusMisdirectedRequest:
		c.breaker.answered(p)
		return atOnce, err
	case e.Status == 0 && !repeatable && !p.probe:
		c.breaker.unused(p) // the doubt says it: creates ask first from now on, and the others need not wait
		return final, err
	case e.Status == 0:
		// The request may have arrived. Whether the others get answers is found
		// out by one request at a time.
		c.breaker.missed(e)
		if !c.breaker.unanswered(p, true) || !repeatable {
			return final, err
		}
		return retrying, err
	}
	if overload(e) {
		if throttled(e) { // all rows wait, whether or not this one is sent again; before its place is another's
			c.breaker.throttle(waitOf(e, backoffFor(1)))
		}
		c.breaker.overloaded(p)
	} else {
		c.breaker.answered(p)
	}
	if c.unapplied(e) || repeatable && transient(e.Status) {
		return retrying, err
	}
	return final, err
}

func reasonOf(err error) string {
	if e := (*leadapi.Error)(nil); errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// isStatus counts an answer with this status as one.
func isStatus(err error, status int) int {
	if e := (*leadapi.Error)(nil); errors.As(err, &e) && e.Status == status {
		return 1
	}
	return 0
}

// leastThrottle keeps a service that asks to wait 0 seconds from being asked at once.
const leastThrottle = 250 * time.Millisecond

// sleep waits before the next try: at the breaker, all workers together, when the
// service asked for it, else this row alone.
func (c *retrier) sleep(leaving context.Context, err error, backoff time.Duration) bool {
	var e *leadapi.Error
	if errors.As(err, &e) && (e.HasRetryAfter || e.Status == http.StatusTooManyRequests) {
		c.breaker.throttle(waitOf(e, backoff))
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

// halts returns why no further request makes sense, or nil.
func halts(e *leadapi.Error) *Stop {
	switch {
	case e.Status == http.StatusProxyAuthRequired:
		return &Stop{Reason: "a proxy asks for credentials (HTTP 407)", Code: CodeStopped, Hint: "what stands between this machine and the service wants a user and a password: ask whoever runs it"}
	case e.Op == "token" && e.Status >= 400 && e.Status < 500 && !transient(e.Status):
		return &Stop{Reason: "sign-in was refused: " + e.Message, Code: CodeStopped, Hint: "check the client ID and the client secret, and that they belong to this base URL"}
	case e.Status == http.StatusUnauthorized && e.Refusals >= maxFreshRefusals:
		return &Stop{Reason: "the service refuses tokens that it has just issued (HTTP 401)", Code: CodeStopped, Hint: "check that the leads URL and the base URL belong to the same region, and the account's memberships"}
	case e.Reason == leadapi.ReasonTLS:
		return &Stop{Reason: "the connection cannot be trusted: " + e.Message, Code: CodeStopped, Hint: e.Hint}
	case slices.Contains([]string{leadapi.ReasonClientCert, leadapi.ReasonProxy, leadapi.ReasonProxyAuth}, e.Reason):
		return &Stop{Reason: e.Message, Code: CodeStopped, Hint: e.Hint}
	}
	return nil
}

// unapplied reports whether a create answered so may be sent again.
func (c *retrier) unapplied(e *leadapi.Error) bool {
	return c.resend.Codes[e.Status] || !c.resend.NoDefault && throttled(e)
}

func throttled(e *leadapi.Error) bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable && e.HasRetryAfter
}

// overload reports whether the service says that it is asked too much.
func overload(e *leadapi.Error) bool {
	return throttled(e) || e.Status == http.StatusServiceUnavailable
}

// transient reports whether another try of a repeatable request may fare better.
func transient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests, 499:
		return true
	}
	return status >= 500
}
