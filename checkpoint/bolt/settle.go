package bolt

import (
	"bytes"
	"cmp"
	"errors"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// apply makes one change. Its own refusal stays with it; what is returned is an error of
// the file.
func (w *writing) apply(c *checkpoint.Change) error {
	if c.Kind == checkpoint.Claim && c.Shape != nil {
		if err := w.putNote(c.Shape); err != nil {
			return err
		}
	}
	key := c.Entry.Key
	was, err := w.under(key)
	if err != nil {
		return err
	}
	is := was
	switch c.Kind {
	case checkpoint.Claim:
		err = w.claim(&is, &c.Entry)
	case checkpoint.Settle:
		err = w.settle(&is, &c.Entry)
	case checkpoint.Mark:
		err = w.mark(&is, &c.Entry)
	default:
		is.Withdraw()
	}
	switch {
	case err == nil:
		return w.put(key, was, is)
	case checkpoint.IsRefusal(err):
		c.Err = err
		return nil
	}
	return err
}

func (w *writing) claim(k *checkpoint.KeptKey, e *checkpoint.Entry) error {
	if !checkpoint.ValidKey(e.Key) {
		return checkpoint.ErrKey
	}
	return k.Claim(w, e, w.shown(e.Key, k))
}

func (w *writing) settle(k *checkpoint.KeptKey, e *checkpoint.Entry) error {
	if err := e.Settleable(w.shown(e.Key, k).State); err != nil {
		return err
	}
	if e.State != checkpoint.InDoubt {
		owner, err := w.owner(e.LeadID)
		if err != nil {
			return err
		}
		if owner != "" && owner != e.Key {
			e.State, e.Reason = checkpoint.InDoubt, checkpoint.ReasonLeadTaken
			if err := w.contradict(checkpoint.LeadOfAnother, owner, e.LeadID, e.Key); err != nil {
				return err
			}
		}
	}
	if e.State == checkpoint.InDoubt {
		k.Doubt(w, e)
		return nil
	}
	if kind, lead := e.Against(); kind != checkpoint.NoEvidence {
		if err := w.contradict(kind, e.Key, lead, ""); err != nil {
			return err
		}
	}
	k.Conclude(w, e, 0)
	return nil
}

func (w *writing) mark(k *checkpoint.KeptKey, e *checkpoint.Entry) error {
	old := w.shown(e.Key, k)
	known, err := k.Mark(w, e, old)
	if err != nil || known {
		return err
	}
	if owner, err := w.owner(e.LeadID); err != nil || owner != "" {
		return cmp.Or(err, checkpoint.ErrTaken)
	}
	*e = e.TakenOver(&old.Entry, w.now) // a lead that only the input knew
	k.Conclude(w, e, checkpoint.Adopted)
	return nil
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
