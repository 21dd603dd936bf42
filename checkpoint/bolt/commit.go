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
	err := d.write(kindOf(changes), func(w *writing) error {
		d.sorted = append(d.sorted[:0], changes...)
		slices.SortStableFunc(d.sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) })
		for _, c := range d.sorted {
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
func (d *Store) alone(f func(*writing) error) error { return d.write("other", f) }

// write makes what f changes durable, or fails the checkpoint: a commit that failed may
// still be there, and the next one may succeed by chance. A *checkpoint.ListError is a
// refusal: nothing was changed, and the checkpoint goes on.
func (d *Store) write(kind string, f func(*writing) error) error {
	return d.exclusively(func() error { return d.transact(kind, f) })
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

func (d *Store) transact(kind string, f func(*writing) error) error {
	failpoint.At("commit " + kind)
	l := &d.w
	err := guard(func() error {
		return d.bolt.Update(func(tx *bbolt.Tx) error {
			l.begin(tx, *d.tally.Load(), d.now())
			if err := f(l); err != nil {
				return err
			}
			if err := l.end(tx); err != nil {
				return err
			}
			d.readers.Lock()
			defer d.readers.Unlock()
			l.entries.announce()
			l.leads.announce()
			return nil
		})
	})
	if refused, unread := (*checkpoint.ListError)(nil), (*listFailure)(nil); errors.As(err, &refused) || errors.As(err, &unread) {
		return err
	}
	if err != nil {
		return d.fail(fmt.Errorf("write checkpoint %s: %w", d.path, err))
	}
	d.land()
	failpoint.At("durable " + kind)
	t := l.tally
	d.tally.Store(&t)
	if err := d.stamp(false); err != nil {
		// These changes are durable, so they may be reported; nothing may follow.
		_ = d.fail(err)
	}
	return nil
}

// land lets the writer forget where records stood before a commit that is durable.
func (d *Store) land() {
	if len(d.entries.deleted)+len(d.leads.deleted) > 0 {
		d.readers.Lock()
		defer d.readers.Unlock()
		d.entries.land()
		d.leads.land()
	}
}

// kindOf names what a commit holds, for the points at which a test kills.
func kindOf(changes []*checkpoint.Change) string {
	has := func(kind checkpoint.ChangeKind) bool {
		return slices.ContainsFunc(changes, func(c *checkpoint.Change) bool { return c.Kind == kind })
	}
	switch {
	case has(checkpoint.Claim):
		return "intent"
	case has(checkpoint.Settle):
		return "outcome"
	case has(checkpoint.Mark):
		return "mark"
	}
	return "other"
}
