package bolt

import (
	"context"
	"errors"
	"fmt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// Resolve settles keys in doubt, all or none. A lead ID makes the key Partial
// when a link was asked for, else Created; Exists makes it Created without an
// ID; neither makes it NotMade, free to be sent. A key that was decided otherwise
// before, and that was not sent since, is corrected: it stands as if the first
// decision had not been made. Each decision is kept with its time and with the send
// that it is about. A refusal is a *[ListError]; a decision about an earlier send than
// the last one is refused too.
func (d *Store) Resolve(_ context.Context, ds []checkpoint.Decision) (r checkpoint.ResolveResult, err error) {
	err = d.alone(func(w *writing) error {
		r = checkpoint.ResolveResult{}
		resolutions, err := w.review(ds, &r)
		if err != nil {
			return err
		}
		for i := range resolutions {
			if err := w.undo(&resolutions[i]); err != nil {
				return err
			}
		}
		found := 0
		for i := range resolutions {
			v := &resolutions[i]
			if v.send.Reason == checkpoint.ReasonIncomplete && !v.Free() {
				found++
			}
			if err := w.decide(v); err != nil {
				return err
			}
		}
		return d.foundSome(w, found)
	})
	if err != nil {
		return r, fmt.Errorf("resolve: %w", err)
	}
	return r, nil
}

// resolution is a decision that is to be carried out, with the send that it is about.
type resolution struct {
	checkpoint.Decision
	send     checkpoint.Entry
	tail     records.Tail
	corrects bool // an earlier decision
	before   bool // is that decision
}

// review refuses a list before anything is changed, counts its entries and returns what
// has to be carried out.
func (w *writing) review(ds []checkpoint.Decision, r *checkpoint.ResolveResult) (todo []resolution, err error) {
	all, err := w.match(ds)
	if err != nil {
		return nil, err
	}
	leaving := make(map[string]bool) // keys whose lead ID the list takes from them
	for i := range all {
		leaving[all[i].Key] = all[i].corrects
	}
	for i := range all {
		v := &all[i]
		owner, err := w.owner(v.LeadID)
		switch {
		case err != nil:
			return nil, err
		case v.before:
			r.Before++
			continue
		case owner != "" && !leaving[owner]:
			return nil, &checkpoint.ListError{Index: i, Key: v.Key, Text: "its lead ID is known already, under this or another key", Hint: "`leadferry checkpoint export` shows under which"}
		case v.corrects:
			r.Corrected++
		default:
			r.Settled++
		}
		todo = append(todo, *v)
	}
	return todo, nil
}

// match finds for each decision of a list the send that it is about.
func (w *writing) match(ds []checkpoint.Decision) ([]resolution, error) {
	all, last := make([]resolution, len(ds)), map[string]auditLine(nil)
	var list checkpoint.DecisionList
	for i, one := range ds {
		refusal := list.Unfit(&one)
		var err error
		if refusal == nil && w.intents.Get([]byte(one.Key)) == nil && last == nil {
			last, err = w.lastDecisions()
		}
		if refusal == nil && err == nil {
			all[i], refusal, err = w.about(one, last)
		}
		if err != nil {
			return nil, err
		}
		if refusal != nil {
			return nil, refusal.At(i, one.Key)
		}
	}
	return all, nil
}

// about finds the send that a decision is about: one in doubt, or one that a person
// settled, where the key was not sent again since.
func (w *writing) about(one checkpoint.Decision, last map[string]auditLine) (v resolution, refusal *checkpoint.ListError, err error) {
	v.Decision = one
	if v.send, v.tail, err = w.intent(one.Key); err != nil {
		return v, nil, err
	}
	if v.send.State == checkpoint.Unknown {
		if refusal, err = w.revisit(&v, last); refusal != nil || err != nil {
			return v, refusal, err
		}
	}
	return v, one.MustBeAbout(&v.send), nil
}

// revisit takes up a decision that was made before.
func (w *writing) revisit(v *resolution, last map[string]auditLine) (refusal *checkpoint.ListError, err error) {
	var earlier *checkpoint.Decision
	decided, ok := last[v.Key]
	if ok {
		earlier = &decided.Decision
	}
	old, t, err := w.known(v.Key)
	if err != nil {
		return nil, err
	}
	if v.before, refusal = v.Again(earlier, &old); refusal != nil {
		return refusal, nil
	}
	if v.tail, err = w.words.Decode(v.Key, decided.send, &v.send); err != nil {
		return nil, err
	}
	v.corrects = !v.before
	v.tail.Past = w.words.AppendEvent(t.Past, old.Event(t.Act)) // what was done since
	return nil, nil
}

// undo puts a key that was decided about back in doubt.
func (w *writing) undo(v *resolution) error {
	if !v.corrects {
		return nil
	}
	old, _, err := w.known(v.Key)
	if err != nil {
		return err
	}
	return errors.Join(w.move(v.Key, old.State, checkpoint.InDoubt), w.unindex(&old), w.entries.delete(v.Key), w.putIntent(new(checkpoint.Entry), &v.send, v.tail))
}

// decide carries out one decision about a key in doubt.
func (w *writing) decide(v *resolution) error {
	send := records.Tail{Act: v.tail.Act, Past: v.tail.Past} // an intent before it stands in the past
	if err := w.note(auditLine{Decision: v.Decision, send: w.words.AppendEntry(nil, &v.send, send)}); err != nil {
		return err
	}
	e := v.Outcome(v.send, w.now)
	return w.conclude(&e, checkpoint.InDoubt, checkpoint.Decided)
}
