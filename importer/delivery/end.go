package delivery

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"leadferry/leadapi"
)

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

// halts returns why no further request makes sense after an answer, or nil.
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

// Over is why nothing passes any more, or nil.
func (b *Breaker) Over() *End {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended != nil:
		return b.ended
	case b.creates.state == tripped && b.creates.wary:
		return &End{"the run before stopped for doubts, and the first create of this one left doubt, too", settleFirst}
	case b.creates.state == tripped:
		return &End{fmt.Sprintf("%d creates in a row, each sent alone, left doubt whether a lead was made", MostDoubts), settleFirst}
	case b.contact.gone:
		return unreached(b.fault)
	}
	return nil
}

const settleFirst = "find out from their errors why the service gives no usable answers, and settle what is in doubt, before going on"

// unreached is the end of a silence that was too long, by the last error in it.
func unreached(e *leadapi.Error) *End {
	switch {
	case e.Op == "token" && e.Status != 0:
		return &End{
			fmt.Sprintf("sign-in got no token (HTTP %d): %s", e.Status, e.Message),
			"check the base URL, unless the service is out of order: what answers there may be something else, such as the page of a proxy",
		}
	case e.Unavailable():
		return &End{"the service has answered with HTTP 503 for as long as --max-wait allows", ""}
	case !e.Left():
		return &End{"the service cannot be reached: " + e.Message, e.Hint}
	}
	return &End{"the service has given no answer for as long as --max-wait allows: " + e.Message, e.Hint}
}

// Paused says in a word why requests wait now, or nothing.
func (b *Breaker) Paused() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	const singleProbe = ", trying with one request at a time"
	switch {
	case time.Now().Before(b.opens):
		return "the service asked to wait"
	case b.contact.silent && b.fault.Unavailable():
		return "the service answers with HTTP 503" + singleProbe
	case b.contact.silent:
		return "no answer from the service" + singleProbe + ": " + b.fault.Message
	case b.creates.state == singly && b.creates.doubts > 0:
		return "a create left doubt, trying with one at a time"
	}
	return ""
}
