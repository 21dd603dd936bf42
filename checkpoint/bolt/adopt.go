package bolt

import (
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

// Adopt takes over leads that exist on the service, see [checkpoint.Store]. A long list takes
// several commits: after a kill in their midst the checkpoint is incomplete until the same
// list is adopted again. It takes 40 bytes of memory an entry, beside what one commit holds,
// and about 20 µs.
func (d *Store) Adopt(_ context.Context, list checkpoint.List) (r checkpoint.AdoptResult, err error) {
	read, err := checkpoint.ReadAdoption(list, d.digests)
	if err != nil {
		return r, fmt.Errorf("adopt: %w", err)
	}
	a := &adoption{Adoption: read, store: d, corrected: make(map[string]bool)}
	err = d.exclusively(func() error {
		err := d.transact("other", func(w *writing) error {
			if r, err = a.examine(w); err != nil {
				return err
			}
			if err := a.giveUp(w); err != nil || a.wanted > inOneCommit {
				return errors.Join(err, w.meta.Put(adoptingKey, adoptingMark()))
			}
			return inParts(a.taken, func(part []checkpoint.Entry, _ bool) error { return a.write(w, part, true) })
		})
		begun := err == nil && a.wanted > inOneCommit
		if begun {
			err = inParts(a.taken, func(part []checkpoint.Entry, last bool) error {
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
	*checkpoint.Adoption
	store     *Store
	take      []bool // by place in the list: to be written
	wanted    int    // how many
	corrected map[string]bool
}

// taken are the entries that are to be written.
func (a *adoption) taken(yield func(checkpoint.Entry, error) bool) {
	enough := errors.New("enough")
	err := a.Each(func(i int, e *checkpoint.Entry) error {
		if a.take[i] && !yield(*e, nil) {
			return enough
		}
		return nil
	})
	if err != nil && err != enough {
		yield(checkpoint.Entry{}, err)
	}
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
	a.take, a.wanted = make([]bool, a.Len()), 0
	err = a.Each(func(i int, e *checkpoint.Entry) error {
		k, err := w.under(e.Key)
		if err != nil {
			return err
		}
		owner, err := w.Owner(e.LeadID, e.Key)
		if err != nil {
			return err
		}
		if a.take[i], err = a.Judge(i, e, w.shown(e.Key, &k), owner, &r); a.take[i] {
			a.wanted++
			if k.Corrects(e) {
				a.corrected[e.Key] = true
			}
		}
		return err
	})
	return r, err
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
