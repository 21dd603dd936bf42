package delivery

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

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

// doubtful ends a run whose creates leave doubt, each sent alone.
func doubtful() *End {
	return &End{
		Reason: fmt.Sprintf("%d creates in a row, each sent alone, left doubt whether a lead was made", MostDoubts),
		Hint:   "find out from their errors why the service gives no usable answers before going on; what is in doubt stays so until a person has looked",
	}
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

// silentTooLong ends a run at which the service has been silent for too long; last is the last it met.
func silentTooLong(last *leadapi.Error) *End {
	stop := &End{Reason: "the service has given no answer for as long as --max-wait allows"}
	if last != nil {
		stop.Reason, stop.Hint = stop.Reason+": "+last.Message, last.Hint
	}
	return stop
}
