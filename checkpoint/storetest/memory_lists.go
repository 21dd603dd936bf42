package storetest

import (
	"context"
	"slices"
	"time"

	"leadferry/checkpoint"
)

// Resolve settles keys in doubt, see [checkpoint.Store].
func (m *Memory) Resolve(_ context.Context, ds []checkpoint.Decision) (r checkpoint.ResolveResult, err error) {
	err = m.change("resolve", func(k *knowledge, now time.Time) error {
		w, list, before := writing{k, now}, checkpoint.DecisionList{}, map[int]bool{}
		for i, one := range ds {
			refusal := list.Unfit(&one)
			if refusal == nil {
				before[i], refusal = w.reopen(&one, &r)
			}
			if refusal != nil {
				return refusal.At(i, one.Key)
			}
		}
		for i, one := range ds {
			if !before[i] && w.owner(one.LeadID) != "" {
				return &checkpoint.ListError{Index: i, Key: one.Key, Text: "its lead ID is known already"}
			}
		}
		for i, one := range ds {
			if before[i] {
				continue
			}
			send := *w.intents[one.Key]
			send.Prior = nil
			w.decided = append(w.decided, checkpoint.KeptDecision{Decision: one, At: now, Send: &send})
			w.conclude(one.Outcome(send.Entry, now), checkpoint.Decided)
		}
		return nil
	})
	return r, err
}

// reopen puts a key that was decided otherwise back in doubt; before says that it was
// decided so already.
func (w *writing) reopen(d *checkpoint.Decision, r *checkpoint.ResolveResult) (before bool, refusal *checkpoint.ListError) {
	if in := w.intents[d.Key]; in != nil {
		r.Settled++
		return false, d.MustBeAbout(&in.Entry)
	}
	var last *checkpoint.Decision
	var send *checkpoint.Kept
	for i := range w.decided {
		if one := &w.decided[i]; one.Key == d.Key {
			last, send = &one.Decision, one.Send
		}
	}
	known := w.visible(d.Key)
	before, refusal = d.Again(last, &known.Entry)
	if refusal == nil {
		refusal = d.MustBeAbout(&send.Entry)
	}
	switch {
	case refusal != nil:
	case before:
		r.Before++
	default:
		r.Corrected++
		delete(w.entries, d.Key)
		w.intents[d.Key] = send.Reopened(known)
	}
	return before, refusal
}

// Adopt takes over leads, see [checkpoint.Store].
func (m *Memory) Adopt(_ context.Context, entries checkpoint.List) (r checkpoint.AdoptResult, err error) {
	var list []checkpoint.Entry
	for e, err := range entries {
		if err != nil {
			return r, err
		}
		list = append(list, e)
	}
	err = m.change("adopt", func(k *knowledge, now time.Time) error {
		w := writing{k, now}
		given := map[string]string{}
		for _, e := range list {
			if _, twice := given[e.Key]; !twice {
				given[e.Key] = ""
				if e.State != checkpoint.InDoubt && e.State != checkpoint.Rejected {
					given[e.Key] = e.LeadID
				}
			}
		}
		var wanted []checkpoint.Entry
		keys, ids := map[string]bool{}, map[string]bool{}
		for i, e := range list {
			text, _ := e.Unfit()
			if keys[e.Key] || e.LeadID != "" && e.State != checkpoint.InDoubt && ids[e.LeadID] {
				text = "its key or lead ID stands twice"
			}
			if keys[e.Key] = true; e.State != checkpoint.InDoubt {
				ids[e.LeadID] = true
			}
			if text != "" {
				return &checkpoint.ListError{Index: i, Key: e.Key, Text: text}
			}
			old, owner := w.visible(e.Key), w.owner(e.LeadID)
			taken := owner != "" && owner != e.Key && (given[owner] == "" || given[owner] == e.LeadID)
			take, refusal := r.Judge(&e, &old.Entry, taken, old.ByPeople)
			if refusal != nil {
				return refusal.At(i, e.Key)
			}
			if take {
				wanted = append(wanted, e)
			}
			if take && !checkpoint.KnownStatus(e.Status) {
				r.Unspecified++
			}
		}
		corrected := w.giveUp(wanted)
		for _, e := range wanted {
			w.adopt(e, corrected[e.Key])
		}
		return nil
	})
	return r, err
}

// giveUp takes the lead IDs from entries that a list corrects, and returns their keys.
func (w *writing) giveUp(wanted []checkpoint.Entry) map[string]bool {
	corrected := map[string]bool{}
	for _, e := range wanted {
		if old := w.entries[e.Key]; old != nil && old.LeadID != "" && e.State != checkpoint.InDoubt {
			corrected[e.Key] = true
			bare := *old
			bare.Entry = old.Bare()
			w.entries[e.Key] = w.keep(bare)
		}
	}
	return corrected
}

func (w *writing) adopt(e checkpoint.Entry, corrects bool) {
	e = e.Listed(&w.visible(e.Key).Entry, corrects, w.now)
	if e.State == checkpoint.InDoubt {
		w.intents[e.Key] = w.keep(checkpoint.Kept{Entry: e, Act: checkpoint.Adopted | checkpoint.Doubted})
		return
	}
	w.conclude(e, checkpoint.Adopted)
}

// Forget removes keys, see [checkpoint.Store].
func (m *Memory) Forget(_ context.Context, keys []string, unblock bool) (r checkpoint.ForgetResult, err error) {
	err = m.change("forget", func(k *knowledge, _ time.Time) error {
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
			if e := k.entries[key]; e != nil && e.LeadID != "" {
				leads[e.LeadID] = true
			}
			gone[key] = true
			delete(k.entries, key)
			delete(k.intents, key)
			if delete(k.blocked, key); !unblock {
				k.blocked[key] = true
			}
		}
		for key, in := range k.intents {
			k.intents[key] = in.Scrubbed(leads)
		}
		k.decided = slices.DeleteFunc(k.decided, func(d checkpoint.KeptDecision) bool { return gone[d.Key] || leads[d.LeadID] })
		for i := range k.decided {
			k.decided[i].Send = k.decided[i].Send.Scrubbed(leads)
		}
		k.found = slices.DeleteFunc(k.found, func(c checkpoint.Contradiction) bool { return gone[c.Key] || gone[c.Other] || leads[c.LeadID] })
		return nil
	})
	return r, err
}

// AcceptLoss frees rows that were held; nothing is ever missing here.
func (m *Memory) AcceptLoss(context.Context) (freed int, err error) {
	err = m.change("accept loss", func(k *knowledge, now time.Time) error {
		w := writing{k, now}
		for key, in := range k.intents {
			if in.Reason == checkpoint.ReasonIncomplete {
				w.withdraw(key)
				freed++
			}
		}
		return nil
	})
	return freed, err
}
