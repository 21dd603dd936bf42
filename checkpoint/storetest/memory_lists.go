package storetest

import (
	"context"
	"slices"
	"time"

	"leadferry/checkpoint"
)

// Resolve settles keys in doubt, see [checkpoint.Store].
func (m *Memory) Resolve(_ context.Context, ds []checkpoint.Decision) (r checkpoint.ResolveResult, err error) {
	err = m.change("resolve", func(k *knowledge, now time.Time) (err error) {
		r, err = checkpoint.Resolve(resolving{&writing{k, now}}, ds, now)
		return err
	})
	return r, err
}

// resolving is what decisions are carried out on.
type resolving struct{ *writing }

func (r resolving) Under(key string) (checkpoint.KeptKey, error) { return r.keys[key], nil }
func (r resolving) Put(key string, k checkpoint.KeptKey) error   { r.put(key, k); return nil }

func (r resolving) Decided(key string) (*checkpoint.KeptDecision, error) {
	for _, one := range slices.Backward(r.decided) {
		if one.Key == key {
			return &one, nil
		}
	}
	return nil, nil
}

func (r resolving) Note(d checkpoint.KeptDecision) error {
	r.knowledge.decided = append(r.knowledge.decided, d)
	return nil
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
	err = m.change("adopt", func(k *knowledge, now time.Time) (err error) {
		r, err = (&adoption{writing{k, now}, list, givenBy(list), map[string]bool{}, map[string]bool{}}).carryOut()
		return err
	})
	return r, err
}

// adoption is a list that is taken over.
type adoption struct {
	writing
	list  []checkpoint.Entry
	given map[string]string // the lead that the list gives each of its keys
	came  map[string]bool   // keys
	gave  map[string]bool   // lead IDs
}

func givenBy(list []checkpoint.Entry) map[string]string {
	given := map[string]string{}
	for _, e := range slices.Backward(list) { // the first one of a key counts
		if given[e.Key] = ""; e.State != checkpoint.InDoubt && e.State != checkpoint.Rejected {
			given[e.Key] = e.LeadID
		}
	}
	return given
}

// carryOut takes the list over once all of it was judged.
func (a *adoption) carryOut() (r checkpoint.AdoptResult, err error) {
	var wanted []checkpoint.Entry
	for i, e := range a.list {
		take, refusal := a.judge(&e, &r)
		if refusal != nil {
			return r, refusal.At(i, e.Key)
		}
		if take {
			wanted = append(wanted, e)
		}
	}
	for _, e := range wanted {
		k := a.keys[e.Key]
		corrects := e.State != checkpoint.InDoubt && k.Entry != nil && k.Entry.LeadID != ""
		if corrects {
			k.GiveUp(a)
			a.put(e.Key, k)
		}
		k.Adopt(a, e, a.visible(e.Key), corrects, a.now)
		a.put(e.Key, k)
	}
	return r, nil
}

// judge says whether an entry is to be taken over, or why the list is refused.
func (a *adoption) judge(e *checkpoint.Entry, r *checkpoint.AdoptResult) (take bool, refusal *checkpoint.ListError) {
	text, _ := e.Unfit()
	if a.came[e.Key] || e.LeadID != "" && e.State != checkpoint.InDoubt && a.gave[e.LeadID] {
		text = "its key or lead ID stands twice"
	}
	if a.came[e.Key] = true; e.State != checkpoint.InDoubt {
		a.gave[e.LeadID] = true
	}
	if text != "" {
		return false, &checkpoint.ListError{Text: text}
	}
	old, owner := a.visible(e.Key), a.owner(e.LeadID)
	taken := owner != "" && owner != e.Key && (a.given[owner] == "" || a.given[owner] == e.LeadID)
	if take, refusal = r.Judge(e, &old.Entry, taken, old.ByPeople); take && !checkpoint.KnownStatus(e.Status) {
		r.Unspecified++
	}
	return take, refusal
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
