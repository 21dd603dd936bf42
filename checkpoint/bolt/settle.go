package bolt

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// claim writes an intent. A row that is sent again although in doubt keeps the
// intent of its earlier send inside the new one: when this claim is withdrawn,
// the earlier doubt is as it was.
func (w *writing) claim(e *checkpoint.Entry) error {
	if !checkpoint.ValidKey(e.Key) {
		return checkpoint.ErrKey
	}
	from, err := w.state(e.Key)
	if err != nil {
		return err
	}
	if err := from.Claimable(); err != nil {
		return err
	}
	t := records.Tail{Act: checkpoint.Doubted}
	var old checkpoint.Entry
	if from == checkpoint.InDoubt {
		var earlier records.Tail
		if old, earlier, err = w.intent(e.Key); err != nil {
			return err
		}
		t.Past = w.words.AppendEvent(earlier.Past, old.Event(earlier.Act))
		earlier.Prior = nil
		t.Prior = w.words.AppendEntry(nil, &old, earlier)
	}
	if from == checkpoint.Unknown {
		w.vacant[e.Key] = true
	}
	return errors.Join(w.move(e.Key, from, checkpoint.InDoubt), w.putIntent(&old, e, t))
}

// withdraw removes the intent of key, or puts its prior intent back.
func (w *writing) withdraw(key string) error {
	in, t, err := w.intent(key)
	if err != nil || in.State == checkpoint.Unknown {
		return err
	}
	if len(t.Prior) > 0 {
		var prior checkpoint.Entry
		if _, err := w.words.Decode(key, t.Prior, &prior); err != nil {
			return err
		}
		from := len(w.arena)
		w.arena = append(w.arena, t.Prior...)
		return errors.Join(w.want(&in, &prior), w.intents.Put([]byte(key), w.arena[from:len(w.arena):len(w.arena)]))
	}
	if err := w.deleteIntent(&in); err != nil {
		return err
	}
	below, err := w.state(key)
	return errors.Join(err, w.move(key, checkpoint.InDoubt, below))
}

// settle writes the outcome of a send and returns what now stands.
func (w *writing) settle(e *checkpoint.Entry) (checkpoint.Entry, error) {
	from, err := w.state(e.Key)
	if err = cmp.Or(err, e.Settleable(from)); err != nil {
		return *e, err
	}
	if e.State == checkpoint.InDoubt {
		return w.doubt(e, from)
	}
	owner, err := w.owner(e.LeadID)
	if err != nil {
		return *e, err
	}
	if owner != "" && owner != e.Key {
		e.Reason = checkpoint.ReasonLeadTaken
		if err := w.contradict(contradiction{kind: exists + byte(checkpoint.LeadOfAnother), other: e.Key}, owner, e.LeadID); err != nil {
			return *e, err
		}
		return w.doubt(e, from)
	}
	if err := w.checkDecision(e); err != nil {
		return *e, err
	}
	return *e, w.conclude(e, from, 0)
}

// conclude replaces intent and entry of a key by its outcome.
func (w *writing) conclude(e *checkpoint.Entry, from checkpoint.State, act checkpoint.Act) error {
	if err := w.move(e.Key, from, e.State); err != nil {
		return err
	}
	in, doubt, err := w.intent(e.Key)
	if err != nil {
		return err
	}
	if in.State != checkpoint.Unknown {
		if err := errors.Join(w.sent.Delete(), w.want(&in, new(checkpoint.Entry))); err != nil {
			return err
		}
	}
	old, t, err := w.known(e.Key)
	if err != nil {
		return err
	}
	if old.State != checkpoint.Unknown {
		t.Past = w.words.AppendEvent(t.Past, old.Event(t.Act))
	}
	t.Past, err = w.addDoubts(t.Past, &in, doubt, e.Tells(&in, act))
	if err != nil {
		return err
	}
	t.Act = e.ActAfter(&old) | act
	return w.replace(&old, e, t)
}

// addDoubts adds earlier sends that got no answer, and the one of the intent itself
// unless its outcome tells as much.
func (w *writing) addDoubts(past []byte, in *checkpoint.Entry, t records.Tail, told bool) ([]byte, error) {
	earlier, err := w.words.Events(t.Past)
	if err != nil || in.State == checkpoint.Unknown {
		return past, err
	}
	for _, ev := range earlier {
		past = w.words.AppendEvent(past, ev)
	}
	if ev := in.Event(t.Act).Past(); !told && !slices.Contains(earlier, ev) {
		past = w.words.AppendEvent(past, ev)
	}
	return past, nil
}

// doubt keeps the intent of e.Key and adds what is known of the answer.
func (w *writing) doubt(e *checkpoint.Entry, from checkpoint.State) (checkpoint.Entry, error) {
	in, t, err := w.intent(e.Key)
	if err != nil {
		return *e, err
	}
	old := in
	if in.State == checkpoint.Unknown {
		in = *e
	}
	in = in.Doubted(e)
	t.Act |= e.DoubtedAct()
	return in, errors.Join(w.move(e.Key, from, checkpoint.InDoubt), w.putIntent(&old, &in, t))
}

// owner returns the key under which a lead ID stands, or nothing.
func (w *writing) owner(id string) (string, error) {
	if !records.Indexed(id) {
		return "", nil
	}
	lead := string(records.AppendText(nil, id))
	return ownerOf(w.words, id, w.entry, string(w.leads.find(lead)))
}

// ownerOf is the key whose entry has this lead ID, or nothing; indexed is what the index
// says, which has no record where the key itself is the lead ID.
func ownerOf(w *records.Words, id string, entry func(key string) []byte, indexed string) (string, error) {
	for _, key := range []string{indexed, id} {
		if key == "" {
			continue
		}
		record := entry(key)
		if record == nil {
			continue
		}
		var e checkpoint.Entry
		if _, err := w.Decode(key, record, &e); err != nil || e.LeadID == id {
			return key, err
		}
	}
	return "", nil
}

// replace writes an entry in place of the old one and brings the indexes in step.
func (w *writing) replace(old, e *checkpoint.Entry, t records.Tail) error {
	isNew := old.State == checkpoint.Unknown
	return errors.Join(w.index(old, e), w.putEntry(e, t, isNew))
}

// index puts the entry that comes into the indexes instead of the one that was there; the
// zero Entry is in none.
func (w *writing) index(old, e *checkpoint.Entry) error {
	if old.State.HasLead() {
		w.statuses[records.KindOfStatus(old.Status)]--
	}
	if e.State.HasLead() {
		w.statuses[records.KindOfStatus(e.Status)]++
	}
	oldLead, oldLinks := records.IndexKeys(old)
	lead, links := records.IndexKeys(e)
	var errs []error
	if !bytes.Equal(oldLead, lead) {
		if oldLead != nil {
			errs = append(errs, w.leads.delete(string(oldLead)))
		}
		switch {
		case lead == nil:
		case w.batch != nil:
			w.batch.leads = append(w.batch.leads, indexRecord{lead, []byte(e.Key)})
		default:
			w.leads.insert(string(lead), []byte(e.Key))
		}
	}
	for _, link := range oldLinks {
		if link != nil && !links.Has(link) {
			errs = append(errs, w.links.Delete(link))
		}
	}
	for _, link := range links {
		switch {
		case link == nil || oldLinks.Has(link):
		case w.batch != nil:
			w.batch.links = append(w.batch.links, indexRecord{key: link})
		default:
			errs = append(errs, w.links.Put(link, nil))
		}
	}
	return errors.Join(errs...)
}

// unindex takes an entry out of the indexes.
func (w *writing) unindex(old *checkpoint.Entry) error {
	return w.index(old, new(checkpoint.Entry))
}

func (w *writing) mark(e *checkpoint.Entry) (checkpoint.Entry, error) {
	from, err := w.state(e.Key)
	if err != nil {
		return *e, err
	}
	old, t, err := w.known(e.Key)
	if err != nil {
		return *e, err
	}
	shown := old // by look-ups: an intent, and what was forgotten, stand above it
	shown.State = from
	known, err := e.Markable(&shown)
	switch {
	case err != nil:
		return *e, err
	case known:
		old = old.Marked(e)
		return old, w.putEntry(&old, t, false)
	}
	if owner, err := w.owner(e.LeadID); err != nil || owner != "" {
		return *e, cmp.Or(err, checkpoint.ErrTaken)
	}
	taken := e.TakenOver(&shown, w.now) // a lead that only the input knew
	err = w.conclude(&taken, from, checkpoint.Adopted)
	return taken, err
}
