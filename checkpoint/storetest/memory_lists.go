package storetest

import (
	"context"
	"slices"
	"time"

	"leadferry/checkpoint"
)

// refused is why one entry of a list, and with it the list, is.
func refused(i int, key, text string) error {
	return &checkpoint.ListError{Index: i, Key: key, Text: text}
}

// Resolve settles keys in doubt, see [checkpoint.Store].
func (m *Memory) Resolve(_ context.Context, ds []checkpoint.Decision) (r checkpoint.ResolveResult, err error) {
	err = m.change("resolve", func(k *knowledge, now time.Time) error {
		w, keys, ids, before := writing{k, now}, map[string]bool{}, map[string]bool{}, map[int]bool{}
		for i, one := range ds {
			if keys[one.Key] || one.LeadID != "" && (!checkpoint.ValidLeadID(one.LeadID) || ids[one.LeadID]) {
				return refused(i, one.Key, "it stands twice, or its lead ID is none")
			}
			keys[one.Key], ids[one.LeadID] = true, true
			is, text := w.reopen(&one, &r)
			if text != "" {
				return refused(i, one.Key, text)
			}
			before[i] = is
		}
		for i, one := range ds {
			if !before[i] && w.owner(one.LeadID) != "" {
				return refused(i, one.Key, "its lead ID is known already")
			}
		}
		for i, one := range ds {
			if before[i] {
				continue
			}
			send := *w.intents[one.Key]
			send.prior = nil
			w.decided = append(w.decided, decided{one, now, &send})
			w.conclude(one.Outcome(send.Entry, now), checkpoint.Decided)
		}
		return nil
	})
	return r, err
}

// reopen puts a key that was decided otherwise back in doubt; before says that it was
// decided so already. text says why nothing can be decided about it.
func (w *writing) reopen(d *checkpoint.Decision, r *checkpoint.ResolveResult) (before bool, text string) {
	in := w.intents[d.Key]
	if in != nil {
		r.Settled++
	} else {
		at := len(w.decided) - 1
		for at >= 0 && w.decided[at].Key != d.Key {
			at--
		}
		known := w.visible(d.Key)
		if at < 0 {
			return false, "its key is not in doubt"
		}
		last := w.decided[at]
		if free := last.LeadID == "" && !last.Exists; free && known.State != checkpoint.NotMade || !free && !known.State.HasLead() {
			return false, "its key was sent again since"
		}
		if last.LeadID == d.LeadID && last.Exists == d.Exists && known.LeadID == d.LeadID {
			r.Before++
			before = true
		} else {
			r.Corrected++
		}
		again := *last.send
		again.past = append(slices.Clone(known.past), known.Event(known.act))
		in = &again
	}
	if !d.About(&in.Entry) {
		return false, "the row was sent again since this list was written"
	}
	if !before && w.intents[d.Key] == nil {
		delete(w.entries, d.Key)
		w.intents[d.Key] = in
	}
	return before, ""
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
			take := false
			if text == "" {
				take, text = w.judge(&e, given, &r)
			}
			if text != "" {
				return refused(i, e.Key, text)
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

// judge says whether an entry of a list is to be taken, or why the list is refused.
func (w *writing) judge(e *checkpoint.Entry, given map[string]string, r *checkpoint.AdoptResult) (take bool, refused string) {
	old, owner := w.visible(e.Key), w.owner(e.LeadID)
	switch {
	case old.State == checkpoint.Forgotten:
		r.Forgotten++
	case e.State == checkpoint.Rejected:
		r.Rejected++
	case e.State != checkpoint.InDoubt && owner != "" && owner != e.Key && (given[owner] == "" || given[owner] == e.LeadID):
		return false, "its lead ID belongs to another key"
	case e.State == checkpoint.InDoubt && (old.State.HasLead() || old.State == checkpoint.InDoubt):
		r.Known++
	case e.State == checkpoint.InDoubt:
		r.InDoubt++
		return true, ""
	case old.State == checkpoint.InDoubt && old.Reason != checkpoint.ReasonIncomplete:
		return false, "its key is in doubt"
	case !old.State.HasLead() || old.LeadID == "" && e.LeadID != "":
		r.Leads++
		return true, ""
	case e.LeadID == "" || old.LeadID == e.LeadID:
		r.Known++
	case !old.byPeople():
		return false, "its key has another lead ID already, which the service itself gave"
	default:
		r.Leads++
		r.Corrected++
		return true, ""
	}
	return false, ""
}

// byPeople says whether the lead ID of an entry is the word of people.
func (r *record) byPeople() bool {
	const ofPeople = checkpoint.Adopted | checkpoint.Decided
	for _, ev := range slices.Backward(append(slices.Clone(r.past), r.Event(r.act))) {
		if ev.Act&(checkpoint.Made|ofPeople) != 0 {
			return ev.Act&ofPeople != 0
		}
	}
	return false
}

// giveUp takes the lead IDs from entries that a list corrects, and returns their keys.
func (w *writing) giveUp(wanted []checkpoint.Entry) map[string]bool {
	corrected := map[string]bool{}
	for _, e := range wanted {
		if old := w.entries[e.Key]; old != nil && old.LeadID != "" && e.State != checkpoint.InDoubt {
			corrected[e.Key] = true
			bare := *old
			bare.Entry = old.Bare()
			w.entries[e.Key] = w.stamped(bare)
		}
	}
	return corrected
}

func (w *writing) adopt(e checkpoint.Entry, corrects bool) {
	e.Digest, e.Content = checkpoint.Digest{}, nil
	old := w.visible(e.Key)
	if e.State == checkpoint.InDoubt {
		if e.Reason == "" {
			e.Reason = checkpoint.ReasonAdopted
		}
		w.intents[e.Key] = w.stamped(record{Entry: e, act: checkpoint.Adopted | checkpoint.Doubted})
		return
	}
	if old.State.HasLead() { // its lead ID alone was not known
		before := old.Entry
		if corrects {
			before.Status, before.Code = "", 0 // of the other lead
		}
		e = before.Completed(&e)
	}
	if e.State == checkpoint.Unknown {
		e.State = checkpoint.Created
	}
	e.Updated = w.now
	w.conclude(e, checkpoint.Adopted)
}

// Forget removes keys, see [checkpoint.Store].
func (m *Memory) Forget(_ context.Context, keys []string, unblock bool) (r checkpoint.ForgetResult, err error) {
	err = m.change("forget", func(k *knowledge, _ time.Time) error {
		m.used = true
		gone, leads := map[string]bool{}, map[string]bool{}
		for i, key := range keys {
			if !checkpoint.ValidKey(key) {
				return refused(i, key, "its "+checkpoint.ErrKey.Error())
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
			k.intents[key] = in.scrubbed(leads)
		}
		k.decided = slices.DeleteFunc(k.decided, func(d decided) bool { return gone[d.Key] || leads[d.LeadID] })
		for i := range k.decided {
			k.decided[i].send = k.decided[i].send.scrubbed(leads)
		}
		k.found = slices.DeleteFunc(k.found, func(c checkpoint.Contradiction) bool { return gone[c.Key] || gone[c.Other] || leads[c.LeadID] })
		return nil
	})
	return r, err
}

// scrubbed is a record without the ID of a lead that was forgotten.
func (r *record) scrubbed(leads map[string]bool) *record {
	clean := *r
	if leads[r.LeadID] {
		clean.LeadID = ""
	}
	if r.prior != nil {
		clean.prior = r.prior.scrubbed(leads)
	}
	return &clean
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
