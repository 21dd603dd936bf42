package delivery

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"leadferry/leadapi"
)

// Stop says why a run ends before its input. The run can be resumed.
type Stop struct {
	Reason string // a sentence for people
	Hint   string // what to do, or ""
	Code   int    // the least exit code of the run
	Same   bool   // the same command would end at the same place, unless the user follows the hint
}

// Error returns the reason.
func (s *Stop) Error() string { return s.Reason }

const codeStopped = 3 // the exit code of a run that stopped early

// StopFor returns the stop of a run for this reason. The hint says what to do.
func StopFor(reason, hint string) *Stop { return &Stop{Reason: reason, Hint: hint, Code: codeStopped} }

// Lasting returns a stop that the same command would meet again.
func Lasting(code int, reason, hint string) *Stop {
	return &Stop{Reason: reason, Hint: hint, Code: code, Same: true}
}

// halts returns why the run ends after an answer, or nil.
func halts(e *leadapi.Error) *Stop {
	switch {
	case e.Status == http.StatusProxyAuthRequired:
		return StopFor("a proxy asks for credentials (HTTP 407)", "ask who runs the network for a user and a password")
	case e.Op == "token" && e.Status >= 400 && e.Status < 500 && !Transient(e.Status):
		return StopFor("sign-in was refused: "+e.Message, "check client ID and secret: both must be of this base URL")
	case e.Status == http.StatusUnauthorized && e.Refusals >= maxFreshRefusals:
		return StopFor("the service refuses tokens that it has just issued (HTTP 401)",
			"check that the leads URL and the base URL belong to the same region, and the account's memberships")
	case e.Reason == leadapi.ReasonTLS:
		return StopFor("the connection cannot be trusted: "+e.Message, e.Hint)
	case slices.Contains([]string{leadapi.ReasonClientCert, leadapi.ReasonProxy, leadapi.ReasonProxyAuth}, e.Reason):
		return StopFor(e.Message, e.Hint)
	}
	return nil
}

// unreached returns the stop after a silence longer than --max-wait.
func unreached(e *leadapi.Error) *Stop {
	switch {
	case e.Op == "token" && e.Status != 0:
		return StopFor(fmt.Sprintf("sign-in got no token (HTTP %d): %s", e.Status, e.Message),
			"check the base URL; if it is right, the service is out of order, or a proxy answers in its place")
	case !e.Left():
		return StopFor("the service cannot be reached: "+e.Message, e.Hint)
	}
	return StopFor("the service has given no usable answer for as long as --max-wait allows: "+e.Error(), e.Hint)
}

var onlyDoubts = StopFor(
	fmt.Sprintf("%d creates in a row left doubt whether a lead was made (those of the run before count)", MostDoubts),
	"read the errors of the rows in doubt to find out why the service gives no usable answers; settle the rows in doubt before you go on")

// Limits end a run early (leadferry help import).
type Limits struct {
	MaxRejects Share // rows sent in this run that were rejected or failed, of those sent
	MaxInvalid Share // rows that are invalid, of those read
	MaxInDoubt int   // rows that are in doubt; 0 = no limit
	MaxCreates int   // leads made; 0 = no limit

	Standing int // rows in doubt when the run began, minus those that it has sent again
}

// Share bounds a number of rows, by itself or in percent of others; both 0 = no limit.
type Share struct{ Rows, Percent int }

// ParseShare reads a number of rows or a percentage; "" is no bound.
func ParseShare(text string) (s Share) {
	number, percent := strings.CutSuffix(text, "%")
	if s.Rows, _ = strconv.Atoi(number); percent {
		s.Percent, s.Rows = s.Rows, 0
	}
	return s
}

// exceeded reports whether n of a number of rows are too many. A percentage counts only from 200 rows on.
func (s Share) exceeded(n, of int) bool {
	return s.Rows > 0 && n > s.Rows || s.Percent > 0 && of >= 200 && n*100 > s.Percent*of
}

// Covers reports whether n of a number of rows are within the bound. The zero Share covers nothing.
func (s Share) Covers(n, of int) bool {
	return s.Percent > 0 && n*100 <= s.Percent*of || s.Percent == 0 && s.Rows > 0 && n <= s.Rows
}

// String returns the bound in words, for example "7 rows" or "5% of the rows".
func (s Share) String() string {
	if s.Percent > 0 {
		return fmt.Sprintf("%d%% of the rows", s.Percent)
	}
	return english.Plural(s.Rows, "row", "")
}

// Doubts reports whether too many rows are in doubt: those of earlier runs, and own of this run.
func (l *Limits) Doubts(own int) bool { return l.MaxInDoubt > 0 && l.Standing+own > l.MaxInDoubt }

// DoubtsBefore returns the stop of a run that may make no lead: too many rows are in doubt from earlier runs.
func (l *Limits) DoubtsBefore() *Stop {
	return Lasting(codeStopped, fmt.Sprintf("%d rows are in doubt from earlier runs, more than --max-in-doubt allows "+
		"(%d): no lead is made", l.Standing, l.MaxInDoubt), "settle them first, then go on")
}

// AllRefused returns the stop of a run whose first rows were all refused with this HTTP status.
func AllRefused(rows, status int) *Stop {
	return StopFor(fmt.Sprintf("the first %d rows sent were all refused with HTTP %d", rows, status), "see the service's "+
		"words: check the account's rights, the trunk ID and the addresses, and what all rows send alike; then send "+
		"them again with --retry-rejected. --max-rejects 0 turns this limit off")
}

// Counts are numbers of rows. Refused and Doubts are rows sent: rejected or failed, and now in doubt.
type Counts struct{ Read, Invalid, Sent, Refused, Doubts int }

// Reached returns why a run with these counts must end, or nil.
func (l *Limits) Reached(c Counts) *Stop {
	switch {
	case c.Doubts > 0 && l.Doubts(c.Doubts):
		return Lasting(codeStopped, fmt.Sprintf("more than %d rows are in doubt (--max-in-doubt)", l.MaxInDoubt),
			"find out why the service gives no usable answers, settle the rows, then run the same command again")
	case l.MaxRejects.exceeded(c.Refused, c.Sent):
		return StopFor(fmt.Sprintf("more than %s sent were rejected or failed (--max-rejects)", l.MaxRejects),
			"fix the cause first: the remaining rows may be rejected too; --max-rejects 0 turns this limit off")
	case l.MaxInvalid.exceeded(c.Invalid, c.Read):
		return Lasting(codeStopped, fmt.Sprintf("more than %s read are invalid (--max-invalid)", l.MaxInvalid),
			"the file or the mapping may be the wrong one: leadferry validate shows every mistake; fix them and run the "+
				"same command again, which sends nothing twice, or add --max-invalid 0 to turn this limit off")
	}
	return nil
}
