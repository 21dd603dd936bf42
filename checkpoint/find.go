package checkpoint

import (
	"iter"

	"leadferry/internal/rowkey"
)

// Finder is what a Store knows as of one commit, for [Find].
type Finder interface {
	// Show fills out with what look-ups show of a key; where nothing is known of it, its state is Unknown or Forgotten.
	// It uses the slice of out's Content again.
	Show(key string, out *Entry) error
	// OwnerOf is the key that has a lead, or nothing.
	OwnerOf(lead string) (key string, err error)
	// Linked is the key whose lead has an ExternalID, or is to have it, or nothing, or says that there are several.
	Linked(external string) (key string, several bool, err error)
	// Folding are known keys that fold so and are not their own fold.
	Folding(folded string) iter.Seq[string]
	// WasForgotten says whether a key that was forgotten folds so.
	WasForgotten(folded string) bool
}

// Find answers queries as [Store] says.
func Find(f Finder, qs []Query, out []Entry, how []Match) (err error) {
	l := lookUp{Finder: f}
	for i := range qs {
		if how[i], err = l.find(&qs[i], &out[i]); err != nil {
			return err
		}
		if how[i] == NoMatch && qs[i].Alike != nil {
			if *qs[i].Alike, err = l.alike(qs[i].Key); err != nil {
				return err
			}
		}
	}
	return nil
}

type lookUp struct {
	Finder
	other Entry // under another key than that of the query
}

func (l *lookUp) find(q *Query, out *Entry) (Match, error) {
	if err := l.Show(q.Key, out); err != nil {
		return NoMatch, err
	}
	owner, err := l.OwnerOf(q.LeadID)
	switch s := out.State; {
	case err != nil:
		return NoMatch, err
	case s.HasLead() && owner != "" && owner != q.Key:
		return Ambiguous, nil
	case s.HasLead(), s == InDoubt, s == Forgotten:
		return ByKey, nil
	case owner != "":
		return ByLeadID, l.Show(owner, out)
	case q.ExternalID == "":
		return NoMatch, nil
	}
	return l.byExternalID(q, out)
}

// byExternalID fills out with the one lead that is linked so, or is to be, unless the Query names another one.
func (l *lookUp) byExternalID(q *Query, out *Entry) (Match, error) {
	key, several, err := l.Linked(q.ExternalID)
	switch {
	case err != nil:
		return NoMatch, err
	case several:
		return Ambiguous, nil
	case key == "":
		return NoMatch, nil
	}
	if err := l.Show(key, &l.other); err != nil {
		return NoMatch, err
	}
	switch {
	case !l.other.State.HasLead() && l.other.State != InDoubt:
		return NoMatch, nil
	case q.LeadID != "" && l.other.LeadID != "":
		return Ambiguous, nil
	}
	return ByExternalID, l.Show(key, out)
}

// alike looks for a key that this one looks like. One that has a lead, or may have one, comes before one that was
// forgotten.
func (l *lookUp) alike(key string) (found Likeness, err error) {
	folded := rowkey.Fold(key)
	if folded == "" {
		return found, nil
	}
	if folded != key {
		if found, err = l.resembles(folded); found.State != Unknown || err != nil {
			return found, err
		}
	}
	for other := range l.Folding(folded) {
		if other == key {
			continue
		}
		if found, err = l.resembles(other); found.State != Unknown || err != nil {
			return found, err
		}
	}
	if l.WasForgotten(folded) {
		found.State = Forgotten
	}
	return found, nil
}

// resembles is a key that looks alike, if it has a lead or may have one.
func (l *lookUp) resembles(key string) (found Likeness, err error) {
	err = l.Show(key, &l.other)
	if e := &l.other; err == nil && (e.State.HasLead() || e.State == InDoubt) {
		found = Likeness{State: e.State, File: e.File, Line: e.Line}
	}
	return found, err
}
