package checkpoint

import (
	"cmp"
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

// Claimed is the intent of a row that is about to be sent, or the refusal of the claim; old is what is known of its key. The
// intent of an earlier send, which is in doubt, is kept inside, to come back when this one is withdrawn.
func (e Entry) Claimed(old *Kept) (in Kept, refusal error) {
	if err := old.State.Claimable(); err != nil {
		return in, err
	}
	e.State = InDoubt
	in = Kept{Entry: e, Act: Doubted}
	if old.State == InDoubt {
		prior := *old
		prior.Prior = nil
		in.Prior, in.Past = &prior, append(slices.Clone(old.Past), old.Event(old.Act).Past())
	}
	return in, nil
}

// Doubt is the intent in of a key, or a new one where that is nil, with what is known of an answer that leaves it in doubt.
func (e *Entry) Doubt(in *Kept) Kept {
	k := Kept{Entry: *e}
	if in != nil {
		k = *in
	}
	k.Entry, k.Act = k.Doubted(e), k.Act|e.DoubtedAct()
	return k
}

// Concluded is an outcome in the place of the entry and the intent of its key, of which either may be nil; act is what was
// done besides what the two tell.
func (e *Entry) Concluded(entry, in *Kept, act Act) Kept {
	out, old := Kept{Entry: *e}, &Entry{}
	if entry != nil {
		old = &entry.Entry
		out.Past = addPast(entry.Past, old.Event(entry.Act))
	}
	if in != nil {
		for _, ev := range in.Past {
			out.Past = addPast(out.Past, ev)
		}
		if sent := in.Event(in.Act).Past(); !e.Tells(&in.Entry, act) && !slices.Contains(in.Past, sent) {
			out.Past = addPast(out.Past, sent)
		}
	}
	out.Act = e.ActAfter(old) | act
	return out
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

// Listed is an entry of a list that is taken over, as it stands from then on: an intent where it is in doubt, else an outcome.
// old is what is known of its key; corrects says that it had another lead before.
func (e Entry) Listed(old *Entry, corrects bool, now time.Time) Entry {
	e.Digest, e.Content = Digest{}, nil
	if e.State == InDoubt {
		e.Reason = cmp.Or(e.Reason, ReasonAdopted)
		return e
	}
	if old.State.HasLead() { // its lead ID alone was not known, or was wrong
		before := *old
		if corrects {
			before.Status, before.Code = "", 0 // of the other lead
		}
		e = before.Completed(&e)
	}
	if e.State == Unknown {
		e.State = Created
	}
	e.Updated = now
	return e
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
