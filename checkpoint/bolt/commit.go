package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	err := d.exclusively(kindOf(changes), func(w *writing) error {
		sorted := slices.Clone(changes)
		byKey := func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) }
		slices.SortStableFunc(sorted, byKey)
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
	return d.transact(kind, f)
}

// transact makes what f changes durable, or fails the checkpoint: a commit that failed may still be there, and the next
// one may succeed by chance. An error of a list undoes it: nothing was changed, and the checkpoint goes on.
func (d *Store) transact(kind string, f func(*writing) error) error {
	failpoint.At("commit " + kind)
	l := &d.w
	err := guard(func() error {
		return d.bolt.Update(func(tx *bbolt.Tx) error {
			l.begin(tx, *d.tally.Load(), d.head.Load(), d.now())
			if err := f(l); err != nil {
				return err
			}
			err := errors.Join(l.entries.end(), l.leads.end(), l.meta.Put(tallyKey, l.tally.encode()))
			if err != nil {
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

// apply makes one change. Its own refusal stays with it; what is returned is an error of the file.
func (w *writing) apply(c *checkpoint.Change) error {
	if note := w.d.digests.ShapeNote(c.Shape); note.Name != "" && w.in(inNotes).Get(noteKey(note.Name)) == nil {
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

// Alone makes what f changes one commit, see [checkpoint.Store].
func (d *Store) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	return d.alone(func(w *writing) error { return f(w) })
}

func (*writing) Load([]string, []string) error { return nil }

// Held is never so: a file has one writer.
func (*writing) Held(string) bool { return false }

func (w *writing) Put(key string, k checkpoint.KeptKey) error {
	was, _, err := w.Under(key)
	if err != nil {
		return err
	}
	return w.put(key, was, k)
}

func (w *writing) InDoubt(after string) (keys []string, err error) {
	c := w.intents.Cursor()
	for k, _ := c.Seek([]byte(after)); k != nil && len(keys) < inChunk; k, _ = c.Next() {
		if string(k) != after {
			keys = append(keys, string(k))
		}
	}
	return keys, nil
}

func (w *writing) Notes(prefix string) ([]checkpoint.Note, error) { return notesIn(w.tx, prefix) }

func (w *writing) Lack(missing string) error {
	return w.setHeader(func(h *header) {
		if h.Lacks, h.Since = missing, w.seq; missing == "" {
			h.Since = 0
		}
	})
}

func (w *writing) Renew() error {
	return w.setHeader(func(h *header) { h.ID, h.Moved, h.Filling = checkpoint.NewID(), "", "" })
}

// Erase removes keys. Close compacts the file, so that unused parts lose them too.
func (w *writing) Erase(keys []string) error {
	for _, key := range keys {
		if err := w.eraseKey(key); err != nil {
			return err
		}
	}
	w.d.leftover = false
	return w.setHeader(func(h *header) { h.Erase = true })
}

// noteKey is where a note is in its bucket. Its value is JSON, which no entry begins like.
func noteKey(name string) []byte { return []byte(notePrefix + name) }

const notePrefix = "note "

func decodeNote(key, record []byte) (n checkpoint.Note, err error) {
	name, is := strings.CutPrefix(string(key), notePrefix)
	value, err := unseal(key, record)
	n = checkpoint.Note{Name: name, Value: bytes.Clone(value)}
	if err != nil || !is || !json.Valid(n.Value) {
		return n, errRecord
	}
	return n, nil
}

func notesIn(tx *bbolt.Tx, prefix string) (all []checkpoint.Note, err error) {
	c := tx.Bucket(inNotes).Cursor()
	from := noteKey(prefix)
	for k, v := c.Seek(from); bytes.HasPrefix(k, from); k, v = c.Next() {
		n, err := decodeNote(k, v)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// Notes returns those whose names begin so, see [checkpoint.Store].
func (d *Store) Notes(_ context.Context, prefix string) (all []checkpoint.Note, err error) {
	err = d.view("read notes", func(tx *bbolt.Tx) error {
		all, err = notesIn(tx, prefix)
		return err
	})
	return all, err
}

func (w *writing) Note(name string) ([]byte, error) {
	record := w.in(inNotes).Get(noteKey(name))
	if record == nil {
		return nil, nil
	}
	n, err := decodeNote(noteKey(name), record)
	return n.Value, err
}

func (w *writing) PutNote(n checkpoint.Note) error {
	key, b := noteKey(n.Name), w.in(inNotes)
	if b.Get(key) != nil {
		w.notes--
	}
	if n.Value == nil {
		return b.Delete(key)
	}
	w.notes++
	return b.Put(key, seal(bytes.Clone(n.Value), 0, key))
}
