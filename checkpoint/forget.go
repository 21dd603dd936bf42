package checkpoint

import (
	"context"
	"errors"
	"maps"
	"slices"

	"leadferry/internal/rowkey"
)

// ForgetResult counts forgotten keys by the state that they had.
type ForgetResult [Forgotten + 1]int

// Forget removes every trace of keys, all or none: entries, intents, index records, decisions about them, and their
// lead IDs wherever they are. A keyed hash of each key stays, so that no later file makes the lead again: such a key is
// in state Forgotten. Unknown keys get a hash, too, since the next file may bring them. With unblock no hash stays, and
// the key is new again. A refusal is a *[ListError].
func Forget(ctx context.Context, s Store, keys []string, unblock bool) (r ForgetResult, err error) {
	err = s.Alone(ctx, func(tx Tx) error {
		r = ForgetResult{}
		gone, leads, err := r.judge(tx, keys)
		if err != nil {
			return err
		}
		return forget(tx, s.Digests(), gone, leads, unblock)
	})
	return r, err
}

// judge counts keys by what is known of them, and returns them and their leads.
func (r *ForgetResult) judge(tx Tx, keys []string) (gone, leads map[string]bool, err error) {
	if err := tx.Load(keys, nil); err != nil {
		return nil, nil, err
	}
	gone, leads = map[string]bool{}, map[string]bool{}
	for i, key := range keys {
		switch {
		case gone[key]:
			continue
		case !ValidKey(key):
			return nil, nil, inList(refusal("its "+ErrKey.Error(), ""), i, key)
		case tx.OtherMaySend(key): // its worker may still send it: if it were unblocked, it would be sent twice
			return nil, nil, inList(refusal(heldText, HeldHint), i, key)
		}
		gone[key] = true
		k, shown, err := tx.Under(key)
		if err != nil {
			return nil, nil, err
		}
		r[shown.State]++
		if k.Entry != nil && k.Entry.LeadID != "" {
			leads[k.Entry.LeadID] = true
		}
	}
	return gone, leads, nil
}

// forget removes keys, the IDs of their leads where other keys in doubt hold them, and decisions about them.
func forget(tx Tx, d *Digester, gone, leads map[string]bool, unblock bool) error {
	keys := slices.Sorted(maps.Keys(gone))
	if err := tx.Erase(keys); err != nil {
		return err
	}
	for _, key := range keys {
		if unblock {
			break
		}
		b := KeptBlock{Hash: d.Blocked(key), At: tx.Now()}
		if folded := rowkey.Fold(key); folded != key && folded != "" {
			b.Fold = d.Blocked(folded)
		}
		if err := tx.Block(b); err != nil {
			return err
		}
	}
	if len(leads) > 0 {
		err := eachDoubt(tx, func(k KeptKey) KeptKey {
			k.Intent = k.Intent.Scrubbed(leads)
			return k
		})
		if err != nil {
			return err
		}
	}
	return forgetDecisions(tx, gone, leads)
}

// eachDoubt calls f with what is stored under each key in doubt, and stores what it returns there.
func eachDoubt(tx Tx, f func(KeptKey) KeptKey) error {
	for after := ""; ; {
		keys, err := tx.InDoubt(after)
		if err == nil {
			err = tx.Load(keys, nil)
		}
		for _, key := range keys {
			var was KeptKey
			if err == nil {
				was, _, err = tx.Under(key)
			}
			if err != nil {
				return err
			}
			if is := f(was); is != was {
				err = tx.Put(key, is)
			}
			after = key
		}
		if err != nil || len(keys) == 0 {
			return err
		}
	}
}

// AcceptLoss makes an incomplete or half adopted checkpoint complete. freed counts held rows that may be sent now.
func AcceptLoss(ctx context.Context, s Store) (freed int, err error) {
	err = s.Alone(ctx, func(tx Tx) error {
		freed = 0
		err := eachDoubt(tx, func(k KeptKey) KeptKey {
			if k.Intent.Reason != ReasonIncomplete {
				return k
			}
			held := k.Intent.Entry
			if k.Intent = k.Intent.Prior; k.Intent != nil { // in doubt as before
				return k
			}
			if freed++; k.Entry == nil { // results still name it, see Info.Counted
				out := new(Decision).Outcome(held, tx.Now())
				k.replace(tx, &out, Decided)
			}
			return k
		})
		if err != nil {
			return err
		}
		return errors.Join(changeLineage(tx, func(l *Lineage) { l.Adopting = nil }), tx.Lack(""))
	})
	return freed, err
}
