package bolt

import (
	"bytes"
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
	is, old := was, w.shown(key, &was)
	switch c.Kind {
	case checkpoint.Claim:
		err = is.Claim(w, &c.Entry, old)
	case checkpoint.Settle:
		if err = c.Entry.Settleable(old.State); err == nil {
			err = is.Settle(w, &c.Entry)
		}
	case checkpoint.Mark:
		err = is.Mark(w, &c.Entry, old, w.now)
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

// Owner is the key under which a lead stands, or nothing.
func (w *writing) Owner(id, _ string) (string, error) {
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
