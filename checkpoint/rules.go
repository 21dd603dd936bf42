package checkpoint

import (
	"cmp"
	"slices"
	"time"
)

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
