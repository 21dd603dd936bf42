package delivery

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"leadferry/leadapi"
)

// End is why no further request makes sense: nothing is delivered from then on.
type End struct {
	Reason string // a sentence for people
	Hint   string // what to do, or ""
}

// Error is the reason.
func (e *End) Error() string { return e.Reason }

// halts returns why no further request makes sense after an answer, or nil.
func halts(e *leadapi.Error) *End {
	switch {
	case e.Status == http.StatusProxyAuthRequired:
		return &End{"a proxy asks for credentials (HTTP 407)", "ask who runs the network for a user and a password"}
	case e.Op == "token" && e.Status >= 400 && e.Status < 500 && !Transient(e.Status):
		return &End{"sign-in was refused: " + e.Message, "check client ID and secret, and that they belong to this base URL"}
	case e.Status == http.StatusUnauthorized && e.Refusals >= maxFreshRefusals:
		return &End{
			"the service refuses tokens that it has just issued (HTTP 401)",
			"check that the leads URL and the base URL belong to the same region, and the account's memberships",
		}
	}
	switch e.Reason {
	case leadapi.ReasonTLS:
		return &End{"the connection cannot be trusted: " + e.Message, e.Hint}
	case leadapi.ReasonClientCert, leadapi.ReasonProxy, leadapi.ReasonProxyAuth:
		return &End{e.Message, e.Hint}
	}
	return nil
}

// unreached is the end of a silence that was too long, by the last error in it.
func unreached(e *leadapi.Error) *End {
	switch {
	case e.Op == "token" && e.Status != 0:
		return &End{
			fmt.Sprintf("sign-in got no token (HTTP %d): %s", e.Status, e.Message),
			"check the base URL; if it is right, the service is out of order, or a proxy answers in its place",
		}
	case !e.Left():
		return &End{"the service cannot be reached: " + e.Message, e.Hint}
	}
	return &End{"the service has given no usable answer for as long as --max-wait allows: " + e.Error(), e.Hint}
}

// onlyDoubts ends the creates.
var onlyDoubts = &End{
	fmt.Sprintf("%d creates in a row, those of a run before counted, left doubt whether a lead was made", MostDoubts),
	"find out from their errors why the service gives no usable answers, and settle what is in doubt, before going on",
}

// Over is why nothing leaves any more, or no create; nil while all may.
func (b *Breaker) Over() *End {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cmp.Or(b.ended, b.creates.ended)
}

// Paused says in a word why requests wait now, or nothing.
func (b *Breaker) Paused() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.silence.lasts:
		return "no usable answer, trying with one request at a time: " + b.silence.fault.Error()
	case time.Now().Before(b.opens):
		return "the service asked to wait"
	case b.creates.doubts > 0:
		return "a create left doubt, trying with one at a time"
	}
	return ""
}
