package importer

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/time/rate"

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

// courier is the one place where requests are sent again. It asks the client's
// errors whether the request was applied and makes all workers wait at one gate.
type courier struct {
	gate     *gate
	limiter  *rate.Limiter // nil: no limit
	retries  int
	resend   ResendOn
	stopping context.Context             // ended: nothing more leaves
	retried  func()                      // told of each further try
	reach    func(context.Context) error // gets an answer, any at all, or an error; nil: creates find out
}

// deliver calls until the answer is final. repeatable requests (PATCH) may be sent
// again whatever became of the one before. It returns nil, the last error of the
// service, errStopping when the request is known not to have been applied and the
// run stops, or a *Stop that ends the run; tries counts the calls.
func (c *courier) deliver(ctx context.Context, repeatable bool, call func(context.Context) error) (tries int, err error) {
	for failures, unauthorized := 0, 0; ; {
		pass, err := c.gate.enter(c.stopping)
		if err != nil {
			return tries, err
		}
		if pass.knock && !repeatable && c.reach != nil {
			if heard, stop := c.knock(pass); stop != nil {
				return tries, stop
			} else if !heard {
				continue
			}
		}
		if c.limiter != nil && c.limiter.Wait(c.stopping) != nil {
			c.gate.unused(pass)
			return tries, errStopping
		}
		if tries++; tries > 1 {
			c.retried()
		}
		err = call(ctx)
		again, pause, err := c.judge(pass, repeatable, err)
		if !again {
			return tries, err
		}
		// Each token may be good for every other row and never for this one.
		if unauthorized += refusedToken(err); unauthorized > maxFreshRefusals {
			return tries, err
		}
		if pause == 0 {
			continue
		}
		if failures++; failures > c.retries {
			return tries, err
		}
		if !c.sleep(err, backoffFor(failures)) {
			return tries, err
		}
	}
}

// knock asks a silent service for any answer at all before a create goes out, which
// would be in doubt without one.
func (c *courier) knock(p pass) (heard bool, _ error) {
	ctx, cancel := context.WithTimeout(c.stopping, reachLimit)
	defer cancel()
	err := c.reach(ctx)
	if err == nil {
		return true, nil
	}
	if e := (*leadapi.Error)(nil); errors.As(err, &e) {
		if stop := halts(e); stop != nil {
			c.gate.unused(p)
			return false, stop
		}
	}
	if c.stopping.Err() != nil {
		c.gate.unused(p)
	} else {
		c.gate.unanswered(p, true)
	}
	return false, nil
}

// rowPause marks a failure that counts against the row's retries.
const rowPause = time.Duration(1)

// judge tells the gate what the answer shows of the service and decides whether to
// call again; a pause says that the try counts as one of the row's retries.
func (c *courier) judge(p pass, repeatable bool, err error) (again bool, pause time.Duration, _ error) {
	var e *leadapi.Error
	if err == nil || !errors.As(err, &e) {
		c.gate.answered(p)
		return false, 0, err
	}
	if stop := halts(e); stop != nil {
		c.gate.answered(p)
		return false, 0, stop
	}
	switch {
	case e.Status == 0 && e.Reason == leadapi.ReasonRefused: // by the client itself
		c.gate.unused(p)
		return false, 0, err
	case e.Op == "token" || e.Status == 0 && e.Applied == leadapi.No:
		if !c.gate.unanswered(p, true) {
			return false, 0, &Stop{Reason: "the service cannot be reached: " + e.Message, Code: 3}
		}
		return true, 0, err
	case e.Status == http.StatusUnauthorized:
		c.gate.answered(p)
		return true, 0, err
	case e.Status == 0:
		// The request may have arrived. Whether the others get answers is found
		// out by one request at a time, so that silence costs few doubts.
		if !c.gate.unanswered(p, false) {
			return false, 0, err
		}
		return repeatable, rowPause, err
	}
	if overload(e) {
		c.gate.overloaded(p)
		if throttled(e) { // all rows wait, whether or not this one is sent again
			c.gate.throttle(waitOf(e, backoffFor(1)))
		}
	} else {
		c.gate.answered(p)
	}
	return c.unapplied(e) || repeatable && transient(e.Status), rowPause, err
}

func refusedToken(err error) int {
	var e *leadapi.Error
	if errors.As(err, &e) && e.Status == http.StatusUnauthorized {
		return 1
	}
	return 0
}

// leastThrottle keeps a service that asks to wait 0 seconds from being asked at once.
const leastThrottle = 250 * time.Millisecond

// sleep waits before the next try: at the gate, all workers together, when the
// service asked for it, else this row alone.
func (c *courier) sleep(err error, backoff time.Duration) bool {
	var e *leadapi.Error
	if errors.As(err, &e) && (e.HasRetryAfter || e.Status == http.StatusTooManyRequests) {
		c.gate.throttle(waitOf(e, backoff))
		return true // the gate does the waiting
	}
	timer := time.NewTimer(backoff)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.stopping.Done():
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
		return &Stop{Reason: "a proxy asks for credentials (HTTP 407)", Code: 3}
	case e.Op == "token" && e.Status >= 400 && e.Status < 500 && !transient(e.Status):
		return &Stop{Reason: "sign-in was refused: " + e.Message, Code: 3, Hint: "check the client ID and the client secret, and that they belong to this base URL"}
	case e.Status == http.StatusUnauthorized && e.Refusals >= maxFreshRefusals:
		return &Stop{Reason: "the service refuses tokens that it has just issued (HTTP 401)", Code: 3, Hint: "check that the leads URL and the base URL belong to the same region, and the account's memberships"}
	case e.Reason == leadapi.ReasonTLS:
		return &Stop{Reason: "the connection cannot be trusted: " + e.Message, Code: 3}
	}
	return nil
}

// unapplied reports whether a create answered so may be sent again.
func (c *courier) unapplied(e *leadapi.Error) bool {
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
	return status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests
}
