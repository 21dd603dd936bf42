package storetest

import (
	"cmp"
	"context"
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
	w := writing{&m.known, m.now()}
	for _, c := range sorted {
		if m.Refuse != nil {
			c.Err = m.Refuse(c)
		}
		if c.Err != nil {
			continue
		}
		if note := m.digests.ShapeNote(c.Shape); note.Name != "" {
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

// Resolve settles keys in doubt, see [checkpoint.Store].
func (m *Memory) Resolve(_ context.Context, ds []checkpoint.Decision) (r checkpoint.ResolveResult, err error) {
	err = m.change("resolve", func(k *knowledge, now time.Time) (err error) {
		r, err = checkpoint.Resolve(&resolving{&writing{k, now}}, ds, now)
		return err
	})
	return r, err
}

// resolving is what decisions are carried out on.
type resolving struct{ *writing }

// Under is what stands under a key.
func (r *resolving) Under(key string) (checkpoint.KeptKey, error) { return r.keys[key], nil }

// Put has something else stand there.
func (r *resolving) Put(key string, k checkpoint.KeptKey) error { r.put(key, k); return nil }

// Adopt takes over leads, see [checkpoint.Store].
func (m *Memory) Adopt(_ context.Context, list checkpoint.List) (r checkpoint.AdoptResult, err error) {
	a, err := checkpoint.ReadAdoption(list, m.digests)
	if err != nil {
		return r, err
	}
	err = m.change("adopt", func(k *knowledge, now time.Time) error {
		w, wanted := &writing{k, now}, []checkpoint.Entry(nil)
		err := a.Each(func(i int, e *checkpoint.Entry) error {
			take, err := a.Judge(i, e, w.visible(e.Key), w.owner(e.LeadID), &r)
			if take {
				wanted = append(wanted, *e)
			}
			return err
		})
		for i := 0; i < len(wanted) && err == nil; i++ {
			w.adopt(&wanted[i])
		}
		return err
	})
	return r, err
}

func (w *writing) adopt(e *checkpoint.Entry) {
	k := w.keys[e.Key]
	corrects := k.Corrects(e)
	if corrects {
		k.GiveUp(w)
		w.put(e.Key, k)
	}
	k.Adopt(w, *e, w.visible(e.Key), corrects, w.now)
	w.put(e.Key, k)
}

// Forget removes keys, see [checkpoint.Store].
func (m *Memory) Forget(_ context.Context, keys []string, unblock bool) (r checkpoint.ForgetResult, err error) {
	err = m.change("forget", func(k *knowledge, now time.Time) error {
		m.used = true
		gone, leads := map[string]bool{}, map[string]bool{}
		for i, key := range keys {
			if !checkpoint.ValidKey(key) {
				return &checkpoint.ListError{Index: i, Key: key, Text: "its " + checkpoint.ErrKey.Error()}
			}
			if gone[key] {
				continue
			}
			r.Count(k.visible(key).State)
			if e := k.keys[key].Entry; e != nil && e.LeadID != "" {
				leads[e.LeadID] = true
			}
			gone[key] = true
			delete(k.keys, key)
			if delete(k.blocked, key); !unblock {
				k.blocked[key] = true
			}
		}
		for key, one := range k.keys {
			if one.Intent != nil {
				one.Intent = one.Intent.Scrubbed(leads)
				k.keys[key] = one
			}
		}
		forgot := func(key string) bool { return gone[key] }
		return checkpoint.ForgetDecisions(k.notesOf(checkpoint.DecidedNote), forgot, leads, (&writing{k, now}).PutNote)
	})
	return r, err
}

// AcceptLoss gives up what is missing, and frees rows that were held for it.
func (m *Memory) AcceptLoss(context.Context) (freed int, err error) {
	err = m.change("accept loss", func(k *knowledge, now time.Time) error {
		k.missing = ""
		for key, one := range k.keys {
			if one.Intent != nil && one.Intent.Reason == checkpoint.ReasonIncomplete {
				one.Withdraw()
				(&writing{k, now}).put(key, one)
				freed++
			}
		}
		return nil
	})
	return freed, err
}
