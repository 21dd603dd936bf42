package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/crash"
	"leadferry/internal/failpoint"
)

// Commit makes changes durable in one transaction. Sorted by key they cost bbolt least;
// those of one key keep their order. See [checkpoint.Store].
func (d *Store) Commit(_ context.Context, changes []*checkpoint.Change) error {
	if len(changes) == 0 {
		return nil
	}
	err := d.exclusively(kindOf(changes), func(w *writing) error {
		sorted := slices.Clone(changes)
		slices.SortStableFunc(sorted, func(a,
			b *checkpoint.Change,
		) int {
			return cmp.Compare(a.Entry.Key, b.Entry.Key)
		})
		for _, c := range sorted {
			if err := w.apply(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		d.claimed.Store(true)
	}
	return err
}

// alone makes f a commit of its own; what f returns undoes it.
func (d *Store) alone(f func(*writing) error) error {
	return d.exclusively("other", f)
}

// exclusively makes f a commit while nobody else commits, unless nothing may be written any more.
func (d *Store) exclusively(kind string, f func(*writing) error) error {
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
	err := crash.Call(func() error { return d.transact(kind, f) })
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
	if note := w.d.digests.ShapeNote(c.Shape); note.Name != "" {
		if err := w.noteOnce(note); err != nil {
			return err
		}
	}
	key := c.Entry.Key
	was, old, err := w.Under(key)
	if err != nil {
		return err
	}
	is := was
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
