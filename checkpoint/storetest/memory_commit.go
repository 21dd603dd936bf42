package storetest

import (
	"cmp"
	"context"
	"fmt"
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
	switch {
	case m.closed:
		return checkpoint.ErrClosed
	case m.failed != nil:
		return m.failed
	case m.Fail != nil:
		if m.failed = m.Fail(changes); m.failed != nil {
			return m.failed
		}
	}
	m.used = true
	m.known.seq++
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) })
	w := writing{&m.known, m.now()}
	for _, c := range sorted {
		if c.Err = m.refuse(c); c.Err == nil {
			w.apply(c)
		}
	}
	return nil
}

// refuse asks the hook whether a change is refused.
func (m *Memory) refuse(c *checkpoint.Change) error {
	if m.Refuse == nil {
		return nil
	}
	err := m.Refuse(c)
	if err != nil && !checkpoint.IsRefusal(err) {
		panic(fmt.Sprintf("storetest: Refuse returned %v, which is no refusal: Fail is for errors of the Store", err))
	}
	return err
}

// writing is what is known while it is changed by one commit.
type writing struct {
	*knowledge
	now time.Time
}

// apply makes one change, or leaves with it why it is refused.
func (w *writing) apply(c *checkpoint.Change) {
	k := w.keys[c.Entry.Key]
	switch c.Kind {
	case checkpoint.Claim:
		w.note(c.Shape)
		c.Err = w.claim(&k, &c.Entry)
	case checkpoint.Settle:
		c.Err = w.settle(&k, &c.Entry)
	case checkpoint.Mark:
		c.Err = w.mark(&k, &c.Entry)
	default:
		k.Withdraw()
	}
	if c.Err == nil {
		w.put(c.Entry.Key, k)
	}
}

func (w *writing) note(s *checkpoint.Shape) {
	if s != nil && len(s.Columns) > 0 && !slices.ContainsFunc(w.shapes, func(other checkpoint.Shape) bool { return sameShape(*s, other) }) {
		w.shapes = append(w.shapes, *s)
	}
}

// Keep is a record as it is kept, with number and time.
func (w *writing) Keep(k checkpoint.Kept) *checkpoint.Kept {
	k.Seq = w.seq
	return k.Stamped(w.now)
}

// put has something else stand under a key.
func (w *writing) put(key string, k checkpoint.KeptKey) {
	if w.keys[key] = k; k == (checkpoint.KeptKey{}) {
		delete(w.keys, key)
	}
}

func (w *writing) claim(k *checkpoint.KeptKey, e *checkpoint.Entry) error {
	if !checkpoint.ValidKey(e.Key) {
		return checkpoint.ErrKey
	}
	return k.Claim(w, e, w.visible(e.Key))
}

func (w *writing) settle(k *checkpoint.KeptKey, e *checkpoint.Entry) error {
	if err := e.Settleable(w.visible(e.Key).State); err != nil {
		return err
	}
	if owner := w.owner(e.LeadID); e.State != checkpoint.InDoubt && owner != "" && owner != e.Key {
		w.contradict(checkpoint.LeadOfAnother, owner, e.LeadID, e.Key)
		e.State, e.Reason = checkpoint.InDoubt, checkpoint.ReasonLeadTaken
	}
	if e.State == checkpoint.InDoubt {
		k.Doubt(w, e)
		return nil
	}
	if kind, lead := e.Against(); kind != checkpoint.NoEvidence {
		w.contradict(kind, e.Key, lead, "")
	}
	k.Conclude(w, e, 0)
	return nil
}

// contradict notes evidence against the last decision about a key, if that gave it this
// lead ID, and once only.
func (w *writing) contradict(kind checkpoint.Evidence, key, lead, other string) {
	for _, one := range slices.Backward(w.decided) {
		if one.Key != key {
			continue
		}
		again := slices.ContainsFunc(w.found, func(c checkpoint.Contradiction) bool {
			return c.Decision == one.Decision && c.Decided.Equal(one.At) && c.Text == kind.String() && c.Other == other
		})
		if one.LeadID == lead && !one.Exists && !again {
			w.found = append(w.found, checkpoint.Contradiction{Decision: one.Decision, Decided: one.At, Found: w.now, Other: other, Text: kind.String()})
		}
		return
	}
}

func (w *writing) mark(k *checkpoint.KeptKey, e *checkpoint.Entry) error {
	old := w.visible(e.Key)
	known, err := k.Mark(w, e, old)
	switch {
	case err != nil || known:
		return err
	case w.owner(e.LeadID) != "":
		return checkpoint.ErrTaken
	}
	*e = e.TakenOver(&old.Entry, w.now)
	k.Conclude(w, e, checkpoint.Adopted)
	return nil
}
