package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// adoptingKey stands in the file while a list is taken over by several commits: until it is
// whole, the file is incomplete.
var adoptingKey = []byte("adopting")

func adoptingMark() []byte { return records.Seal(nil, 0, adoptingKey) }

// adopted is how many entries of a list one commit takes.
const adopted = 1 << 11

// Adopt takes over leads that exist on the service, see [checkpoint.Store]. A long list takes
// several commits: after a kill in their midst the checkpoint is incomplete until the same
// list is adopted again. It takes 40 bytes of memory an entry, beside what one commit holds,
// and about 20 µs.
func (d *Store) Adopt(_ context.Context, list checkpoint.List) (r checkpoint.AdoptResult, err error) {
	a := &adoption{store: d, list: list, digests: d.digests, corrected: make(map[string]bool)}
	if err := a.read(); err != nil {
		return r, fmt.Errorf("adopt: %w", err)
	}
	err = d.exclusively(func() error {
		err := d.transact("other", func(w *writing) error {
			if r, err = a.examine(w); err != nil {
				return err
			}
			if err := a.giveUp(w); err != nil || a.wanted > adopted {
				return errors.Join(err, w.meta.Put(adoptingKey, adoptingMark()))
			}
			return a.inParts(func(part []checkpoint.Entry, _ bool) error { return a.write(w, part, true) })
		})
		begun := err == nil && a.wanted > adopted
		if begun {
			err = a.inParts(func(part []checkpoint.Entry, last bool) error {
				return d.transact("other", func(w *writing) error { return a.write(w, part, last) })
			})
		}
		switch {
		case err == nil && d.lacks().adopting:
			d.missing.Store(nil)
		case err != nil && begun && !d.lacks().some:
			d.missing.Store(&lacking{some: true, since: d.tally.Load().seq, adopting: true})
		}
		return err
	})
	if err != nil {
		return r, fmt.Errorf("adopt: %w", err)
	}
	return r, nil
}

type adoption struct {
	store     *Store
	list      checkpoint.List
	digests   *checkpoint.Digester
	rows      []adopting
	order     []uint32 // places in rows, in the order of keys' digests
	first     refusal  // of the first entry whose key or lead ID stands before it already
	take      []bool   // by place in the list: to be written
	wanted    int      // how many
	corrected map[string]bool
}

// adopting is what is kept of an entry of the list.
type adopting struct {
	key, lead checkpoint.Digest // lead is zero where the entry gives none
	stays     bool              // it takes no lead ID from its key
}

type refusal struct {
	at   int
	text string
}

// listFailure is an error of the list, not of the file.
type listFailure struct{ error }

// Unwrap returns what the list yielded.
func (f *listFailure) Unwrap() error { return f.error }

var errListChanged = errors.New("the list is not the same any more: something else writes to it")

// read goes through the list for what stands in it twice.
func (a *adoption) read() error {
	for e, err := range a.list {
		if err != nil {
			return &listFailure{err}
		}
		a.order = append(a.order, uint32(len(a.rows)))
		a.rows = append(a.rows, a.row(&e))
	}
	a.first.at = len(a.rows)
	a.findTwice(func(row *adopting) checkpoint.Digest { return row.lead }, "its lead ID stands in row %d already")
	a.findTwice(func(row *adopting) checkpoint.Digest { return row.key }, "its key stands in row %d already")
	return nil
}

func (a *adoption) row(e *checkpoint.Entry) adopting {
	row := adopting{key: a.digests.Sum([]byte(e.Key))}
	if e.LeadID != "" && e.State != checkpoint.InDoubt {
		row.lead = a.digests.Sum([]byte(e.LeadID))
	}
	row.stays = row.lead == (checkpoint.Digest{}) || e.State == checkpoint.Rejected
	return row
}

// findTwice orders the rows by one of their digests, and looks for one that another row has.
func (a *adoption) findTwice(digest func(*adopting) checkpoint.Digest, text string) {
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
		if at != first && one != (checkpoint.Digest{}) && int(at) <= a.first.at {
			a.first = refusal{int(at), fmt.Sprintf(text, first+1)}
		}
	}
}

// keeps says whether the list gives a key no lead ID, or this one, so that its lead stays.
func (a *adoption) keeps(key, lead string) bool {
	at, ok := slices.BinarySearchFunc(a.order, a.digests.Sum([]byte(key)), func(at uint32, key checkpoint.Digest) int { return bytes.Compare(a.rows[at].key[:], key[:]) })
	if !ok {
		return true
	}
	row := &a.rows[a.order[at]] // the first one of the key
	return row.stays || row.lead == a.digests.Sum([]byte(lead))
}

// each goes through the list once more.
func (a *adoption) each(f func(i int, e *checkpoint.Entry) error) error {
	i := 0
	for e, err := range a.list {
		if err != nil {
			return &listFailure{err}
		}
		if i == len(a.rows) || a.row(&e) != a.rows[i] {
			return &listFailure{errListChanged}
		}
		if err := f(i, &e); err != nil {
			return err
		}
		i++
	}
	if i < len(a.rows) {
		return &listFailure{errListChanged}
	}
	return nil
}

// inParts hands out the entries that are to be written, so many at a time, in the order of
// their keys; the last part may be empty.
func (a *adoption) inParts(f func(part []checkpoint.Entry, last bool) error) error {
	var part []checkpoint.Entry
	err := a.each(func(i int, e *checkpoint.Entry) error {
		if !a.take[i] {
			return nil
		}
		if len(part) == adopted {
			if err := f(part, false); err != nil {
				return err
			}
			part = part[:0]
		}
		part = append(part, *e)
		return nil
	})
	if err != nil {
		return err
	}
	return f(part, true)
}

// write takes entries over, in the order of their keys, which costs bbolt least.
func (a *adoption) write(w *writing, part []checkpoint.Entry, last bool) error {
	slices.SortFunc(part, func(x, y checkpoint.Entry) int { return cmp.Compare(x.Key, y.Key) })
	unknown := 0
	for _, e := range part {
		was, err := w.adopt(e, a.corrected[e.Key])
		if err != nil {
			return err
		}
		if !was.HasLead() {
			unknown++
		}
	}
	if err := a.store.foundSome(w, unknown); err != nil {
		return err
	}
	if last {
		return w.meta.Delete(adoptingKey)
	}
	return w.meta.Put(adoptingKey, adoptingMark())
}

// examine refuses a list before anything is changed, counts its entries and finds those that
// have to be written.
func (a *adoption) examine(w *writing) (r checkpoint.AdoptResult, err error) {
	a.take, a.wanted = make([]bool, len(a.rows)), 0
	err = a.each(func(i int, e *checkpoint.Entry) error {
		text, hint := e.Unfit()
		if text == "" && i == a.first.at {
			text = a.first.text
		}
		if text != "" {
			return &checkpoint.ListError{Index: i, Key: e.Key, Text: text, Hint: hint}
		}
		take, corrects, err := w.judge(e, a.keeps, &r)
		if refused := (*checkpoint.ListError)(nil); errors.As(err, &refused) {
			refused.Index, refused.Key = i, e.Key
		}
		if err != nil || !take {
			return err
		}
		a.take[i] = true
		a.wanted++
		if corrects {
			a.corrected[e.Key] = true
		}
		if !checkpoint.KnownStatus(e.Status) {
			r.Unspecified++
		}
		return nil
	})
	return r, err
}

// judge compares an entry with what is known and says whether it is to be taken, and whether
// it corrects a lead ID; keeps says whether the list leaves a lead to a key.
func (w *writing) judge(e *checkpoint.Entry, keeps func(key, lead string) bool, r *checkpoint.AdoptResult) (take, corrects bool, err error) {
	k, err := w.under(e.Key)
	if err != nil {
		return false, false, err
	}
	owner, old := "", w.shown(e.Key, &k)
	if e.State != checkpoint.InDoubt {
		if owner, err = w.Owner(e.LeadID, e.Key); err != nil {
			return false, false, err
		}
	}
	taken := owner != "" && owner != e.Key && keeps(owner, e.LeadID)
	take, refusal := r.Judge(e, &old.Entry, taken, old.ByPeople)
	if refusal != nil {
		return false, false, refusal
	}
	return take, take && e.State != checkpoint.InDoubt && entryOf(k.Entry).LeadID != "", nil
}

// giveUp takes the lead IDs, and what was known of these leads, from entries that the list
// corrects. Only then may others have these leads.
func (a *adoption) giveUp(w *writing) error {
	for _, key := range slices.Sorted(maps.Keys(a.corrected)) {
		was, err := w.under(key)
		if err != nil {
			return err
		}
		is := was
		is.GiveUp(w)
		if err := w.put(key, was, is); err != nil {
			return err
		}
	}
	return nil
}

// adopt writes an entry that was judged good, and returns the state that its key was in; corrects says that the key gave up
// a lead.
func (w *writing) adopt(e checkpoint.Entry, corrects bool) (from checkpoint.State, err error) {
	was, err := w.under(e.Key)
	if err != nil {
		return checkpoint.Unknown, err
	}
	is, old := was, w.shown(e.Key, &was)
	is.Adopt(w, e, old, corrects, w.now)
	return old.State, w.put(e.Key, was, is)
}
