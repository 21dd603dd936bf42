package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Decision is what a person found out about a key in doubt: the lead has LeadID;
// or it exists but its ID is not known; or, with neither, it was not created.
type Decision struct {
	Key, LeadID string
	Exists      bool
}

// DecisionError says why a decision, and with it the whole list, is refused.
type DecisionError struct {
	Index int // in the list, from 0
	Key   string
	Text  string
}

// Error names the decision by its place in the list, from 1.
func (e *DecisionError) Error() string { return fmt.Sprintf("decision %d: %s", e.Index+1, e.Text) }

// Resolve settles keys in doubt, all or none. A lead ID makes the key Partial
// when a link was asked for, else Created; Exists makes it Created without an
// ID; neither makes it Unknown, free to be sent. Each decision is kept with its
// time. A refusal is a *[DecisionError].
func (d *DB) Resolve(ds []Decision) error {
	err := d.alone(func(l *ledger) error {
		if err := l.review(ds); err != nil {
			return err
		}
		for _, decision := range ds {
			if err := l.decide(decision); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	return nil
}

// review refuses a list before anything is changed.
func (l *ledger) review(ds []Decision) error {
	keys, ids := make(map[string]bool, len(ds)), make(map[string]bool, len(ds))
	for i, one := range ds {
		owner, err := l.owner(one.LeadID)
		if err != nil {
			return err
		}
		switch {
		case keys[one.Key]:
			return &DecisionError{i, one.Key, "its key stands twice in the list"}
		case one.LeadID != "" && ids[one.LeadID]:
			return &DecisionError{i, one.Key, "its lead ID stands twice in the list"}
		case owner != "":
			return &DecisionError{i, one.Key, "its lead ID is known already, under this or another key"}
		case l.intents.Get([]byte(one.Key)) == nil:
			return &DecisionError{i, one.Key, "its key is not in doubt"}
		}
		keys[one.Key], ids[one.LeadID] = true, true
	}
	return nil
}

// decide carries out one decision.
func (l *ledger) decide(decision Decision) error {
	e, _, err := l.intent(decision.Key)
	if err != nil {
		return err
	}
	if err := l.keep(decision); err != nil {
		return err
	}
	if decision.LeadID == "" && !decision.Exists {
		return l.free(decision.Key)
	}
	e.State, e.LeadID, e.Status, e.Code, e.Reason, e.Updated = Created, decision.LeadID, "", 0, "", l.now
	if e.LeadID != "" && e.WantLink != "" {
		e.State = Partial
	}
	_, err = l.settle(&e)
	return err
}

// free removes the intent of key and a refusal under it, so that it can be sent.
func (l *ledger) free(key string) error {
	if err := l.intents.Delete([]byte(key)); err != nil {
		return err
	}
	below, err := l.state(key)
	if err != nil {
		return err
	}
	if below != Rejected {
		l.move(InDoubt, below)
		return nil
	}
	l.move(InDoubt, Unknown)
	return errors.Join(l.unindex(key), l.entries.Delete([]byte(key)))
}

// decided is a decision with its time.
type decided struct {
	Decision
	at time.Time
}

// keep writes a decision to the audit.
func (l *ledger) keep(decision Decision) error {
	l.decisions++
	key := binary.BigEndian.AppendUint64(nil, l.decisions)
	b := appendText(appendText(nil, decision.Key), decision.LeadID)
	exists := byte(0)
	if decision.Exists {
		exists = 1
	}
	return l.audit.Put(key, seal(appendTime(append(b, exists), l.now), 0, key))
}

func decodeDecision(key, record []byte) (d decided, err error) {
	f, err := unseal(key, record)
	if err != nil {
		return d, err
	}
	d.Decision = Decision{Key: f.text(), LeadID: f.text(), Exists: f.byte() == 1}
	d.at = f.time()
	return d, f.done()
}

// Decisions calls f with every decision that was ever made, in order, and the
// time when it was made. An error of f ends it and is returned.
func (d *DB) Decisions(f func(Decision, time.Time) error) error {
	var all []decided
	err := d.view("read decisions", func(tx *bolt.Tx) error {
		return tx.Bucket(inAudit).ForEach(func(k, v []byte) error {
			one, err := decodeDecision(k, v)
			all = append(all, one)
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := f(one.Decision, one.at); err != nil {
			return err
		}
	}
	return nil
}
