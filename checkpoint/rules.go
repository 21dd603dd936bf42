package checkpoint

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// mostText is how many bytes the texts of an entry of a list may have together.
const mostText = 1 << 20

// LeadIDHint says what a lead ID is.
const LeadIDHint = "a lead ID has letters, digits, dots, dashes and underscores, 128 at most"

// ValidKey says whether a key can be kept.
func ValidKey(key string) bool { return len(key) > 0 && len(key) <= MaxKey }

// ValidLeadID says whether an ID can be one of a lead: it becomes part of a path.
func ValidLeadID(id string) bool {
	return len(id) <= 128 && strings.Trim(id, ".") != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '.' && r != '_' && r != '-'
	})
}

// Unfit says what is wrong with an entry of a list by itself, or nothing.
func (e *Entry) Unfit() (text, hint string) {
	switch {
	case !ValidKey(e.Key):
		return "its " + ErrKey.Error(), ""
	case e.State > InDoubt:
		return "its " + ErrState.Error(), ""
	case e.LeadID == "" && (e.State == Unknown || e.State == Partial):
		return "its lead ID is missing", "leave out rows that have no lead"
	case e.LeadID != "" && !ValidLeadID(e.LeadID):
		return "its lead ID is none", LeadIDHint
	case len(e.Organization)+len(e.Location)+len(e.ExternalID)+len(e.WantLink)+len(e.Locator)+len(e.RequestID)+len(e.File)+len(e.Run)+len(e.Reason) > mostText:
		return "its texts are longer than 1 MiB together", "its location or another of its texts is none"
	}
	return "", ""
}

// Completed is an entry whose lead ID was not known, with what a list says of it.
func (e Entry) Completed(by *Entry) Entry {
	e.LeadID, e.State = by.LeadID, Created
	e.ExternalID, e.Status = cmp.Or(e.ExternalID, by.ExternalID), cmp.Or(e.Status, by.Status)
	e.Organization, e.Location = cmp.Or(e.Organization, by.Organization), cmp.Or(e.Location, by.Location)
	if e.WantLink != "" && e.ExternalID != e.WantLink {
		e.State = Partial
	}
	return e
}

// Bare is an entry whose lead was not its own: what was known of that lead goes.
func (e Entry) Bare() Entry {
	return Entry{
		Key: e.Key, State: Created, WantLink: cmp.Or(e.WantLink, e.ExternalID), Run: e.Run,
		Updated: e.Updated, Status: e.Status, Code: e.Code,
	}
}

// Event is what the history of a key says of an entry.
func (e *Entry) Event(act Act) Event {
	ev := Event{Act: act, State: e.State, Status: e.Status, Code: e.Code, Run: e.Run, At: e.Updated}
	if e.State == InDoubt {
		ev.Send = Send{File: e.File, Line: e.Line, Organization: e.Organization, Locator: e.Locator}
	}
	return ev
}

// ActAfter is what was done to a key when e came in place of old.
func (e *Entry) ActAfter(old *Entry) (act Act) {
	set := func(a Act, on bool) {
		if on {
			act |= a
		}
	}
	switch e.State {
	case Rejected:
		return Refused
	case InDoubt:
		return Doubted
	case NotMade:
		return 0
	}
	made := !old.State.HasLead()
	set(Made, made)
	set(Linked, e.ExternalID != "" && e.ExternalID != old.ExternalID)
	if !made {
		set(StatusSent, e.Status != old.Status)
		set(DataSent, e.Digest != old.Digest || !slices.Equal(e.Content, old.Content))
		set(Refused, e.Refused != (Digest{}) && e.Code >= 400)
		set(DataSent, act == 0 && old.Unsettled != "" && e.Unsettled == "" && e.Reason == "")
	}
	return act
}

// About says whether a decision can be about this send: what a list says of another one
// frees nothing.
func (d *Decision) About(send *Entry) bool {
	return (d.Sent.IsZero() || d.Sent.Unix() == send.Updated.Unix()) && (d.Run == "" || d.Run == send.Run)
}

// Outcome is what becomes of a send by a decision.
func (d *Decision) Outcome(send Entry, now time.Time) Entry {
	send.LeadID, send.Status, send.Code, send.Reason, send.RequestID, send.Updated = d.LeadID, "", 0, "", "", now
	switch {
	case d.LeadID == "" && !d.Exists:
		send.State = NotMade
	case d.LeadID != "" && send.WantLink != "":
		send.State = Partial
	default:
		send.State = Created
	}
	return send
}

// Evidence speaks against a decision.
type Evidence uint8

// The kinds of evidence.
const (
	NoEvidence      Evidence = iota
	LeadOfAnother            // the service gave the same lead ID to another key
	AlreadyThere             // sent again as not made, and the service has it already
	NoSuchLead               // the service does not know the lead
	MadeAfterAll             // the answer to the send came after the decision: the lead was made
	RefusedAfterAll          // the same: it was refused
)

// String says what was found.
func (e Evidence) String() string {
	return [...]string{
		LeadOfAnother: "the service answered another row with the same lead ID",
		AlreadyThere:  "when the row was sent again, the service refused it as a conflict: it may have been made after all",
		NoSuchLead:    "the service knows no lead with this ID",

		MadeAfterAll:    "the answer of the service came later: it has made the lead",
		RefusedAfterAll: "the answer of the service came later: it has refused the row",
	}[e]
}

// The HTTP statuses that speak against a decision.
const (
	statusConflict = 409 // the lead is there already
	statusNotFound = 404
	statusGone     = 410
)

// Against is how an outcome contradicts a decision about its key that gave it this lead ID,
// if there is one.
func (e *Entry) Against() (kind Evidence, lead string) {
	switch {
	case e.State == Rejected && e.Code == statusConflict:
		return AlreadyThere, ""
	case e.LeadID != "" && (e.Code == statusNotFound || e.Code == statusGone):
		return NoSuchLead, e.LeadID
	}
	return NoEvidence, ""
}
