package leadapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Applied says whether the service carried out a request.
type Applied uint8

// No: certainly not. Maybe: nobody can tell. Yes: certainly, but what it answered could not be read.
const (
	No Applied = iota
	Maybe
	Yes
)

// String returns "no", "maybe" or "yes".
func (a Applied) String() string { return [...]string{"no", "maybe", "yes"}[a] }

// The values of Error.Reason.
const (
	ReasonRefused      = "refused"      // 4xx for good, or refused here before anything was sent
	ReasonTimeout      = "timeout"      // no whole answer in time; 408, 425, 499
	ReasonNoAnswer     = "no_answer"    // the connection broke after the first byte
	ReasonConnect      = "connect"      // no connection, or one found closed: not one byte left
	ReasonTLS          = "tls"          // the peer's certificate or TLS was not accepted
	ReasonBadAnswer    = "bad_answer"   // an answer that cannot be read
	ReasonNoLeadID     = "no_lead_id"   // a create's 2xx without readable leadID
	ReasonUnauthorized = "unauthorized" // 401
	ReasonMisdirected  = "misdirected"  // 421: a new connection may fare better, and is what the next call gets
	ReasonHeld         = "held"         // Config.Leave said no: not one byte left
	ReasonThrottled    = "throttled"    // 429, 503 with Retry-After
	ReasonProxyAuth    = "proxy_auth"   // 407
	ReasonRedirect     = "redirect"     // 3xx; never followed
	ReasonServerError  = "server_error" // 5xx
	ReasonCanceled     = "canceled"     // the caller's context ended
)

// Error is a call that failed. It wraps nothing from below, which may quote secrets, but the end of the caller's context or
// of the time limit.
type Error struct {
	Op            string        // "create", "update", "token", "login" or "client"
	Status        int           // HTTP status; 0: no answer that can be told
	Message       string        // the service's words or ours: ≤ 500 characters, control characters escaped, no secrets
	RetryAfter    time.Duration // what the answer asks for, 0 to 15 minutes
	HasRetryAfter bool          // whether it asks
	Applied       Applied       // with Op "token": No, as nothing of the lead request left
	Reason        string        // one of the Reason constants
	Refusals      int           // on 401: how many newly issued tokens running were refused, with no accepted request between
	cause         error
}

// Error names the operation, the status where there is one, and the message.
func (e *Error) Error() string {
	if e.Status == 0 {
		return e.Op + ": " + e.Message
	}
	return fmt.Sprintf("%s: status %d: %s", e.Op, e.Status, e.Message)
}

// Unwrap returns context.Canceled, context.DeadlineExceeded or nil.
func (e *Error) Unwrap() error { return e.cause }

// later tells whether the same request may do better after a while.
func (e *Error) later() bool {
	return slices.Contains([]string{ReasonThrottled, ReasonConnect, ReasonCanceled, ReasonHeld}, e.Reason)
}

// interrupted is the error of a call whose caller's context ended, or whose time is over: cause says which.
func interrupted(cause error, op string, applied Applied) *Error {
	e := &Error{Op: op, Applied: applied, Reason: ReasonCanceled, Message: "stopped before the answer came", cause: cause}
	if errors.Is(cause, context.DeadlineExceeded) {
		e.Reason, e.Message = ReasonTimeout, "no answer in time"
	}
	return e
}

// verdict is what the status of an answer, other than a readable success, says of the request. What HTTP does not
// say to be refused may have been applied.
func verdict(status int, retryAfter bool) (Applied, string) {
	switch {
	case status == http.StatusUnauthorized:
		return No, ReasonUnauthorized
	case status == http.StatusProxyAuthRequired:
		return No, ReasonProxyAuth
	case status == http.StatusMisdirectedRequest:
		return No, ReasonMisdirected
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && retryAfter:
		return No, ReasonThrottled
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == 499:
		return Maybe, ReasonTimeout
	case status >= 300 && status < 400:
		return Maybe, ReasonRedirect
	case status >= 400 && status < 500:
		return No, ReasonRefused
	case status >= 500 && status < 600:
		return Maybe, ReasonServerError
	}
	return Maybe, ReasonBadAnswer
}
