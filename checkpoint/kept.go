package checkpoint

import (
	"slices"
	"time"
	"unicode/utf8"
)

// Kept is an entry or an intent as a Store keeps it, with what led to it.
type Kept struct {
	Entry
	Act   Act
	Past  []Event
	Prior *Kept // of an intent: the one that it came in place of
}

// Stamped is k as it is kept, with the time of a commit where it has none of its own.
func (k Kept) Stamped(now time.Time) *Kept {
	if k.Updated.IsZero() {
		k.Updated = now
	}
	k.Updated = time.UnixMilli(k.Updated.UnixMilli()).UTC()
	if utf8.RuneCountInString(k.Status) > MaxStatus {
		k.Status = string([]rune(k.Status)[:MaxStatus])
	}
	if len(k.Content) == 0 {
		k.Content = nil
	}
	return &k
}

// Events are what led to k and what k tells itself, in order.
func (k *Kept) Events() []Event { return append(slices.Clip(k.Past), k.Event(k.Act)) }

// Maker is the run that made a lead, or sent what is in doubt; nothing, where no run of this program did.
func (k *Kept) Maker() string {
	if k.State == InDoubt {
		return k.Run
	}
	for _, ev := range slices.Backward(k.Events()) {
		if k.State.HasLead() && ev.Act&Made != 0 && ev.Act&Adopted == 0 {
			return ev.Run
		}
	}
	return ""
}

// ByPeople says whether the lead ID is the word of people.
func (k *Kept) ByPeople() bool {
	for _, ev := range slices.Backward(k.Events()) {
		if ev.Act&GivesLead != 0 {
			return ev.Act&OfPeople != 0
		}
	}
	return false
}

// Scrubbed is k without the lead IDs that are to be forgotten; k itself where it has none of them.
func (k *Kept) Scrubbed(leads map[string]bool) *Kept {
	clean := *k
	if leads[k.LeadID] {
		clean.LeadID = ""
	}
	if k.Prior != nil {
		clean.Prior = k.Prior.Scrubbed(leads)
	}
	if clean.LeadID == k.LeadID && clean.Prior == k.Prior {
		return k
	}
	return &clean
}

// MostPast is how many events are kept before the one that an entry shows.
const MostPast = 7

// addPast adds an event to a past. Of a long one the oldest but the first goes that did not bring a
// lead ID, or else the second.
func addPast(past []Event, ev Event) []Event {
	past = append(slices.Clip(past), ev.Past())
	if len(past) <= MostPast {
		return past
	}
	goes := 1 + slices.IndexFunc(past[1:len(past)-1], func(ev Event) bool { return ev.Act&GivesLead == 0 })
	return slices.Delete(past, max(goes, 1), max(goes, 1)+1)
}

// Reopened is the send that a decision was about, in doubt once more; known is what was done since.
func (k Kept) Reopened(known *Kept) *Kept {
	k.Past = addPast(known.Past, known.Event(known.Act))
	return &k
}

// HistoryOf is what was done with a key, by its entry and its intent, of which either may be nil, and the sends that decisions
// were about.
func HistoryOf(entry, in *Kept, decided []*Kept) (all []Event) {
	for i, k := range append([]*Kept{entry, in}, decided...) {
		if k == nil {
			continue
		}
		for _, ev := range k.Events() {
			all = AddEvent(all, ev, i > 1)
		}
	}
	return all
}
