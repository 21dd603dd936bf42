package checkpoint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// AdoptResult counts what became of the entries of a list.
type AdoptResult struct {
	Leads     int // taken over
	Corrected int // of these, had another lead by the word of people
	InDoubt   int // taken over as in doubt
	Known     int // known already, as the list says or better; left as they are
	Rejected  int // left out: refused rows have no lead
	Forgotten int // left out: their keys were forgotten

	Unspecified int // taken over with a status that the specification does not name
}

// ForgetResult counts forgotten keys by what was known of them.
type ForgetResult struct {
	Leads    int // had a lead
	InDoubt  int // nobody will be reminded of them any more
	Rejected int
	Unknown  int
	Already  int // were forgotten before
}

// Count counts a forgotten key of which this was known.
func (r *ForgetResult) Count(known State) {
	switch known {
	case Created, Partial:
		r.Leads++
	case InDoubt:
		r.InDoubt++
	case Rejected:
		r.Rejected++
	case Forgotten:
		r.Already++
	default:
		r.Unknown++
	}
}

// ListError says why one entry of a list, and with it the whole list, is refused.
type ListError struct {
	Index      int // in the list, from 0
	Key        string
	Text, Hint string
}

// Error names the entry by its place in the list, from 1.
func (e *ListError) Error() string { return fmt.Sprintf("entry %d: %s", e.Index+1, e.Text) }

// At is a refusal with the place of its entry, and the entry's key.
func (e *ListError) At(index int, key string) error {
	e.Index, e.Key = index, key
	return e
}

// ListFailure is an error that a list yielded, or of one that changed meanwhile.
type ListFailure struct{ Err error }

// Error says what the list yielded.
func (e *ListFailure) Error() string { return e.Err.Error() }

// Unwrap returns what the list yielded.
func (e *ListFailure) Unwrap() error { return e.Err }

// IsOfList reports whether an error is of a list that was handed over, and not of the Store: nothing was changed, and the Store
// goes on.
func IsOfList(err error) bool {
	return errors.As(err, new(*ListError)) || errors.As(err, new(*ListFailure))
}

// mostText is how many bytes the texts of an entry of a list may have together.
const mostText = 1 << 20

// leadIDHint says what a lead ID is.
const leadIDHint = "a lead ID has letters, digits, dots, dashes and underscores, 128 at most"

// ValidKey says whether a key can be kept.
func ValidKey(key string) bool { return len(key) > 0 && len(key) <= MaxKey }

// validLeadID says whether an ID can be one of a lead: it becomes part of a path.
func validLeadID(id string) bool {
	return len(id) <= 128 && strings.Trim(id, ".") != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '.' && r != '_' && r != '-'
	})
}

// Unfit says what is wrong with an entry of a list by itself, or nothing.
func (e *Entry) Unfit() (text, hint string) {
	switch {
	case !ValidKey(e.Key):
		return "its " + ErrKey.Error(), ""
	case e.State > InDoubt:
		return "its " + ErrState.Error(), ""
	case e.LeadID == "" && (e.State == Unknown || e.State == Partial):
		return "its lead ID is missing", "leave out rows that have no lead"
	case e.LeadID != "" && !validLeadID(e.LeadID):
		return "its lead ID is none", leadIDHint
	case len(e.Organization)+len(e.Location)+len(e.ExternalID)+len(e.WantLink)+len(e.Locator)+len(e.RequestID)+len(e.File)+len(e.Run)+len(e.Reason) > mostText:
		return "its texts are longer than 1 MiB together", "its location or another of its texts is none"
	}
	return "", ""
}

// completed is an entry whose lead ID was not known, with what a list says of it.
func (e Entry) completed(by *Entry) Entry {
	e.LeadID, e.State = by.LeadID, Created
	e.ExternalID, e.Status = cmp.Or(e.ExternalID, by.ExternalID), cmp.Or(e.Status, by.Status)
	e.Organization, e.Location = cmp.Or(e.Organization, by.Organization), cmp.Or(e.Location, by.Location)
	if e.WantLink != "" && e.ExternalID != e.WantLink {
		e.State = Partial
	}
	return e
}

// Adoption is a list of leads that is to be taken over, of which is known what stands in it twice. It keeps 40 bytes of memory
// an entry.
type Adoption struct {
	list    List
	digests *Digester
	rows    []adopting
	order   []uint32  // places in rows, in the order of keys' digests
	twice   ListError // of the first entry whose key or lead ID stands before it already
}

// adopting is what is kept of an entry of the list.
type adopting struct {
	key, lead Digest // lead is zero where the entry gives none
	stays     bool   // it takes no lead ID from its key
}

// ReadAdoption goes through a list to its end. What the list yields as an error is a *[ListFailure].
func ReadAdoption(list List, d *Digester) (*Adoption, error) {
	a := &Adoption{list: list, digests: d}
	for e, err := range list {
		if err != nil {
			return nil, &ListFailure{err}
		}
		a.order = append(a.order, uint32(len(a.rows)))
		a.rows = append(a.rows, a.row(&e))
	}
	a.twice.Index = len(a.rows)
	a.findTwice(func(row *adopting) Digest { return row.lead }, "its lead ID stands in row %d already", "one lead cannot belong to two rows: look both up again")
	a.findTwice(func(row *adopting) Digest { return row.key }, "its key stands in row %d already", "keep one of them")
	return a, nil
}

// Len is how many entries the list has.
func (a *Adoption) Len() int { return len(a.rows) }

func (a *Adoption) row(e *Entry) adopting {
	row := adopting{key: a.digests.Sum([]byte(e.Key))}
	if e.LeadID != "" && e.State != InDoubt {
		row.lead = a.digests.Sum([]byte(e.LeadID))
	}
	row.stays = row.lead == (Digest{}) || e.State == Rejected
	return row
}

// findTwice orders the rows by one of their digests, and looks for one that another row has.
func (a *Adoption) findTwice(digest func(*adopting) Digest, text, hint string) {
	slices.SortFunc(a.order, func(x, y uint32) int {
		dx, dy := digest(&a.rows[x]), digest(&a.rows[y])
		return cmp.Or(bytes.Compare(dx[:], dy[:]), cmp.Compare(x, y))
	})
	first := uint32(0)
	for i, at := range a.order {
		one := digest(&a.rows[at])
		if i == 0 || one != digest(&a.rows[first]) {
			first = at
		}
		if at != first && one != (Digest{}) && int(at) <= a.twice.Index {
			a.twice = ListError{Index: int(at), Text: fmt.Sprintf(text, first+1), Hint: hint}
		}
	}
}

// keeps says whether the list gives a key no lead ID, or this one, so that its lead stays.
func (a *Adoption) keeps(key, lead string) bool {
	at, ok := slices.BinarySearchFunc(a.order, a.digests.Sum([]byte(key)), func(at uint32, key Digest) int { return bytes.Compare(a.rows[at].key[:], key[:]) })
	if !ok {
		return true
	}
	row := &a.rows[a.order[at]] // the first one of the key
	return row.stays || row.lead == a.digests.Sum([]byte(lead))
}

var errListChanged = errors.New("the list is not the same any more: something else writes to it")

// Each goes through the list once more. An error of f ends it and is returned as it is.
func (a *Adoption) Each(f func(i int, e *Entry) error) error {
	i := 0
	for e, err := range a.list {
		if err != nil {
			return &ListFailure{err}
		}
		if i == len(a.rows) || a.row(&e) != a.rows[i] {
			return &ListFailure{errListChanged}
		}
		if err := f(i, &e); err != nil {
			return err
		}
		i++
	}
	if i < len(a.rows) {
		return &ListFailure{errListChanged}
	}
	return nil
}

// Judge says whether an entry of the list, at this place, is to be taken over, and counts it. old is what is known of its key,
// and owner the key under which its lead stands, or nothing. A refusal, of the whole list, is a *[ListError].
func (a *Adoption) Judge(i int, e *Entry, old *Kept, owner string, r *AdoptResult) (take bool, err error) {
	text, hint := e.Unfit()
	if text == "" && i == a.twice.Index {
		text, hint = a.twice.Text, a.twice.Hint
	}
	if text != "" {
		return false, &ListError{Index: i, Key: e.Key, Text: text, Hint: hint}
	}
	take, refusal := r.judge(e, old, owner != "" && owner != e.Key && a.keeps(owner, e.LeadID))
	if refusal != nil {
		return false, refusal.At(i, e.Key)
	}
	if take && !KnownStatus(e.Status) {
		r.Unspecified++
	}
	return take, nil
}

// judge is [Adoption.Judge]; taken says that the lead is another key's and stays so.
func (r *AdoptResult) judge(e *Entry, old *Kept, taken bool) (take bool, refusal *ListError) {
	switch {
	case old.State == Forgotten:
		r.Forgotten++
	case e.State == Rejected:
		r.Rejected++
	case e.State != InDoubt && taken:
		return false, &ListError{Text: "its lead ID belongs to another key"}
	case e.State == InDoubt && (old.State.HasLead() || old.State == InDoubt):
		r.Known++
	case e.State == InDoubt:
		r.InDoubt++
		return true, nil
	case old.State == InDoubt && old.Reason != ReasonIncomplete:
		return false, &ListError{Text: "its key is in doubt", Hint: "`leadferry checkpoint resolve` settles it"}
	case !old.State.HasLead() || old.LeadID == "" && e.LeadID != "":
		r.Leads++
		return true, nil
	case e.LeadID == "" || old.LeadID == e.LeadID:
		r.Known++
	case !old.byPeople():
		return false, &ListError{Text: "its key has another lead ID already, which the service itself gave", Hint: "`leadferry checkpoint history KEY` shows when"}
	default:
		r.Leads++
		r.Corrected++
		return true, nil
	}
	return false, nil
}
