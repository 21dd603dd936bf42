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

// KeptKey is what stands under a key; either may be nil. What they point to is never changed.
type KeptKey struct{ Entry, Intent *Kept }

// Keeper is a Store that makes an entry or an intent as it is kept: with its number and its time.
type Keeper interface{ Keep(k Kept) *Kept }

// Shown is what look-ups show: an intent stands above the entry. nil: nothing stands there.
func (k *KeptKey) Shown() *Kept {
	if k.Intent != nil {
		return k.Intent
	}
	return k.Entry
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

// Claim has an intent stand for a row that is about to be sent, or refuses that; old is what look-ups show of the key. The intent
// of an earlier send, which is in doubt, is kept inside, to come back when this one is withdrawn.
func (k *KeptKey) Claim(s Keeper, e *Entry, old *Kept) (refusal error) {
	if err := old.State.Claimable(); err != nil {
		return err
	}
	in := Kept{Entry: *e, Act: Doubted}
	if in.State = InDoubt; old.State == InDoubt {
		prior := *old
		prior.Prior = nil
		in.Prior, in.Past = &prior, addPast(old.Past, old.Event(old.Act))
	}
	k.Intent = s.Keep(in)
	*e = k.Intent.Entry
	return nil
}

// Withdraw removes an intent, or puts back the one that it came in place of.
func (k *KeptKey) Withdraw() {
	if k.Intent != nil {
		k.Intent = k.Intent.Prior
	}
}

// Doubt keeps the intent, or makes one, with what is known of an answer that leaves it in doubt.
func (k *KeptKey) Doubt(s Keeper, e *Entry) {
	in := Kept{Entry: *e}
	if k.Intent != nil {
		in = *k.Intent
	}
	in.Entry, in.Act = in.Doubted(e), in.Act|e.DoubtedAct()
	k.Intent = s.Keep(in)
	*e = k.Intent.Entry
}

// Conclude has an outcome stand in the place of entry and intent; act is what was done besides what the two tell.
func (k *KeptKey) Conclude(s Keeper, e *Entry, act Act) {
	out, old := Kept{Entry: *e}, &Entry{}
	if k.Entry != nil {
		old = &k.Entry.Entry
		out.Past = addPast(k.Entry.Past, old.Event(k.Entry.Act))
	}
	if in := k.Intent; in != nil {
		for _, ev := range in.Past {
			out.Past = addPast(out.Past, ev)
		}
		if sent := in.Event(in.Act).Past(); !e.Tells(&in.Entry, act) && !slices.Contains(in.Past, sent) {
			out.Past = addPast(out.Past, sent)
		}
	}
	out.Act = e.ActAfter(old) | act
	k.Entry, k.Intent = s.Keep(out), nil
	*e = k.Entry.Entry
}

// Mark notes the update of a lead that is known; old is what look-ups show of its key. Where known is false, the lead is to be
// taken over by the mark, see [Entry.TakenOver], or err says why not.
func (k *KeptKey) Mark(s Keeper, e *Entry, old *Kept) (known bool, err error) {
	if known, err = e.Markable(&old.Entry); known && err == nil {
		marked := *old
		marked.Entry = old.Marked(e)
		k.Entry = s.Keep(marked)
		*e = k.Entry.Entry
	}
	return known, err
}

// GiveUp takes the lead ID, and what was known of that lead, from an entry that a list corrects.
func (k *KeptKey) GiveUp(s Keeper) {
	bare := *k.Entry
	bare.Entry = bare.Bare()
	k.Entry = s.Keep(bare)
}

// Adopt takes an entry of a list over that was judged good; old is what look-ups show of its key, and corrects says that it gave
// up a lead.
func (k *KeptKey) Adopt(s Keeper, e Entry, old *Entry, corrects bool, now time.Time) {
	if e = e.Listed(old, corrects, now); e.State == InDoubt {
		k.Intent = s.Keep(Kept{Entry: e, Act: Adopted | Doubted})
	} else {
		k.Conclude(s, &e, Adopted)
	}
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
