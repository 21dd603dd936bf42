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

// Claimable is why a key in this state cannot be claimed, or nil.
func (s State) Claimable() error {
	switch {
	case s.HasLead():
		return ErrKnown
	case s == Forgotten:
		return ErrBlocked
	}
	return nil
}

// Settleable is why an outcome cannot be settled under a key in this state, or nil.
func (e *Entry) Settleable(old State) error {
	switch {
	case !ValidKey(e.Key):
		return ErrKey
	case e.State == Unknown || e.State > InDoubt:
		return ErrState
	case old == Forgotten:
		return ErrBlocked
	}
	return nil
}

// Markable is why an update of the lead cannot be marked where old is what is known of its key, or nil. known says that it is
// a lead whose ID is known; else the mark makes it known, see [Entry.TakenOver].
func (e *Entry) Markable(old *Entry) (known bool, err error) {
	switch {
	case !ValidKey(e.Key):
		return false, ErrKey
	case old.State == Forgotten:
		return false, ErrBlocked
	case old.State.HasLead() && old.LeadID == e.LeadID:
		return true, nil
	case old.State == InDoubt || old.State.HasLead() && old.LeadID != "" || e.LeadID == "":
		return false, ErrKnown
	}
	return false, nil
}

// Marked is e with what a mark says of the update that is about to be sent.
func (e Entry) Marked(by *Entry) Entry {
	e.Unsettled, e.Sought, e.Seen = by.Unsettled, by.Sought, by.Seen
	return e
}

// TakenOver is a lead that only the input knew, as the lead of its key; old is what is known of that.
func (e Entry) TakenOver(old *Entry, now time.Time) Entry {
	taken := e
	taken.State = Created
	if old.State.HasLead() { // its lead ID alone was not known
		taken = old.Completed(&e).Marked(&e)
	}
	taken.Updated = now
	return taken
}

// Doubted is an intent with what is known of an answer that leaves it in doubt.
func (e Entry) Doubted(by *Entry) Entry {
	e.State, e.Code, e.Reason, e.LeadID = InDoubt, by.Code, by.Reason, by.LeadID
	e.RequestID = cmp.Or(by.RequestID, e.RequestID)
	return e
}

// DoubtedAct is what was done to a key whose row falls in doubt by e: nothing, where it was not sent.
func (e *Entry) DoubtedAct() Act {
	if e.Reason == ReasonIncomplete {
		return 0
	}
	return Doubted
}

// Tells says whether an outcome tells all that is known of the send that it ends, so that this is no event of its own.
func (e *Entry) Tells(send *Entry, act Act) bool {
	return act == 0 && send.Run == e.Run && send.Code == 0 && send.Reason == ""
}

// Judge says what an entry of a list adds to old, which is known of its key, and counts it. taken says that its lead is
// another key's and stays so; byPeople, whether the lead ID of old is the word of people. An entry that is to be taken over
// corrects a lead ID where old has one. A refusal lacks the entry's place.
func (r *AdoptResult) Judge(e, old *Entry, taken bool, byPeople func() bool) (take bool, refusal *ListError) {
	switch {
	case old.State == Forgotten:
		r.Forgotten++
	case e.State == Rejected:
		r.Rejected++
	case e.State != InDoubt && taken:
		return false, &ListError{Text: "its lead ID belongs to another key"}
	case e.State == InDoubt && (old.State.HasLead() || old.State == InDoubt):
		r.Known++
	case e.State == InDoubt:
		r.InDoubt++
		return true, nil
	case old.State == InDoubt && old.Reason != ReasonIncomplete:
		return false, &ListError{Text: "its key is in doubt", Hint: "`leadferry checkpoint resolve` settles it"}
	case !old.State.HasLead() || old.LeadID == "" && e.LeadID != "":
		r.Leads++
		return true, nil
	case e.LeadID == "" || old.LeadID == e.LeadID:
		r.Known++
	case !byPeople():
		return false, &ListError{Text: "its key has another lead ID already, which the service itself gave", Hint: "`leadferry checkpoint history KEY` shows when"}
	default:
		r.Leads++
		r.Corrected++
		return true, nil
	}
	return false, nil
}

// Free says whether a decision frees its row to be sent.
func (d *Decision) Free() bool { return d.LeadID == "" && !d.Exists }

// DecisionList goes through the decisions of a list.
type DecisionList struct{ keys, ids map[string]bool }

// inDoubtHint is where to look for what can be decided about.
const inDoubtHint = "`leadferry checkpoint export --state in_doubt` lists what is in doubt"

// Unfit is what is wrong with the next decision of the list by itself, or nil. A refusal lacks its place.
func (l *DecisionList) Unfit(d *Decision) *ListError {
	if l.keys == nil {
		l.keys, l.ids = map[string]bool{}, map[string]bool{}
	}
	switch {
	case l.keys[d.Key]:
		return &ListError{Text: "its key stands twice in the list", Hint: "keep one of them"}
	case d.LeadID != "" && !ValidLeadID(d.LeadID):
		return &ListError{Text: "its lead ID is none", Hint: LeadIDHint}
	case d.LeadID != "" && l.ids[d.LeadID]:
		return &ListError{Text: "its lead ID stands twice in the list", Hint: "one lead cannot belong to two rows: look both up again"}
	}
	l.keys[d.Key], l.ids[d.LeadID] = true, true
	return nil
}

// Again judges a decision about a key that is not in doubt: last is the last one about it, or nil, and known what is known of
// it. before says that it was decided so already; else the decision corrects that one. A refusal lacks its place.
func (d *Decision) Again(last *Decision, known *Entry) (before bool, refusal *ListError) {
	switch {
	case last == nil:
		return false, &ListError{Text: "its key is not in doubt", Hint: inDoubtHint}
	case last.Free() && known.State != NotMade, !last.Free() && !known.State.HasLead():
		return false, &ListError{Text: "its key was settled before and was sent again since, so it is not in doubt", Hint: inDoubtHint}
	}
	return last.LeadID == d.LeadID && last.Exists == d.Exists && known.LeadID == d.LeadID, nil
}

// MustBeAbout refuses a decision about another send than the one that is in doubt. A refusal lacks its place.
func (d *Decision) MustBeAbout(send *Entry) *ListError {
	if d.About(send) {
		return nil
	}
	return &ListError{Text: "the row was sent again since this list was written, and nobody has looked for that send", Hint: inDoubtHint}
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
	case d.Free():
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
