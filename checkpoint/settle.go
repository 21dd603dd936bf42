package checkpoint

import (
	"bytes"
	"errors"
)

// claim writes an intent. A row that is sent again although in doubt keeps the
// intent of its earlier send inside the new one: when this claim is withdrawn,
// the earlier doubt is as it was.
func (l *ledger) claim(e *Entry) error {
	if !validKey(e.Key) {
		return ErrKey
	}
	from, err := l.state(e.Key)
	if err != nil {
		return err
	}
	t := tail{act: Doubted}
	switch from {
	case Created, Partial:
		return ErrKnown
	case Forgotten:
		return ErrBlocked
	case InDoubt:
		old, earlier, err := l.intent(e.Key)
		if err != nil {
			return err
		}
		t.past = l.words.appendEvent(earlier.past, eventOf(&old, earlier.act))
		earlier.prior = nil
		t.prior = l.words.appendEntry(nil, &old, earlier)
	}
	if from == Unknown {
		l.vacant[e.Key] = true
	}
	l.move(from, InDoubt)
	return l.putIntent(e, t)
}

// withdraw removes the intent of key, or puts its prior intent back.
func (l *ledger) withdraw(key string) error {
	in, t, err := l.intent(key)
	if err != nil || in.State == Unknown {
		return err
	}
	if len(t.prior) > 0 {
		from := len(l.arena)
		l.arena = append(l.arena, t.prior...)
		return l.intents.Put([]byte(key), l.arena[from:len(l.arena):len(l.arena)])
	}
	if err := l.deleteIntent(key); err != nil {
		return err
	}
	below, err := l.state(key)
	l.move(InDoubt, below)
	return err
}

// settle writes the outcome of a send and returns what now stands.
func (l *ledger) settle(e *Entry) (Entry, error) {
	switch {
	case !validKey(e.Key):
		return *e, ErrKey
	case e.State == Unknown || e.State > InDoubt:
		return *e, ErrState
	}
	from, err := l.state(e.Key)
	switch {
	case err != nil:
		return *e, err
	case from == Forgotten:
		return *e, ErrBlocked
	case e.State == InDoubt:
		return l.doubt(e, from)
	}
	owner, err := l.owner(e.LeadID)
	if err != nil {
		return *e, err
	}
	if owner != "" && owner != e.Key {
		e.Reason = ReasonLeadTaken
		if err := l.contradict(contradiction{kind: leadOfAnother, other: e.Key}, owner, e.LeadID); err != nil {
			return *e, err
		}
		return l.doubt(e, from)
	}
	if err := l.weigh(e); err != nil {
		return *e, err
	}
	return *e, l.conclude(e, from, 0)
}

// conclude replaces intent and entry of a key by its outcome.
func (l *ledger) conclude(e *Entry, from State, act Act) error {
	l.move(from, e.State)
	in, doubt, err := l.intent(e.Key)
	if err != nil {
		return err
	}
	if in.State != Unknown {
		if err := l.at.intents.Delete(); err != nil {
			return err
		}
	}
	old, t, err := l.known(e.Key)
	if err != nil {
		return err
	}
	if old.State != Unknown {
		t.past = l.words.appendEvent(t.past, eventOf(&old, t.act))
	}
	silent := act == 0 && in.Run == e.Run && in.Code == 0 && in.Reason == ""
	t.past, err = l.addDoubts(t.past, &in, doubt, silent)
	if err != nil {
		return err
	}
	t.act = actOf(&old, e) | act
	return l.replace(&old, e, t)
}

// addDoubts adds earlier sends that got no answer, and the one of the intent itself
// unless its outcome tells as much.
func (l *ledger) addDoubts(past []byte, in *Entry, t tail, silent bool) ([]byte, error) {
	earlier, err := l.words.events(t.past)
	if err != nil || in.State == Unknown {
		return past, err
	}
	for _, ev := range earlier {
		past = l.words.appendEvent(past, ev)
	}
	if !silent {
		past = l.words.appendEvent(past, eventOf(in, t.act))
	}
	return past, nil
}

// doubt keeps the intent of e.Key and adds what is known of the answer.
func (l *ledger) doubt(e *Entry, from State) (Entry, error) {
	in, t, err := l.intent(e.Key)
	if err != nil {
		return *e, err
	}
	l.move(from, InDoubt)
	if in.State == Unknown {
		in = *e
	}
	in.State, in.Code, in.Reason, in.LeadID = InDoubt, e.Code, e.Reason, e.LeadID
	t.act |= Doubted
	return in, l.putIntent(&in, t)
}

// owner returns the key under which a lead ID stands, or nothing.
func (l *ledger) owner(id string) (string, error) {
	if !indexed(id) {
		return "", nil
	}
	lead := appendText(nil, id)
	if key, ok := l.young.owner(lead); ok {
		return key, nil
	}
	if key := find(l.at.leads, string(lead)); key != nil {
		return string(key), nil
	}
	record := l.entry(id)
	if record == nil {
		return "", nil
	}
	var e Entry
	if _, err := l.words.decode(id, record, &e); err != nil || e.LeadID != id {
		return "", err
	}
	return id, nil
}

// replace writes an entry in place of the old one and brings the indexes in step.
func (l *ledger) replace(old, e *Entry, t tail) error {
	if err := l.index(old, e); err != nil {
		return err
	}
	return l.putEntry(e, t, old.State == Unknown)
}

// index puts the entry that comes into the indexes instead of the one that was there; the
// zero Entry is in none. What they have in common is not touched: readers of the young
// ones would miss it for a moment.
func (l *ledger) index(old, e *Entry) error {
	oldLead, oldLink := indexKeys(old)
	lead, link := indexKeys(e)
	var errs []error
	if oldLead != nil && !bytes.Equal(oldLead, lead) {
		l.young.remove(oldLead)
		errs = append(errs, l.leads.Delete(oldLead))
	}
	if lead != nil && !bytes.Equal(oldLead, lead) {
		l.young.add(lead, e.Key)
	}
	if oldLink != nil && !bytes.Equal(oldLink, link) {
		errs = append(errs, l.links.Delete(oldLink))
	}
	switch {
	case link == nil || bytes.Equal(oldLink, link):
	case l.bulk != nil:
		l.bulk = append(l.bulk, link)
	default:
		errs = append(errs, l.links.Put(link, nil))
	}
	return errors.Join(errs...)
}

// unindex takes an entry out of the indexes.
func (l *ledger) unindex(old *Entry) error { return l.index(old, new(Entry)) }

// indexed says whether an ID is kept in an index: bbolt's keys are bounded.
func indexed(id string) bool { return id != "" && len(id) <= MaxKey }

// indexKeys returns the index keys of an entry, nil where none is kept.
func indexKeys(e *Entry) (lead, link []byte) {
	if indexed(e.LeadID) && e.LeadID != e.Key {
		lead = appendText(nil, e.LeadID)
	}
	if indexed(e.ExternalID) && e.ExternalID != e.Key {
		link = append(appendText(nil, e.ExternalID), e.Key...)
	}
	return lead, link
}
