package checkpoint

import (
	"cmp"
	"slices"
	"time"
)

// KeptKey is what stands under a key; either may be nil. What they point to is never changed: its methods are the
// rules by which something else comes to stand there. old is what look-ups show of the key, which may have been
// forgotten.
type KeptKey struct{ Entry, Intent *Kept }

// Book is a Store whose keys are changed by these rules, inside one change of its own. Its errors end the change.
type Book interface {
	// Keep makes an entry or an intent as it is kept: with its number and its time.
	Keep(k Kept) *Kept
	// Owner is the key under which a lead stands, or nothing. It is asked for a key that is to have the lead.
	Owner(lead, key string) (owner string, err error)
	// Linked is another key than this one whose lead has an ExternalID, or which has asked for it, or nothing.
	Linked(external, key string) (other string, err error)
	// Now is the time of the change.
	Now() time.Time
	Noting
}

// Shown is what look-ups show: an intent stands above the entry. nil: nothing stands there.
func (k *KeptKey) Shown() *Kept {
	if k.Intent != nil {
		return k.Intent
	}
	return k.Entry
}

// Apply makes a change by these rules, or refuses it; now is the time of the commit.
func (k *KeptKey) Apply(b Book, c *Change, old *Kept, now time.Time) error {
	switch c.Kind {
	case Claim:
		return k.Claim(b, &c.Entry, old)
	case Settle:
		if err := c.Entry.Settleable(old.State); err != nil {
			return err
		}
		return k.Settle(b, &c.Entry)
	case Mark:
		return k.Mark(b, &c.Entry, old, now)
	}
	k.Withdraw()
	return nil
}

// Claim has an intent stand for a row that is about to be sent, or refuses that. It owns the ExternalID that it will
// ask for: two rows never come to one, whoever claims them. The intent of an earlier send, which is in doubt, is kept
// inside, to come back when this one is withdrawn.
func (k *KeptKey) Claim(b Book, e *Entry, old *Kept) (refusal error) {
	switch {
	case !ValidKey(e.Key):
		return ErrKey
	case old.State.HasLead():
		return ErrKnown
	case old.State == Forgotten:
		return ErrBlocked
	}
	if e.WantLink != "" {
		if other, err := b.Linked(e.WantLink, e.Key); err != nil || other != "" {
			return cmp.Or(err, ErrLinked)
		}
	}
	in := Kept{Entry: *e, Act: Doubted}
	if in.State = InDoubt; old.State == InDoubt {
		prior := *old
		prior.Prior = nil
		in.Prior, in.Past = &prior, addPast(old.Past, old.Event(old.Act))
	}
	k.Intent = b.Keep(in)
	*e = k.Intent.Entry
	return nil
}

// Withdraw removes an intent, or puts back the one that it came in place of.
func (k *KeptKey) Withdraw() {
	if k.Intent != nil {
		k.Intent = k.Intent.Prior
	}
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

// Settle has an outcome stand that is [Entry.Settleable]. A lead ID that stands under another key leaves this one in
// doubt.
func (k *KeptKey) Settle(b Book, e *Entry) error {
	if e.State == InDoubt {
		k.doubt(b, e)
		return nil
	}
	owner, err := b.Owner(e.LeadID, e.Key)
	if err != nil {
		return err
	}
	if owner != "" && owner != e.Key {
		e.State, e.Reason = InDoubt, ReasonLeadTaken
		k.doubt(b, e)
		return contradict(b, LeadOfAnother, owner, e.LeadID, e.Key)
	}
	if kind, lead := e.against(); kind != NoEvidence {
		err = contradict(b, kind, e.Key, lead, "")
	}
	if err == nil {
		k.conclude(b, e, 0)
	}
	return err
}

// doubt keeps the intent, or makes one, with what is known of an answer that leaves it in doubt.
func (k *KeptKey) doubt(b Book, e *Entry) {
	in := Kept{Entry: *e}
	if k.Intent != nil {
		in = *k.Intent
	}
	in.State, in.Code, in.Reason, in.LeadID = InDoubt, e.Code, e.Reason, e.LeadID
	if in.RequestID = cmp.Or(e.RequestID, in.RequestID); e.Reason != ReasonIncomplete { // else it was not sent
		in.Act |= Doubted
	}
	k.Intent = b.Keep(in)
	*e = k.Intent.Entry
}

// conclude has an outcome stand in the place of entry and intent; act is what was done besides what the two tell.
func (k *KeptKey) conclude(b Book, e *Entry, act Act) {
	out, old := Kept{Entry: *e}, &Entry{}
	if k.Entry != nil {
		old = &k.Entry.Entry
		out.Past = addPast(k.Entry.Past, old.Event(k.Entry.Act))
	}
	if in := k.Intent; in != nil {
		for _, ev := range in.Past {
			out.Past = addPast(out.Past, ev)
		}
		if sent := in.Event(in.Act).Past(); !e.tellsAllOf(&in.Entry, act) && !slices.Contains(in.Past, sent) {
			out.Past = addPast(out.Past, sent)
		}
	}
	out.Act = e.actAfter(old) | act
	k.Entry, k.Intent = b.Keep(out), nil
	*e = k.Entry.Entry
}

// Mark notes the update of a lead that is about to be sent. A lead that only the input knew is taken over, unless it
// is another key's.
func (k *KeptKey) Mark(b Book, e *Entry, old *Kept, now time.Time) error {
	switch {
	case !ValidKey(e.Key):
		return ErrKey
	case old.State == Forgotten:
		return ErrBlocked
	case old.State.HasLead() && old.LeadID == e.LeadID:
		k.Entry = b.Keep(old.marked(e))
		*e = k.Entry.Entry
		return nil
	case old.State == InDoubt || old.State.HasLead() && old.LeadID != "" || e.LeadID == "":
		return ErrKnown
	}
	if owner, err := b.Owner(e.LeadID, e.Key); err != nil || owner != "" {
		return cmp.Or(err, ErrTaken)
	}
	if old.State.HasLead() { // its lead ID alone was not known
		whole := Kept{Entry: old.completed(e)}
		*e = whole.marked(e).Entry
	} else {
		e.State = Created
	}
	e.Updated = now
	k.conclude(b, e, Adopted)
	return nil
}

// marked is k with what a mark says of the update, and of what the service was seen to show before it. One that knows
// of no ExternalID says nothing of it.
func (k Kept) marked(by *Entry) Kept {
	k.Unsettled, k.Sought, k.Seen = by.Unsettled, by.Sought, by.Seen
	if by.ExternalID != "" || by.WantLink != "" {
		k.ExternalID, k.WantLink = by.ExternalID, by.WantLink
	}
	return k
}

// corrects says whether an entry of a list that is taken over gives the key another lead ID than it has.
func (k *KeptKey) corrects(e *Entry) bool {
	return e.State != InDoubt && k.Entry != nil && k.Entry.LeadID != ""
}

// giveUp takes the lead ID, and what was known of that lead, from an entry that a list corrects.
func (k *KeptKey) giveUp(b Book) {
	was := *k.Entry
	was.Entry = Entry{
		Key: was.Key, State: Created, WantLink: cmp.Or(was.WantLink, was.ExternalID), Run: was.Run,
		Updated: was.Updated, Status: was.Status, Code: was.Code,
	}
	k.Entry = b.Keep(was)
}

// Adopt takes an entry of a list over that was judged good; corrects says that the key gave up a lead.
func (k *KeptKey) Adopt(b Book, e Entry, old *Kept, corrects bool) {
	if e.answers(old) {
		out := (&Decision{LeadID: e.LeadID}).Outcome(old.Entry, b.Now())
		k.conclude(b, &out, Adopted)
		return
	}
	e.Digest, e.Content = Digest{}, nil
	if e.State == InDoubt {
		e.Reason = cmp.Or(e.Reason, ReasonAdopted)
		k.Intent = b.Keep(Kept{Entry: e, Act: Adopted | Doubted})
		return
	}
	if old.State.HasLead() { // its lead ID alone was not known, or was wrong
		before := old.Entry
		if corrects {
			before.Status, before.Code = "", 0 // of the other lead
		}
		e = before.completed(&e)
	}
	if e.State == Unknown {
		e.State = Created
	}
	e.Updated = b.Now()
	k.conclude(b, &e, Adopted)
}

// Event is what the history of a key says of an entry.
func (e *Entry) Event(act Act) Event {
	ev := Event{Act: act, State: e.State, Status: e.Status, Code: e.Code, Run: e.Run, At: e.Updated}
	if e.State == InDoubt {
		ev.Send = Send{File: e.File, Line: e.Line, Organization: e.Organization, Locator: e.Locator}
	}
	return ev
}

// actAfter is what was done to a key when e came in place of old.
func (e *Entry) actAfter(old *Entry) (act Act) {
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

// tellsAllOf says whether an outcome tells all that is known of the send that it ends: then the send is no event of
// its own.
func (e *Entry) tellsAllOf(send *Entry, act Act) bool {
	return act == 0 && send.Run == e.Run && send.Code == 0 && send.Reason == ""
}

// Kept is an entry or an intent as a Store keeps it, with what led to it.
type Kept struct {
	Entry
	Act   Act
	Past  []Event
	Prior *Kept // of an intent: the one that it came in place of
}

// Stamp makes k what is kept, with the time of a commit where it has none of its own.
func (k *Kept) Stamp(now time.Time) *Kept {
	if k.Updated.IsZero() {
		k.Updated = now
	}
	k.Updated = time.UnixMilli(k.Updated.UnixMilli()).UTC()
	k.Status = BoundedStatus(k.Status)
	if len(k.Content) == 0 {
		k.Content = nil
	}
	return k
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

// byPeople says whether the lead ID is the word of people.
func (k *Kept) byPeople() bool {
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

// reopened is the send that a decision was about, in doubt once more; known is what was done since.
func (k Kept) reopened(known *Kept) *Kept {
	k.Past = addPast(known.Past, known.Event(known.Act))
	return &k
}
