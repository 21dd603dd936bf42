package checkpoint

import (
	"fmt"
	"strings"
)

// Decision is what a person found out about a key in doubt: the lead has LeadID;
// or it exists but its ID is not known; or, with neither, it was not created.
type Decision struct {
	Key, LeadID string
	Exists      bool
}

// ListError says why one entry of a list, and with it the whole list, is refused.
type ListError struct {
	Index      int // in the list, from 0
	Key        string
	Text, Hint string
}

// Error names the entry by its place in the list, from 1.
func (e *ListError) Error() string { return fmt.Sprintf("entry %d: %s", e.Index+1, e.Text) }

// Resolve settles keys in doubt, all or none. A lead ID makes the key Partial
// when a link was asked for, else Created; Exists makes it Created without an
// ID; neither makes it NotMade, free to be sent. Each decision is kept with its
// time. A refusal is a *[ListError].
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
	const hint = "`leadferry checkpoint export --state in_doubt` lists what is in doubt"
	keys, ids := make(map[string]bool, len(ds)), make(map[string]bool, len(ds))
	for i, one := range ds {
		owner, err := l.owner(one.LeadID)
		if err != nil {
			return err
		}
		switch {
		case keys[one.Key]:
			return &ListError{i, one.Key, "its key stands twice in the list", ""}
		case one.LeadID != "" && !validID(one.LeadID):
			return &ListError{i, one.Key, "its lead ID is none", idHint}
		case one.LeadID != "" && ids[one.LeadID]:
			return &ListError{i, one.Key, "its lead ID stands twice in the list", ""}
		case owner != "":
			return &ListError{i, one.Key, "its lead ID is known already, under this or another key", hint}
		case l.intents.Get([]byte(one.Key)) == nil:
			return &ListError{i, one.Key, "its key is not in doubt", hint}
		}
		keys[one.Key], ids[one.LeadID] = true, true
	}
	return nil
}

const idHint = "a lead ID has letters, digits, dots, dashes and underscores, 128 at most"

// validID says whether an ID can be one of a lead: it becomes part of a path.
func validID(id string) bool {
	return len(id) <= 128 && strings.Trim(id, ".") != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '.' && r != '_' && r != '-'
	})
}

// decide carries out one decision.
func (l *ledger) decide(decision Decision) error {
	e, _, err := l.intent(decision.Key)
	if err != nil {
		return err
	}
	if err := l.note(record{Decision: decision}); err != nil {
		return err
	}
	e.LeadID, e.Status, e.Code, e.Reason, e.Updated = decision.LeadID, "", 0, "", l.now
	switch {
	case decision.LeadID == "" && !decision.Exists:
		e.State = NotMade
	case e.LeadID != "" && e.WantLink != "":
		e.State = Partial
	default:
		e.State = Created
	}
	return l.conclude(&e, InDoubt, Decided)
}
