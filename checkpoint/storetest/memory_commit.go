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
	switch c.Kind {
	case checkpoint.Claim:
		w.note(c.Shape)
		c.Err = w.claim(&c.Entry)
	case checkpoint.Settle:
		c.Err = w.settle(&c.Entry)
	case checkpoint.Mark:
		c.Err = w.mark(&c.Entry)
	default:
		w.withdraw(c.Entry.Key)
	}
}

// stamped is a record as it is kept, with number and time.
func (w *writing) stamped(r record) *record {
	if r.Seq = w.seq; r.Updated.IsZero() {
		r.Updated = w.now
	}
	r.Updated = time.UnixMilli(r.Updated.UnixMilli()).UTC()
	r.Status = bounded(r.Status)
	return &r
}

func (w *writing) note(s *checkpoint.Shape) {
	if s != nil && len(s.Columns) > 0 && !slices.ContainsFunc(w.shapes, func(other checkpoint.Shape) bool { return sameShape(*s, other) }) {
		w.shapes = append(w.shapes, *s)
	}
}

func (w *writing) claim(e *checkpoint.Entry) error {
	old := w.visible(e.Key)
	r := record{act: checkpoint.Doubted}
	switch {
	case !checkpoint.ValidKey(e.Key):
		return checkpoint.ErrKey
	case old.State.HasLead():
		return checkpoint.ErrKnown
	case old.State == checkpoint.Forgotten:
		return checkpoint.ErrBlocked
	case old.State == checkpoint.InDoubt:
		prior := *old
		prior.prior = nil
		r.prior, r.past = &prior, append(slices.Clone(old.past), old.Event(old.act).Past())
	}
	e.State = checkpoint.InDoubt
	r.Entry = *e
	w.intents[e.Key] = w.stamped(r)
	*e = w.intents[e.Key].Entry
	return nil
}

func (w *writing) withdraw(key string) {
	in := w.intents[key]
	if delete(w.intents, key); in != nil && in.prior != nil {
		w.intents[key] = in.prior
	}
}

func (w *writing) settle(e *checkpoint.Entry) error {
	switch {
	case !checkpoint.ValidKey(e.Key):
		return checkpoint.ErrKey
	case e.State == checkpoint.Unknown || e.State > checkpoint.InDoubt:
		return checkpoint.ErrState
	case w.visible(e.Key).State == checkpoint.Forgotten:
		return checkpoint.ErrBlocked
	}
	if owner := w.owner(e.LeadID); e.State != checkpoint.InDoubt && owner != "" && owner != e.Key {
		w.contradict(checkpoint.LeadOfAnother, owner, e.LeadID, e.Key)
		e.State, e.Reason = checkpoint.InDoubt, checkpoint.ReasonLeadTaken
	}
	if e.State == checkpoint.InDoubt {
		*e = w.doubt(*e)
		return nil
	}
	if kind, lead := e.Against(); kind != checkpoint.NoEvidence {
		w.contradict(kind, e.Key, lead, "")
	}
	*e = w.conclude(*e, 0)
	return nil
}

// doubt keeps the intent of a key and adds what is known of the answer.
func (w *writing) doubt(e checkpoint.Entry) checkpoint.Entry {
	r := record{Entry: e}
	if in := w.intents[e.Key]; in != nil {
		r = *in
	}
	r.State, r.Code, r.Reason, r.LeadID = checkpoint.InDoubt, e.Code, e.Reason, e.LeadID
	r.RequestID = cmp.Or(e.RequestID, r.RequestID)
	if e.Reason != checkpoint.ReasonIncomplete { // which was not sent
		r.act |= checkpoint.Doubted
	}
	w.intents[e.Key] = w.stamped(r)
	return w.intents[e.Key].Entry
}

// conclude puts an outcome in place of what stands under its key.
func (w *writing) conclude(e checkpoint.Entry, act checkpoint.Act) checkpoint.Entry {
	r, old, in := record{Entry: e}, &record{}, w.intents[e.Key]
	if w.entries[e.Key] != nil {
		old = w.entries[e.Key]
		r.past = append(slices.Clone(old.past), old.Event(old.act))
	}
	if in != nil {
		r.past = append(r.past, in.past...)
		sent := in.Event(in.act).Past()
		told := act == 0 && in.Run == e.Run && in.Code == 0 && in.Reason == "" // the outcome says as much
		if !told && !slices.Contains(in.past, sent) {
			r.past = append(r.past, sent)
		}
	}
	r.act = e.ActAfter(&old.Entry) | act
	delete(w.intents, e.Key)
	w.entries[e.Key] = w.stamped(r)
	return w.entries[e.Key].Entry
}

// contradict notes evidence against the last decision about a key, if that gave it this
// lead ID, and once only.
func (w *writing) contradict(kind checkpoint.Evidence, key, lead, other string) {
	for _, one := range slices.Backward(w.decided) {
		if one.Key != key {
			continue
		}
		again := slices.ContainsFunc(w.found, func(c checkpoint.Contradiction) bool {
			return c.Decision == one.Decision && c.Decided.Equal(one.at) && c.Text == kind.String() && c.Other == other
		})
		if one.LeadID == lead && !one.Exists && !again {
			w.found = append(w.found, checkpoint.Contradiction{Decision: one.Decision, Decided: one.at, Found: w.now, Other: other, Text: kind.String()})
		}
		return
	}
}

func (w *writing) mark(e *checkpoint.Entry) error {
	old := w.visible(e.Key)
	switch {
	case !checkpoint.ValidKey(e.Key):
		return checkpoint.ErrKey
	case old.State == checkpoint.Forgotten:
		return checkpoint.ErrBlocked
	case old.State.HasLead() && old.LeadID == e.LeadID:
		r := *old
		r.Unsettled, r.Sought, r.Seen = e.Unsettled, e.Sought, e.Seen
		w.entries[e.Key] = w.stamped(r)
		*e = w.entries[e.Key].Entry
		return nil
	case old.State == checkpoint.InDoubt || old.State.HasLead() && old.LeadID != "" || e.LeadID == "":
		return checkpoint.ErrKnown
	case w.owner(e.LeadID) != "":
		return checkpoint.ErrTaken
	}
	taken := *e
	taken.State = checkpoint.Created
	if old.State.HasLead() { // its lead ID alone was not known
		taken = old.Completed(e)
		taken.Unsettled, taken.Sought, taken.Seen = e.Unsettled, e.Sought, e.Seen
	}
	taken.Updated = w.now
	*e = w.conclude(taken, checkpoint.Adopted)
	return nil
}
