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
	k, old := w.keys[c.Entry.Key], w.visible(c.Entry.Key)
	switch c.Kind {
	case checkpoint.Claim:
		w.note(c.Shape)
		c.Err = k.Claim(w, &c.Entry, old)
	case checkpoint.Settle:
		if c.Err = c.Entry.Settleable(old.State); c.Err == nil {
			c.Err = k.Settle(w, &c.Entry)
		}
	case checkpoint.Mark:
		c.Err = k.Mark(w, &c.Entry, old, w.now)
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

// Owner is the key that has a lead, or nothing.
func (w *writing) Owner(lead, _ string) (string, error) { return w.owner(lead), nil }

// Contradict notes evidence against a decision, see [checkpoint.Book].
func (w *writing) Contradict(kind checkpoint.Evidence, key, lead, other string) error {
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
		break
	}
	return nil
}
