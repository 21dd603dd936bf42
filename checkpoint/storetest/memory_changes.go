package storetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"leadferry/checkpoint"
)

// Commit makes changes, see [checkpoint.Store].
func (m *Memory) Commit(_ context.Context, changes []*checkpoint.Change) error {
	if len(changes) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return checkpoint.ErrClosed
	}
	m.used = true
	m.known.seq++
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) })
	w := writing{&m.known, m.now(), m}
	for _, c := range sorted {
		if m.Refuse != nil {
			c.Err = m.Refuse(c)
		}
		if c.Err != nil {
			continue
		}
		if note := m.known.digests.ShapeNote(c.Shape); note.Name != "" {
			_ = w.PutNote(note)
		}
		w.apply(c)
	}
	return nil
}

// writing is what is known while it is changed by one commit.
type writing struct {
	*knowledge
	now time.Time
	m   *Memory
}

// apply makes one change, or leaves with it why it is refused.
func (w *writing) apply(c *checkpoint.Change) {
	k := w.keys[c.Entry.Key]
	c.Err = k.Apply(w, c, w.visible(c.Entry.Key), w.now)
	if c.Err == nil {
		w.put(c.Entry.Key, k)
	}
}

// Keep is a record as it is kept, with number and time.
func (w *writing) Keep(k checkpoint.Kept) *checkpoint.Kept {
	k.Seq = w.seq
	return k.Stamp(w.now)
}

func (w *writing) put(key string, k checkpoint.KeptKey) {
	if w.keys[key] = k; k == (checkpoint.KeptKey{}) {
		delete(w.keys, key)
	}
}

// Owner is the key that has a lead, or nothing.
func (w *writing) Owner(lead, _ string) (string, error) { return w.owner(lead), nil }

// Linked is another key whose lead has an ExternalID, or which has asked for it.
func (w *writing) Linked(external, key string) (string, error) {
	for _, other := range slices.Sorted(maps.Keys(w.keys)) {
		e, in := w.keys[other].Entry, w.keys[other].Intent
		if other != key && (e != nil && e.State.HasLead() && (e.ExternalID == external || e.WantLink == external) ||
			in != nil && in.WantLink == external) {
			return other, nil
		}
	}
	return "", nil
}

// Now is the time of the commit.
func (w *writing) Now() time.Time { return w.now }

// Note is one of the notes, or nil.
func (w *writing) Note(name string) ([]byte, error) { return w.notes[name], nil }

// PutNote keeps a note, or takes it away.
func (w *writing) PutNote(n checkpoint.Note) error {
	if w.notes[n.Name] = n.Value; n.Value == nil {
		delete(w.notes, n.Name)
	}
	return nil
}

// Alone makes one change.
func (m *Memory) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	return m.change("change", func(k *knowledge, now time.Time) error { return f(&writing{k, now, m}) })
}

// Load has nothing to do.
func (w *writing) Load([]string, []string) error { return nil }

// Held is never so.
func (w *writing) Held(string) bool { return false }

// Under is what is stored under a key.
func (w *writing) Under(key string) (checkpoint.KeptKey, *checkpoint.Kept, error) {
	return w.keys[key], w.visible(key), nil
}

// Put stores something else there.
func (w *writing) Put(key string, k checkpoint.KeptKey) error { w.put(key, k); return nil }

// Doubts stores something else under keys in doubt.
func (w *writing) Doubts(f func(checkpoint.KeptKey) checkpoint.KeptKey) error {
	for key, k := range w.keys {
		if k.Intent != nil {
			w.put(key, f(k))
		}
	}
	return nil
}

// Notes are those whose names begin so.
func (w *writing) Notes(prefix string) ([]checkpoint.Note, error) { return w.notesOf(prefix), nil }

// Lack notes what is missing.
func (w *writing) Lack(missing string) error {
	w.missing, w.since = missing, w.seq
	return nil
}

// Renew gives it a new ID.
func (w *writing) Renew() error { w.id = rand.Text(); return nil }

// Erase removes keys.
func (w *writing) Erase(keys []string) error {
	w.m.used = true
	for _, key := range keys {
		delete(w.keys, key)
		delete(w.blocked, string(w.digests.Blocked(key)))
	}
	return nil
}

// Block keeps what is left of a key.
func (w *writing) Block(b checkpoint.KeptBlock) error {
	w.blocked[string(b.Hash)] = string(b.Fold)
	return nil
}
