package checkpoint

import (
	"cmp"
	"fmt"
	"strings"
)

// AdoptResult counts what became of the entries of a list.
type AdoptResult struct {
	Leads     int // taken over
	Corrected int // of these, had another lead by the word of people
	InDoubt   int // taken over as in doubt
	Known     int // known already, as the list says or better; left as they are
	Rejected  int // left out: refused rows have no lead
	Forgotten int // left out: their keys were forgotten

	Unspecified int // taken over with a status that the specification does not name
}

// ForgetResult counts forgotten keys by what was known of them.
type ForgetResult struct {
	Leads    int // had a lead
	InDoubt  int // nobody will be reminded of them any more
	Rejected int
	Unknown  int
	Already  int // were forgotten before
}

// Count counts a forgotten key of which this was known.
func (r *ForgetResult) Count(known State) {
	switch known {
	case Created, Partial:
		r.Leads++
	case InDoubt:
		r.InDoubt++
	case Rejected:
		r.Rejected++
	case Forgotten:
		r.Already++
	default:
		r.Unknown++
	}
}

// ListError says why one entry of a list, and with it the whole list, is refused.
type ListError struct {
	Index      int // in the list, from 0
	Key        string
	Text, Hint string
}

// Error names the entry by its place in the list, from 1.
func (e *ListError) Error() string { return fmt.Sprintf("entry %d: %s", e.Index+1, e.Text) }

// At is a refusal with the place of its entry, and the entry's key.
func (e *ListError) At(index int, key string) error {
	e.Index, e.Key = index, key
	return e
}

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
