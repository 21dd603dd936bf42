package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/failpoint"
)

// Commit makes changes durable in one transaction. Sorted by key they cost bbolt least;
// those of one key keep their order. See [checkpoint.Store].
func (d *Store) Commit(_ context.Context, changes []*checkpoint.Change) error {
	if len(changes) == 0 {
		return nil
	}
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) })
	err := d.transact(kindOf(changes), func(w *writing) error {
		for _, c := range sorted {
			if err := w.apply(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		d.changed.Store(true)
	}
	return err
}

// kindOf names a commit for [failpoint.At], by the first kind of change in it.
func kindOf(changes []*checkpoint.Change) string {
	kind := checkpoint.Mark
	for _, c := range changes {
		kind = min(kind, c.Kind)
	}
	return [...]string{"intent", "withdrawal", "outcome", "mark"}[kind]
}

// Alone makes the changes of f one commit, see [checkpoint.Store].
func (d *Store) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	return d.transact("other", func(w *writing) error { return f(w) })
}

// setHeader changes the header.
func (d *Store) setHeader(change func(*header)) error {
	return d.transact("other", func(w *writing) error { change(&w.head); return nil })
}

// transact makes what f changes durable while nobody else commits. If that fails, the checkpoint is broken: a commit
// that failed may still be there, and the next one may succeed by chance. A refusal undoes the changes, and the
// checkpoint goes on.
func (d *Store) transact(kind string, f func(*writing) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.o.ReadOnly:
		return checkpoint.ErrReadOnly
	case d.failed() != nil:
		return d.failed()
	case d.closed.Load():
		return checkpoint.ErrClosed
	}
	failpoint.At("commit " + kind)
	var w *writing
	err := guard(func() error {
		return d.bolt.Update(func(tx *bbolt.Tx) error {
			w = d.begin(tx)
			if err := f(w); err != nil {
				return err
			}
			return w.end()
		})
	})
	if checkpoint.Refuses(err) {
		return err
	}
	if err != nil {
		return d.fail(fmt.Errorf("write checkpoint %s: %w", d.path, err))
	}
	failpoint.At("durable " + kind)
	d.head.Store(&w.head)
	if err := d.inPlace(); err != nil { // the commit is in a file that nobody will find
		return d.fail(err)
	}
	d.testimony.Reached(d.Progress())
	return nil
}

// begin binds the next commit to tx.
func (d *Store) begin(tx *bbolt.Tx) *writing {
	w := &writing{head: *d.head.Load(), now: d.o.Now().UTC()}
	w.head.Seq++
	d.entries.begin(tx, w.head.Counts.Entries)
	d.leads.begin(tx, w.head.Counts.Entries)
	w.reading = d.readingIn(tx, d.entries.find, d.leads.find)
	tx.Bucket(inIntents).FillPercent = 0.95 // new ones mostly come after all others, and go soon
	// index records come many at a time, or in no order; measured
	tx.Bucket(inLeads).FillPercent, tx.Bucket(inFolds).FillPercent = 0.6, 0.6
	last, _ := tx.Bucket(inEntries).Cursor().Last()
	w.last = string(last)
	return w
}

// end writes what belongs to each commit. Readers find records in their new places even before they see the commit.
func (w *writing) end() error {
	d := w.d
	if err := errors.Join(d.entries.end(), d.leads.end(), w.head.putIn(w.tx)); err != nil {
		return err
	}
	d.readers.Lock()
	defer d.readers.Unlock()
	d.entries.announce()
	d.leads.announce()
	return nil
}

// apply makes one change. A refusal is noted in the change; a returned error is an error of the file.
func (w *writing) apply(c *checkpoint.Change) error {
	if note := w.d.digests.ShapeNote(c.Shape); note.Name != "" && w.tx.Bucket(inNotes).Get([]byte(note.Name)) == nil {
		if err := w.PutNote(note); err != nil {
			return err
		}
	}
	key := c.Entry.Key
	was, old, err := w.Under(key)
	if err != nil {
		return err
	}
	is := was
	err = is.Apply(w, c, old)
	switch {
	case err == nil:
		return w.put(key, was, is)
	case checkpoint.IsRefusal(err):
		c.Err = err
		return nil
	}
	return err
}
