package checkpoint

import (
	"cmp"
	"slices"
	"time"
)

// KeptKey is what is stored under a key: an entry, an intent, both or neither. Its methods are the rules of the ledger.
// They store a new Kept for each change and never write to one that is stored. Their argument old is what a look-up
// showed of the key; its state may be Forgotten, which no KeptKey holds.
type KeptKey struct{ Entry, Intent *Kept }

// Owners is what the rules ask a Store inside a transaction: who owns a name. An error ends the transaction.
type Owners interface {
	// Seq returns the commit number of what the transaction stores; 0: the server will give it.
	Seq() uint64
	// Owner returns the key that has a lead ID, or ""; key is the key that wants the lead ID.
	Owner(lead, key string) (owner string, err error)
	// LinkOwners returns other keys whose lead has an ExternalID, or that have asked for it. A Store may stop at two.
	LinkOwners(external, key string) (others []string, err error)
	// Now returns the time of the transaction.
	Now() time.Time
}

// Shown returns what look-ups show: the intent if there is one, else the entry, or nil.
func (k *KeptKey) Shown() *Kept {
	if k.Intent != nil {
		return k.Intent
	}
	return k.Entry
}

// Links returns the ExternalIDs that a key owns: what its lead has, what it should get, and what the link after a
// claimed create will ask for. Each is there once, then "" to the end. Only this function decides who owns one.
func (k *KeptKey) Links() (all [3]string) {
	n := 0
	add := func(id string) {
		if id != "" && !slices.Contains(all[:n], id) {
			all[n] = id
			n++
		}
	}
	if e := k.Entry; e != nil && e.State.HasLead() {
		add(e.ExternalID)
		add(e.WantLink)
	}
	if k.Intent != nil {
		add(k.Intent.WantLink)
	}
	return all
}

// OwnsLink reports whether a key owns an ExternalID.
func (k *KeptKey) OwnsLink(external string) bool {
	all := k.Links()
	return external != "" && slices.Contains(all[:], external)
}

// Apply makes a change by these rules, or refuses it.
func (k *KeptKey) Apply(o Owners, c *Change, old *Kept) error {
	switch c.Kind {
	case Claim:
		return k.Claim(o, &c.Entry, old, c.Resend)
	case Settle:
		if err := c.Entry.Settleable(old.State); err != nil {
			return err
		}
		return k.Settle(o, &c.Entry)
	case Mark:
		return k.Mark(o, &c.Entry, old)
	case Withdraw: // an earlier send that is in doubt comes back
		if k.Intent != nil && k.Intent.Run == c.Entry.Run { // else another run has claimed the row since
			k.Intent = k.Intent.Prior
		}
	}
	return nil
}

// Claim stores an intent before a row is sent, or refuses. It claims a row in doubt only if again is set: another
// worker may have sent the row since the look-up. The intent also owns the ExternalID that the link after the create
// will ask for, so that two rows never get the same one. If an earlier send is in doubt, its intent becomes the Prior
// of the new one. A withdrawal puts it back, and so does a refusal by the service: it says nothing of the earlier send.
func (k *KeptKey) Claim(o Owners, e *Entry, old *Kept, again bool) (refusal error) {
	switch {
	case !ValidKey(e.Key):
		return ErrKey
	case old.State.HasLead():
		return ErrKnown
	case old.State == Forgotten:
		return ErrBlocked
	case old.State == InDoubt && !again:
		return ErrDoubt
	}
	if e.WantLink != "" {
		if others, err := o.LinkOwners(e.WantLink, e.Key); err != nil || len(others) > 0 {
			return cmp.Or(err, ErrLinked)
		}
	}
	in := Kept{Entry: *e, Act: Doubted}
	if in.State = InDoubt; old.State == InDoubt {
		in.Prior, in.Past = old, addPast(old.Past, old.Event(old.Act))
	}
	k.Intent = in.StoredBy(o)
	*e = k.Intent.Entry
	return nil
}

// Settleable returns nil if an outcome may be settled under a key in this state, else the reason why not.
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

// Settle stores an outcome that is [Entry.Settleable]. If another key has the lead ID, this row is in doubt.
func (k *KeptKey) Settle(o Owners, e *Entry) error {
	if e.State == InDoubt && k.Intent == nil && k.Entry != nil && k.Entry.State.HasLead() {
		return ErrKnown // made by others since the row was looked up
	}
	if e.State != InDoubt {
		owner, err := o.Owner(e.LeadID, e.Key)
		if err != nil {
			return err
		}
		if owner != "" && owner != e.Key {
			e.State, e.Reason = InDoubt, ReasonLeadTaken
		}
	}
	switch {
	case e.State == InDoubt:
		k.keepDoubt(o, e)
	case e.State == Rejected && k.Intent != nil && k.Intent.Prior != nil:
		k.Intent = k.Intent.Prior
		*e = k.Intent.Entry
	default:
		k.replace(o, e, 0)
	}
	return nil
}

// keepDoubt keeps the intent, or makes one, and adds what the answer said.
func (k *KeptKey) keepDoubt(o Owners, e *Entry) {
	in := Kept{Entry: *e}
	if k.Intent != nil {
		in = *k.Intent
	}
	in.State, in.Code, in.Reason, in.LeadID = InDoubt, e.Code, e.Reason, e.LeadID
	if in.RequestID = cmp.Or(e.RequestID, in.RequestID); e.Reason != ReasonIncomplete { // else the row was not sent
		in.Act |= Doubted
	}
	k.Intent = in.StoredBy(o)
	*e = k.Intent.Entry
}

// replace stores an outcome in place of entry and intent. act adds what the change itself does not show.
func (k *KeptKey) replace(o Owners, e *Entry, act Act) {
	out, old := Kept{Entry: *e}, &Entry{}
	if k.Entry != nil {
		old = &k.Entry.Entry
		out.Past = addPast(k.Entry.Past, old.Event(k.Entry.Act))
	}
	if in := k.Intent; in != nil {
		for _, ev := range in.Past {
			out.Past = addPast(out.Past, ev)
		}
		// The history needs no event for a send that this outcome answers, unless an earlier answer was noted.
		said := act == 0 && in.Run == e.Run && in.Code == 0 && in.Reason == ""
		if sent := in.Event(in.Act).Past(); !said && !slices.Contains(in.Past, sent) {
			out.Past = addPast(out.Past, sent)
		}
	}
	out.Act = e.actsSince(old) | act
	k.Entry, k.Intent = out.StoredBy(o), nil
	*e = k.Entry.Entry
}

// Mark notes that the update of a lead is about to be sent. A lead ID that only the input names is stored, unless
// another key has it (ErrTaken). ErrKnown refuses a key in doubt or with another lead, and a new lead without an ID.
func (k *KeptKey) Mark(o Owners, e *Entry, old *Kept) error {
	switch {
	case !ValidKey(e.Key):
		return ErrKey
	case old.State == Forgotten:
		return ErrBlocked
	case old.State.HasLead() && old.LeadID == e.LeadID:
		k.Entry = old.marked(e).StoredBy(o)
		*e = k.Entry.Entry
		return nil
	case old.State == InDoubt || old.State.HasLead() && old.LeadID != "" || e.LeadID == "":
		return ErrKnown
	}
	if owner, err := o.Owner(e.LeadID, e.Key); err != nil || owner != "" {
		return cmp.Or(err, ErrTaken)
	}
	if old.State.HasLead() { // only its lead ID was missing
		whole := Kept{Entry: old.completed(e)}
		*e = whole.marked(e).Entry
	} else {
		e.State = Created
	}
	e.Updated = o.Now()
	k.replace(o, e, Adopted)
	return nil
}

func (k Kept) marked(by *Entry) Kept {
	if k.Seen.Against != "" && by.Status == k.Seen.Status { // it won, and counts as confirmed once it is gone
		k.Status = by.Status
	}
	if by.State == Created { // others have linked it
		k.State = Created
	}
	k.Unsettled, k.Sought, k.Seen, k.Content = by.Unsettled, by.Sought, by.Seen, by.Content
	k.ExternalID, k.WantLink, k.AsksLink = by.ExternalID, by.WantLink, by.AsksLink
	return k
}

// Adopt stores an entry of a list that passed all checks.
func (k *KeptKey) Adopt(o Owners, e Entry, old *Kept) {
	if e.answers(old) {
		out := (&Decision{LeadID: e.LeadID}).Outcome(old.Entry, o.Now())
		k.replace(o, &out, Adopted)
		return
	}
	e.Digest, e.Content = Digest{}, nil
	if e.State == InDoubt {
		e.Reason = cmp.Or(e.Reason, ReasonAdopted)
		k.Intent = Kept{Entry: e, Act: Adopted | Doubted}.StoredBy(o)
		return
	}
	if old.State.HasLead() { // its lead ID was missing
		e = old.completed(&e)
	}
	if e.State == Unknown {
		e.State = Created
	}
	e.Updated = o.Now()
	k.replace(o, &e, Adopted)
}

// Event returns the line for an entry in the history of its key.
func (e *Entry) Event(act Act) Event {
	ev := Event{Act: act, State: e.State, Status: e.Status, Code: e.Code, Run: e.Run, At: e.Updated}
	if e.State == InDoubt {
		ev.Send = Send{File: e.File, Line: e.Line, Organization: e.Organization, Locator: e.Locator}
	}
	return ev
}

// actsSince returns what was done to a key between old and e.
func (e *Entry) actsSince(old *Entry) (act Act) {
	set := func(a Act, on bool) {
		if on {
			act |= a
		}
	}
	switch e.State {
	case Rejected:
		return Refused
	case NotMade:
		return 0
	}
	made := !old.State.HasLead()
	set(Made, made)
	set(Linked, e.ExternalID != "" && e.ExternalID != old.ExternalID)
	if !made {
		set(StatusSent, e.Status != old.Status)
		set(Refused, e.Refused != (Digest{}) && e.Code >= 400)
		set(DataSent, act&Refused == 0 && (e.Digest != old.Digest || !slices.Equal(e.Content, old.Content)))
		// an update without an answer is confirmed now: data were sent, though nothing differs
		set(DataSent, act == 0 && old.Unsettled != "" && e.Unsettled == "" && e.Reason == "")
	}
	return act
}

// Kept is an entry or an intent as a Store keeps it, with its history.
type Kept struct {
	Entry
	Act   Act
	Past  []Event
	Prior *Kept // of an intent: the one that it replaced, with its own Prior, since each send may have made a lead
}

// StoredBy returns k as a transaction stores it, with its commit number. If k has no time, it gets the transaction's.
func (k Kept) StoredBy(o Owners) *Kept {
	if k.Seq = o.Seq(); k.Updated.IsZero() {
		k.Updated = o.Now()
	}
	k.Updated = time.UnixMilli(k.Updated.UnixMilli()).UTC()
	k.Status = BoundedStatus(k.Status)
	if len(k.Content) == 0 {
		k.Content = nil
	}
	return &k
}

// Events returns the history of k, and k itself as the last event. A nil k has none.
func (k *Kept) Events() []Event {
	if k == nil {
		return nil
	}
	return append(slices.Clip(k.Past), k.Event(k.Act))
}

// fromList reports whether the lead ID came from a list.
func (k *Kept) fromList() bool {
	for _, ev := range slices.Backward(k.Events()) {
		if ev.Act&givesLead != 0 {
			return k.State.HasLead() && ev.Act&Adopted != 0
		}
	}
	return false
}

// Maker returns the run that made the lead, or that sent the row in doubt; "" if no run of this program did.
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

// Scrubbed returns k without these lead IDs, which are to be forgotten; k itself if it has none of them.
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

// MostPast is how many events of the history are kept.
const MostPast = 7

// addPast adds an event to a history. If the history is too long, addPast drops the oldest event that brought no lead
// ID, or else the second event. It never drops the first event or the new one.
func addPast(past []Event, ev Event) []Event {
	past = append(slices.Clip(past), ev.Past())
	if len(past) <= MostPast {
		return past
	}
	goes := 1 + slices.IndexFunc(past[1:len(past)-1], func(ev Event) bool { return ev.Act&givesLead == 0 })
	return slices.Delete(past, max(goes, 1), max(goes, 1)+1)
}
