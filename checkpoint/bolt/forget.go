package bolt

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// Forget removes every trace of keys, all or none: entries, intents, index records,
// decisions about them, and their lead IDs wherever they stand. A keyed hash of
// each key stays, so that no later file makes the lead again: such a key is in
// state Forgotten. That holds for keys that are not known too, since the next file
// may bring them. With unblock the hash goes as well, and the key is as new. Close
// then compacts the file, so that the bytes are gone from its unused parts; if that
// fails, the next writer does it. A refusal is a *[ListError].
func (d *Store) Forget(_ context.Context, keys []string, unblock bool) (r checkpoint.ForgetResult, err error) {
	for i, key := range keys {
		if !checkpoint.ValidKey(key) {
			return r, fmt.Errorf("forget: %w", &checkpoint.ListError{Index: i, Key: key, Text: "its " + checkpoint.ErrKey.Error()})
		}
	}
	for done := false; !done && err == nil; {
		err = d.alone(func(l *ledger) error {
			if done, err = l.drain(); !done || err != nil { // the log may hold what is to be forgotten
				return err
			}
			r = checkpoint.ForgetResult{}
			return l.forget(keys, unblock, &r)
		})
	}
	if err != nil {
		return r, fmt.Errorf("forget: %w", err)
	}
	d.erase.Store(true)
	return r, nil
}

func (l *ledger) forget(keys []string, unblock bool, r *checkpoint.ForgetResult) error {
	gone, leads := make(map[string]bool, len(keys)), make(map[string]bool, len(keys))
	texts := make(map[string]bool) // that they used
	for _, key := range keys {
		if gone[key] {
			continue
		}
		gone[key] = true
		lead, err := l.erase(key, unblock, r, texts)
		if err != nil {
			return err
		}
		if lead != "" {
			leads[lead] = true
		}
	}
	if err := l.scrubIntents(leads); err != nil {
		return err
	}
	if err := l.scrubAudit(gone, leads, texts); err != nil {
		return err
	}
	if err := l.scrubWords(texts); err != nil {
		return err
	}
	return l.meta.Put(eraseKey, seal(nil, 0, eraseKey))
}

// erase removes what stands under key, leaves its hash or not, and returns its lead
// ID. The texts that it used are added to those given.
func (l *ledger) erase(key string, unblock bool, r *checkpoint.ForgetResult, texts map[string]bool) (lead string, err error) {
	from, err := l.state(key)
	if err != nil {
		return "", err
	}
	r.Count(from)
	old, t, err := l.known(key)
	if err != nil {
		return "", err
	}
	in, sent, err := l.intent(key)
	if err != nil {
		return "", err
	}
	note := func(s string) { texts[s] = true }
	if err := errors.Join(l.words.each(&old, &t, note), l.words.each(&in, &sent, note)); err != nil {
		return "", err
	}
	in.Key = key
	if err := errors.Join(l.unindex(&old), l.entries.delete(key), l.deleteIntent(&in)); err != nil {
		return "", err
	}
	if unblock {
		return old.LeadID, errors.Join(l.move(key, from, checkpoint.Unknown), l.unblock(key))
	}
	return old.LeadID, errors.Join(l.move(key, from, checkpoint.Forgotten), l.block(key))
}

// scrubIntents takes forgotten lead IDs out of the doubts of other keys, which were
// answered with the same ID.
func (l *ledger) scrubIntents(leads map[string]bool) error {
	type change struct {
		e checkpoint.Entry
		t tail
	}
	var changes []change
	err := l.intents.ForEach(func(k, v []byte) error {
		var e, before checkpoint.Entry
		t, err := l.words.decode(string(k), v, &e)
		if err != nil {
			return err
		}
		hit := leads[e.LeadID]
		if hit {
			e.LeadID = ""
		}
		if len(t.prior) > 0 {
			earlier, err := l.words.decode(string(k), t.prior, &before)
			if err != nil {
				return err
			}
			if leads[before.LeadID] {
				hit, before.LeadID = true, ""
				t.prior = l.words.appendEntry(nil, &before, earlier)
			}
		}
		if hit {
			changes = append(changes, change{e, t})
		}
		return nil
	})
	for i := 0; i < len(changes) && err == nil; i++ {
		err = l.putIntent(&changes[i].e, &changes[i].e, changes[i].t)
	}
	return err
}

// scrubAudit removes the lines that name a forgotten key or lead, and such a lead from
// the sends in others.
func (l *ledger) scrubAudit(gone, leads, texts map[string]bool) error {
	changed := map[string][]byte{} // nil: goes
	err := l.audit.ForEach(func(k, v []byte) error {
		r, e, t, err := l.decided(k, v)
		switch {
		case err != nil:
			return err
		case gone[r.Key] || gone[r.other] || leads[r.LeadID]:
			changed[string(k)] = nil
			if r.kind > exists {
				l.contradictions--
			} else {
				l.decisions--
			}
			return l.words.each(&e, &t, func(s string) { texts[s] = true })
		case e.LeadID != "" && leads[e.LeadID]:
			e.LeadID = ""
			r.send = l.words.appendEntry(nil, &e, t)
			changed[string(k)] = r.encode(k)
		}
		return nil
	})
	for k, v := range changed {
		if v == nil {
			err = errors.Join(err, l.audit.Delete([]byte(k)))
		} else {
			err = errors.Join(err, l.audit.Put([]byte(k), v))
		}
	}
	return err
}

// decided is a line of the audit with the send in it, which is empty where there is none.
func (l *ledger) decided(k, v []byte) (r auditLine, e checkpoint.Entry, t tail, err error) {
	if r, err = decodeAudit(k, v); err == nil && len(r.send) > 0 {
		t, err = l.words.decode(r.Key, r.send, &e)
	}
	return r, e, t, err
}

var errAllUsed = errors.New("every text is used")

// scrubWords removes those of the texts that nothing uses any more: a location, a file
// or an organization that was one person's alone.
func (l *ledger) scrubWords(texts map[string]bool) error {
	maps.DeleteFunc(texts, func(s string, _ bool) bool { return s == "" || l.words.numbers[s] == 0 })
	used := func(e *checkpoint.Entry, t *tail) error {
		if err := l.words.each(e, t, func(s string) { delete(texts, s) }); err != nil {
			return err
		}
		if len(texts) == 0 {
			return errAllUsed
		}
		return nil
	}
	if len(texts) == 0 {
		return nil
	}
	var e checkpoint.Entry
	entry := func(k, v []byte) error {
		t, err := l.words.decode(string(k), v, &e)
		return errors.Join(err, used(&e, &t))
	}
	err := l.audit.ForEach(func(k, v []byte) error {
		_, e, t, err := l.decided(k, v)
		return errors.Join(err, used(&e, &t))
	})
	for _, bucket := range []*bbolt.Bucket{l.intents, l.entries.in} {
		if err == nil {
			err = bucket.ForEach(entry)
		}
	}
	if err == nil {
		err = l.words.forget(texts, l.meta.Tx().Bucket(inWords))
	} else if errors.Is(err, errAllUsed) {
		err = nil
	}
	return err
}
