package leadapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Applied says whether the service carried out a request.
type Applied uint8

// No: certainly not. Maybe: nobody can tell. Yes: certainly, but the answer could not be read.
const (
	No Applied = iota
	Maybe
	Yes
)

// String returns "no", "maybe" or "yes".
func (a Applied) String() string { return [...]string{"no", "maybe", "yes"}[a] }

// The values of Error.Reason.
const (
	ReasonRefused      = "refused"       // 4xx for good, or refused here before anything was sent
	ReasonTimeout      = "timeout"       // no whole answer in time; 408, 425, 499
	ReasonNoAnswer     = "no_answer"     // the connection broke after the first byte
	ReasonConnect      = "connect"       // no connection, or one found closed: not one byte left
	ReasonTLS          = "tls"           // the peer's certificate was not accepted
	ReasonClientCert   = "client_cert"   // the peer did not accept our client certificate, or wants one
	ReasonProxy        = "proxy"         // the proxy opens no way, and will not: not one byte left
	ReasonBadAnswer    = "bad_answer"    // an answer that cannot be read
	ReasonNoLeadID     = "no_lead_id"    // a create's 2xx without readable leadID
	ReasonLeadTaken    = "lead_id_taken" // a create's 2xx with the leadID of an earlier answer
	ReasonUnauthorized = "unauthorized"  // 401
	ReasonMisdirected  = "misdirected"   // 421: NewConnection may help
	ReasonHeld         = "held"          // Config.Leave said no: not one byte left
	ReasonThrottled    = "throttled"     // 429
	ReasonProxyAuth    = "proxy_auth"    // 407, from the proxy or through it
	ReasonRedirect     = "redirect"      // 3xx; never followed
	ReasonServerError  = "server_error"  // 5xx
	ReasonCanceled     = "canceled"      // the caller's context ended
)

// DoubtReasons say in words for people why nobody knows whether a create was applied. The keys are Reasons of errors.
var DoubtReasons = map[string]string{
	ReasonTimeout:     "no answer in time",
	ReasonNoAnswer:    "the connection broke after the request was sent",
	ReasonClientCert:  "the client certificate was not accepted, but the request was sent already",
	ReasonCanceled:    "the run was stopped before an answer came",
	ReasonBadAnswer:   "the answer could not be read",
	ReasonNoLeadID:    "the answer carries no usable lead ID",
	ReasonServerError: "the service answered with an error",
	ReasonRedirect:    "the answer was a redirect",
	ReasonThrottled:   "the service asked to wait, which --resend-on none does not trust",
}

// Error is a call that failed. It wraps the end of a context, and no other error: a library's text may quote secrets.
type Error struct {
	Op            string        // "create", "update", "reach", "token", "login" or "client"
	Status        int           // HTTP status; 0: no readable answer
	Message       string        // the service's words or ours: ≤ 500 characters, control characters escaped, no secrets
	Hint          string        // what the user can do; may be ""
	RetryAfter    time.Duration // what the answer asks for, 0 to 15 minutes
	HasRetryAfter bool          // whether it asks
	Applied       Applied       // with Op "token": No, because nothing of the lead request left
	Reason        string        // one of the Reason constants
	Refusals      int           // with a 401: how many new tokens were refused in a row
	cause         error
}

// Error names the operation, the status if there is one, and the message.
func (e *Error) Error() string {
	if e.Status == 0 {
		return e.Op + ": " + e.Message
	}
	return fmt.Sprintf("%s: status %d: %s", e.Op, e.Status, e.Message)
}

// Left reports whether a byte of the request has left.
func (e *Error) Left() bool { return e.Op != "token" && (e.Status != 0 || e.Applied != No) }

// Unwrap returns context.Canceled, context.DeadlineExceeded or nil.
func (e *Error) Unwrap() error { return e.cause }

// AsksToWait reports whether the answer asks everybody to wait: 429, and 503 that says how long.
func (e *Error) AsksToWait() bool {
	return e.Status == http.StatusTooManyRequests || e.Unavailable() && e.HasRetryAfter
}

// Unavailable reports a 503. It says nothing about Applied: proxies send it even after the request has arrived.
func (e *Error) Unavailable() bool { return e.Status == http.StatusServiceUnavailable }

// IsRefused reports whether the service or the client will never accept the request.
func IsRefused(err error) bool {
	e, answered := errors.AsType[*Error](err)
	return answered && e.Reason == ReasonRefused
}

// sparesRefreshToken reports whether the refresh token may still work later, so that no other grant is tried now.
func (e *Error) sparesRefreshToken() bool {
	return e.AsksToWait() || slices.Contains([]string{
		ReasonConnect, ReasonTLS, ReasonClientCert, ReasonProxy, ReasonCanceled, ReasonHeld,
	}, e.Reason)
}

// appliedBy returns what a status says of a request: it may have been applied, unless HTTP says that it was refused.
func appliedBy(status int) (Applied, string) {
	switch status {
	case http.StatusUnauthorized:
		return No, ReasonUnauthorized
	case http.StatusProxyAuthRequired:
		return No, ReasonProxyAuth
	case http.StatusMisdirectedRequest:
		return No, ReasonMisdirected
	case http.StatusTooManyRequests:
		return No, ReasonThrottled
	case http.StatusRequestTimeout, http.StatusTooEarly, 499:
		return Maybe, ReasonTimeout
	}
	switch status / 100 {
	case 3:
		return Maybe, ReasonRedirect
	case 4:
		return No, ReasonRefused
	case 5:
		return Maybe, ReasonServerError
	}
	return Maybe, ReasonBadAnswer
}

// unsent returns the error of a call that is refused here.
func unsent(op, reason, text string) *Error {
	return &Error{Op: op, Applied: No, Reason: reason, Message: text + "; nothing was sent"}
}

// interrupted returns the error of a call that ended with the caller's context or its time limit: cause says which.
func interrupted(cause error, op string, applied Applied) *Error {
	e := &Error{Op: op, Applied: applied, Reason: ReasonCanceled, cause: cause}
	e.Message = "stopped before the answer came"
	if errors.Is(cause, context.DeadlineExceeded) {
		e.Reason, e.Message = ReasonTimeout, "no answer in time"
	}
	return e
}

// unanswered returns the error of a call that got no answer, in our own words.
func unanswered(ctx context.Context, r request, sent bool, err error) *Error {
	e := &Error{Op: r.op, Reason: ReasonConnect, Message: "nothing could be sent to " + r.host.domain}
	if sent {
		e.Applied, e.Reason, e.Message = Maybe, ReasonNoAnswer, "the connection broke before a readable answer came"
	}
	fault, named := errors.AsType[*dialError](err)
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx.Err(), r.op, e.Applied)
	case named:
		e.Reason, e.Message, e.Hint = fault.reason, redact(e.Message+": "+fault.text), redact(fault.hint)
	case !time.Now().Before(r.limit):
		return interrupted(context.DeadlineExceeded, r.op, e.Applied)
	case !sent:
		e.Message += ": " + cmp.Or(broken(err), "no connection, or it was closed before use")
	}
	return e
}

// answered returns the error of a call that got an answer other than a readable success.
func (c *Client) answered(r request, a answer) *Error {
	e := &Error{Op: r.op, Status: a.StatusCode}
	e.RetryAfter, e.HasRetryAfter = retryAfter(a.Header, c.config.Now())
	e.Applied, e.Reason = appliedBy(e.Status)
	if e.Status == r.success {
		e.Applied = Yes
	}
	if e.Status/100 == 2 && r.op == "create" {
		e.Reason = ReasonNoLeadID
	}
	switch {
	case e.Reason == ReasonNoLeadID:
		e.Message = "the answer holds no readable leadID"
	case e.Reason == ReasonBadAnswer:
		e.Message = "the answer cannot be read"
	case e.Reason == ReasonRedirect:
		e.Message = "the service redirects, and leadferry follows no redirect"
	case r.op != "create" && r.op != "update":
		e.Message = code(a.body)
	case a.whole && !a.readable:
		e.Message = noText
	default:
		e.Message = redact(words(a.body), c.config.ClientSecret, r.bearer)
	}
	return e
}

// retryAfter reads how long an answer asks to wait: seconds, or a date in any of HTTP's three forms, counted from the
// answer's own Date if it has one. A past date is 0, more than 15 minutes is 15 minutes, and nonsense is no wait.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds > int(MaxRetryAfter/time.Second) {
			return MaxRetryAfter, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	when, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(when.Sub(now), 0), MaxRetryAfter), true
}

// What is shown of an answer without a readable message.
const (
	noMessage = "no message was given"
	noText    = "a message that is no text"
)

// The error codes of a token endpoint (RFC 6749, section 5.2).
const codes = " invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type invalid_scope "

// code returns the error code of an answer to a request with credentials. Other words of it may repeat a secret.
func code(body []byte) string {
	if len(bytes.TrimSpace(body)) == 0 {
		return noMessage
	}
	if code := textOf(fieldsOf(body)["error"]); strings.Contains(codes, " "+code+" ") {
		return code
	}
	return "its words are not shown, for they may repeat a secret"
}

// words finds the message in the body of an error. No specification says where it is: words tries the usual names.
func words(body []byte) string {
	if bytes.IndexByte(body, 0) >= 0 {
		return noText
	}
	all := fieldsOf(body)
	for _, name := range []string{"message", "Message", "error_description", "detail", "error", "title"} {
		if text := strings.TrimSpace(textOf(all[name])); text != "" {
			return text
		}
	}
	return cmp.Or(strings.TrimSpace(string(body)), noMessage)
}

// redact makes a text from outside safe to show: escaped, at most 500 characters, and withheld if it repeats a secret.
func redact(text string, secrets ...string) string {
	text = text[:min(len(text), maxText*utf8.UTFMax)]
	if slices.ContainsFunc(secrets, func(s string) bool { return revealsSecret(text, s) }) {
		return "the message is withheld: it repeats a secret"
	}
	text = strconv.QuoteToGraphic(text)
	shown := []rune(unquoted.Replace(text[1 : len(text)-1]))
	return string(shown[:min(len(shown), maxText)])
}

// unquoted undoes what quoting does to characters that need no escape.
var unquoted = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// revealsSecret reports whether a text holds a piece of a secret, in one of the forms that a service may repeat.
func revealsSecret(text, secret string) bool {
	if len(secret) < secretPiece {
		return secret != "" && strings.Contains(text, secret)
	}
	text = strings.ToLower(text)
	for _, form := range []string{
		secret, url.QueryEscape(secret),
		base64.RawStdEncoding.EncodeToString([]byte(secret)),
	} {
		form = strings.ToLower(form)
		for i := range len(form) - secretPiece + 1 {
			if strings.Contains(text, form[i:i+secretPiece]) {
				return true
			}
		}
	}
	return false
}
