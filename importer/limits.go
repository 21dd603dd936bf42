package importer

import (
	"fmt"
	"net/http"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
)

// Limits end a run early (INTERFACE, "Run flags").
type Limits struct {
	MaxRejects Share // rows sent in this run that were rejected or failed, of those sent
	MaxInvalid Share // rows that are invalid, of those read
	MaxInDoubt int   // rows that fell in doubt in this run; 0 = no limit
	MaxCreates int   // leads made; 0 = no limit
}

// Share bounds a number of rows, by itself or in percent of others; both 0 = no limit.
type Share struct{ Rows, Percent int }

// percentFrom is how many rows there must be before a percentage says anything.
const percentFrom = 200

func (s Share) none() bool { return s == Share{} }

// exceeded reports whether n of a number of rows are too many.
func (s Share) exceeded(n, of int) bool {
	return s.Rows > 0 && n > s.Rows || s.Percent > 0 && of >= percentFrom && n*100 > s.Percent*of
}

// covers reports whether n of a number of rows are no more than the bound, which is none by itself.
func (s Share) covers(n, of int) bool {
	return !s.none() && (s.Percent == 0 && n <= s.Rows || s.Percent > 0 && n*100 <= s.Percent*of)
}

// String is the bound in words, before what it counts.
func (s Share) String() string {
	if s.Percent > 0 {
		return fmt.Sprintf("%d%% of the rows", s.Percent)
	}
	return english.Plural(s.Rows, "row", "")
}

// reached is why a run of these counts must end, or nil.
func (l *Limits) reached(c *checkpoint.Counts) *Stop {
	switch {
	case l.MaxInDoubt > 0 && c.Doubts > l.MaxInDoubt:
		return &Stop{
			Code: CodeStopped, Reason: fmt.Sprintf("more than %d rows fell in doubt (--max-in-doubt)", l.MaxInDoubt),
			Hint: "find out why the service gives no usable answers before going on",
		}
	case l.MaxRejects.exceeded(c.Refused, c.Sent):
		return &Stop{
			Code: CodeStopped, Reason: fmt.Sprintf("more than %s sent were rejected or failed (--max-rejects)", l.MaxRejects),
			Hint: "look at the most frequent reasons first: rows that were rejected are not sent again, but those behind them may fare no better; --max-rejects 0 never stops",
		}
	case l.MaxInvalid.exceeded(c.Invalid, c.Read):
		return &Stop{
			Code: CodeStopped, Reason: fmt.Sprintf("more than %s read are invalid (--max-invalid)", l.MaxInvalid), Same: true,
			Hint: "the file or the mapping may be the wrong one: leadferry validate shows all that is wrong; mend that and run the same command again, which sends nothing twice, or add --max-invalid 0 to go on regardless",
		}
	}
	return nil
}

// refusedHint is what to look at when the service refuses everything with one status.
func refusedHint(status int, updates bool) string {
	switch {
	case status == http.StatusForbidden || status == http.StatusPaymentRequired:
		return "check the account's rights: its memberships and its role in the organizations that the rows name"
	case (status == http.StatusNotFound || status == http.StatusGone) && updates:
		return "check that the lead IDs belong to this base URL: the service says that it knows none of them"
	case status == http.StatusNotFound || status == http.StatusGone || status == http.StatusMethodNotAllowed:
		return "check the trunk ID and the leads URL, unless the service's words say that it is the organization or the locator of the rows that it does not know"
	}
	return "the service refuses what the requests hold: see its words, and mend the rows, or the mapping where they are the same for all"
}
