package checkpoint

import (
	"cmp"
	"context"
	"time"

	"leadferry/internal/rowkey"
)

// Decision is what a person found out about a key in doubt: the ID of its lead, that a lead Exists, or (neither) none.
type Decision struct {
	Key, LeadID string
	Exists      bool
	Sent        time.Time // when the row was sent, to the second; zero: any send
	Run         string    // the run that sent the row; "": any run
}

// KeptDecision is a decision as it is stored in the note of its key, after the earlier decisions about that key.
type KeptDecision struct {
	Decision
	At      time.Time
	Send    *Kept // the send that the decision is about
	Against []Evidence
}

// Evidence is what was found after a decision and contradicts it.
type Evidence struct {
	Text  string // what was found, without values
	Other string // the lead that was made after all; or ""
	Found time.Time
}

// ResolveResult counts the decisions whose keys were decided about before.
type ResolveResult struct {
	Corrected int // otherwise
	Before    int // in the same way, so nothing was changed
}

// Free reports whether a decision frees its row to be sent.
func (d *Decision) Free() bool { return d.LeadID == "" && !d.Exists }

const (
	oneLeadHint = "one lead cannot belong to two rows: look both up again"
	inDoubtHint = "`leadferry checkpoint export --state in_doubt` lists what is in doubt"
	correctHint = "`leadferry checkpoint resolve` corrects the lead of a key that a person or a list gave it; " +
		"`leadferry checkpoint history KEY` shows who did"
)

// Why a person cannot decide about a row that its worker may still send, and what to do about that.
const (
	heldText = "the worker that sent it may be at work still, and its answer may come"
	HeldHint = "wait until the run has ended, or a quarter of an hour after it was killed; leadferry checkpoint " +
		"workers shows who holds what, and since when"
)

// unfit refuses a decision with an invalid lead ID, or with a key or lead ID that an earlier decision of the list has.
func (d *Decision) unfit(keys, ids map[string]bool) error {
	switch {
	case keys[d.Key]:
		return refusal("another row of the list has its key and another answer",
			"make the answers equal, or empty one of them")
	case d.LeadID != "" && !rowkey.IsLeadID(d.LeadID):
		return refusal("its lead ID is not valid", leadIDHint)
	case d.LeadID != "" && ids[d.LeadID]:
		return refusal("its lead ID is in the list twice", oneLeadHint)
	}
	keys[d.Key], ids[d.LeadID] = true, true
	return nil
}

// Outcome returns the entry that a decision makes of a send.
func (d *Decision) Outcome(send Entry, now time.Time) Entry {
	send.LeadID, send.Status, send.Code, send.Reason, send.RequestID, send.Updated = d.LeadID, "", 0, "", "", now
	switch {
	case d.Free():
		send.State = NotMade
	case d.LeadID != "" && send.WantLink != "":
		send.State = Partial
	default:
		send.State = Created
	}
	return send
}

// resolution is a decision that is to be carried out.
type resolution struct {
	KeptKey               // the Intent is the send that the decision is about
	corrects, before bool // corrects: it replaces another decision; before: it equals the earlier one
}

// Resolve settles keys in doubt, all or none. A lead ID makes the key Partial if a link was asked for, else Created.
// Exists makes it Created without an ID, neither NotMade, free to be sent. A key that has another decision, and that
// certainly was not sent since, is corrected. Each decision is stored with its time and its send. A refusal is a
// *[ListError]; a decision about an earlier send than the last one is refused, too.
func Resolve(ctx context.Context, s Store, ds []Decision) (r ResolveResult, err error) {
	info := s.Info() // not inside: a Store may hold its lock there
	err = s.Alone(ctx, func(tx Tx) (err error) { r, err = resolve(tx, ds, &info); return err })
	return r, err
}

// resolve finds what each decision is about. It takes wrong leads from all keys that are corrected before it gives a
// lead to any key, so that two keys can swap their leads.
func resolve(tx Tx, ds []Decision, info *Info) (r ResolveResult, err error) {
	keys := Map(ds, func(d Decision) string { return d.Key })
	leads := Map(ds, func(d Decision) string { return d.LeadID })
	if err := tx.Load(keys, leads); err != nil {
		return r, err
	}
	all, seen, given := make([]resolution, len(ds)), make(map[string]bool), make(map[string]bool)
	for i := range ds {
		err := ds[i].unfit(seen, given)
		if err == nil {
			all[i], err = findSend(tx, &ds[i], info)
		}
		if err == nil && all[i].corrects {
			err = tx.Put(ds[i].Key, all[i].KeptKey)
		}
		if err != nil {
			return r, inList(err, i, ds[i].Key)
		}
	}
	for i := range ds {
		if err := r.settle(tx, &ds[i], &all[i]); err != nil {
			return r, inList(err, i, ds[i].Key)
		}
	}
	return r, nil
}

// findSend finds the send of a decision: in doubt, or settled by a person or a list and not sent again since.
func findSend(tx Tx, d *Decision, info *Info) (one resolution, err error) {
	if tx.OtherMaySend(d.Key) {
		return one, refusal(heldText, HeldHint)
	}
	k, known, err := tx.Under(d.Key)
	if err != nil {
		return one, err
	}
	last, err := LastDecision(tx, d.Key)
	if err != nil {
		return one, err
	}
	if last == nil && d.LeadID != "" && known.fromList() { // a list is corrected like a person's decision
		send := Entry{
			Key: d.Key, State: InDoubt, WantLink: cmp.Or(known.WantLink, known.ExternalID), Run: known.Run,
			Updated: known.Updated,
		}
		last = &KeptDecision{Decision: Decision{Key: d.Key, LeadID: known.LeadID}, Send: &Kept{Entry: send}}
	}
	switch {
	case k.Intent != nil && d.Sent.IsZero() && d.Run == "" && (last != nil || k.Intent.Prior != nil):
		return one, refusal("the row was in doubt before and was sent again, and the list does not say which send it "+
			"is about (updated_at)", "export the list anew: "+inDoubtHint)
	case k.Intent != nil:
		one.KeptKey = k
	case last == nil:
		return one, refusal("its key is not in doubt", inDoubtHint)
	case last.Free() && known.State != NotMade, !last.Free() && !known.State.HasLead(),
		d.Free() && !last.Free() && info.Incomplete && known.Seq <= info.Since:
		return one, refusal("its key was settled before and was, or may have been, sent again since", inDoubtHint)
	default:
		one.before = last.LeadID == d.LeadID && last.Exists == d.Exists && known.LeadID == d.LeadID
		one.corrects = !one.before
		send := *last.Send // in doubt again
		send.Past = addPast(known.Past, known.Event(known.Act))
		one.Intent = &send
	}
	if !one.before && (!d.Sent.IsZero() && d.Sent.Unix() != one.Intent.Updated.Unix() ||
		d.Run != "" && d.Run != one.Intent.Run) {
		return one, refusal("the row was sent or held again after this list was written", inDoubtHint)
	}
	return one, nil
}

// settle counts a decision and carries it out, unless its lead is known already.
func (r *ResolveResult) settle(tx Tx, d *Decision, one *resolution) error {
	owner, err := tx.Owner(d.LeadID, d.Key)
	switch {
	case err != nil:
		return err
	case one.before:
		r.Before++
		return nil
	case owner != "":
		return refusal("its lead ID is known already, under this or another key",
			"`leadferry checkpoint export` shows under which; "+oneLeadHint)
	case one.corrects:
		r.Corrected++
	}
	before, err := decisionsAbout(tx, d.Key)
	if err != nil {
		return err
	}
	send := *one.Intent
	send.Prior = nil // the history has it
	kept := KeptDecision{Decision: *d, At: tx.Now().UTC(), Send: &send}
	if err := putDecisions(tx, d.Key, append(before, kept)); err != nil {
		return err
	}
	out := d.Outcome(send.Entry, tx.Now())
	one.replace(tx, &out, Decided)
	return tx.Put(d.Key, one.KeptKey)
}

// What contradicts a decision: the answer of a worker that seemed to have ended.
const (
	MadeAfterAll    = "the answer of the service came later: it has made the lead"
	RefusedAfterAll = "the answer of the service came later: it has refused the row"
)
