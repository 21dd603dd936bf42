package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/crash"
	"leadferry/internal/failpoint"
)

// Commit makes changes durable in one transaction. Sorted by key they cost bbolt least;
// those of one key keep their order. See [checkpoint.Store].
func (d *Store) Commit(_ context.Context, changes []*checkpoint.Change) error {
	if len(changes) == 0 {
		return nil
	}
	apply := func(w *writing) error {
		d.sorted = append(d.sorted[:0], changes...)
		slices.SortStableFunc(d.sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) })
		for _, c := range d.sorted {
			if err := w.apply(c); err != nil {
				return err
			}
		}
		return nil
	}
	err := d.exclusively(func() error { return d.transact(kindOf(changes), apply) })
	if err == nil {
		d.claimed.Store(true)
	}
	return err
}

// alone makes f a commit of its own; what f returns undoes it.
func (d *Store) alone(f func(*writing) error) error {
	return d.exclusively(func() error { return d.transact("other", f) })
}

// exclusively lets f transact, as often as it likes, and nobody else.
func (d *Store) exclusively(f func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.readOnly:
		return checkpoint.ErrReadOnly
	case d.failed() != nil:
		return d.failed()
	case d.closed.Load():
		return checkpoint.ErrClosed
	}
	err := crash.Call(f)
	if fault := (*crash.Error)(nil); errors.As(err, &fault) {
		return d.fail(err)
	}
	return err
}

// transact makes what f changes durable, or fails the checkpoint: a commit that failed may
// still be there, and the next one may succeed by chance. An error of a list undoes it: nothing
// was changed, and the checkpoint goes on.
func (d *Store) transact(kind string, f func(*writing) error) error {
	failpoint.At("commit " + kind)
	l := &d.w
	err := guard(func() error {
		return d.bolt.Update(func(tx *bbolt.Tx) error {
			l.begin(tx, *d.tally.Load(), d.head.Load(), d.now())
			if err := f(l); err != nil {
				return err
			}
			if err := l.end(); err != nil {
				return err
			}
			d.readers.Lock()
			defer d.readers.Unlock()
			l.entries.announce()
			l.leads.announce()
			return nil
		})
	})
	if checkpoint.IsOfList(err) {
		return err
	}
	if err != nil {
		return d.fail(fmt.Errorf("write checkpoint %s: %w", d.path, err))
	}
	failpoint.At("durable " + kind)
	t := l.tally
	d.tally.Store(&t)
	d.head.Store(l.head)
	if err := d.inPlace(); err != nil { // it is durable where nobody will find it
		return d.fail(err)
	}
	return nil
}

// kindOf names what a commit holds, for the points at which a test kills.
func kindOf(changes []*checkpoint.Change) string {
	for _, named := range []struct {
		kind checkpoint.ChangeKind
		name string
	}{{checkpoint.Claim, "intent"}, {checkpoint.Settle, "outcome"}, {checkpoint.Mark, "mark"}} {
		if slices.ContainsFunc(changes, func(c *checkpoint.Change) bool { return c.Kind == named.kind }) {
			return named.name
		}
	}
	return "other"
}

// apply makes one change. Its own refusal stays with it; what is returned is an error of
// the file.
func (w *writing) apply(c *checkpoint.Change) error {
	if note := w.digests.ShapeNote(c.Shape); note.Name != "" {
		if err := w.noteOnce(note); err != nil {
			return err
		}
	}
	key := c.Entry.Key
	was, err := w.under(key)
	if err != nil {
		return err
	}
	is, old := was, w.shown(key, &was)
	err = is.Apply(w, c, old, w.now)
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
	return ownerOf(w.words, id, w.entry, lead, w.leads.find(lead))
}

// ownerOf is the key whose entry has this lead ID, or nothing; indexed is the record of lead in
// the index, which has none where the key itself is the lead ID.
func ownerOf(w *records.Words, id string, entry func(key string) []byte, lead string, indexed []byte) (string, error) {
	keys := []string{id}
	if indexed != nil {
		f, err := records.Unseal([]byte(lead), indexed)
		if err != nil {
			return "", err
		}
		keys = append(keys, string(f.Rest()))
	}
	for _, key := range keys {
		record := entry(key)
		if record == nil {
			continue
		}
		var e checkpoint.Entry
		if err := w.Decode(key, record, &e); err != nil || e.LeadID == id {
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
	err := w.reindex(w.links, oldLinks, links)
	if bytes.Equal(oldLead, lead) {
		return err
	}
	if oldLead != nil {
		w.indexed--
		err = errors.Join(err, w.leads.delete(string(oldLead)))
	}
	if lead != nil {
		w.indexed++
		err = errors.Join(err, w.leads.insert(string(lead), records.Seal([]byte(e.Key), 0, lead)))
	}
	return err
}

// reindex has an index hold the keys that come instead of those that were there.
func (w *writing) reindex(index *bbolt.Bucket, old, is records.LinkKeys) (err error) {
	for _, link := range old {
		if link != nil && !is.Has(link) {
			err = errors.Join(err, w.unlist(index, link))
		}
	}
	for _, link := range is {
		if link != nil && !old.Has(link) {
			err = errors.Join(err, w.list(index, link))
		}
	}
	return err
}

// list adds a key to an index, unlist removes one.
func (w *writing) list(index *bbolt.Bucket, key []byte) error {
	if index.Get(key) != nil {
		return nil
	}
	w.indexed++
	return index.Put(key, sealedKey(key))
}

func (w *writing) unlist(index *bbolt.Bucket, key []byte) error {
	if index.Get(key) == nil {
		return nil
	}
	w.indexed--
	return index.Delete(key)
}
