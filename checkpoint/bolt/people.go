package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"leadferry/checkpoint"
)

// Resolve settles keys in doubt, see [checkpoint.Store].
func (d *Store) Resolve(_ context.Context, ds []checkpoint.Decision) (r checkpoint.ResolveResult, err error) {
	err = d.alone(func(w *writing) error {
		r, err = checkpoint.Resolve(&resolving{w}, ds, w.now)
		return err
	})
	if err != nil {
		return r, fmt.Errorf("resolve: %w", err)
	}
	return r, nil
}

// resolving is what decisions are carried out on, see [checkpoint.Resolver].
type resolving struct{ *writing }

func (r *resolving) Under(key string) (checkpoint.KeptKey, error) { return r.under(key) }

func (r *resolving) Put(key string, k checkpoint.KeptKey) error {
	was, err := r.under(key)
	if err != nil {
		return err
	}
	return r.put(key, was, k)
}

// Adopt takes over leads that exist on the service, see [checkpoint.Store]. A long list takes several commits. It takes 40
// bytes of memory an entry, beside what one commit holds, and about 20 µs.
func (d *Store) Adopt(_ context.Context, list checkpoint.List) (r checkpoint.AdoptResult, err error) {
	read, err := checkpoint.ReadAdoption(list, d.digests)
	if err != nil {
		return r, fmt.Errorf("adopt: %w", err)
	}
	a := &adoption{Adoption: read, corrected: make(map[string]bool)}
	err = d.exclusively(func() error {
		err := d.transact("other", func(w *writing) error {
			if r, err = a.examine(w); err != nil {
				return err
			}
			return a.giveUp(w)
		})
		if err != nil {
			return err
		}
		return inParts(a.taken, func(part []checkpoint.Entry, _ bool) error {
			return d.transact("other", func(w *writing) error { return a.write(w, part) })
		})
	})
	if err != nil {
		return r, fmt.Errorf("adopt: %w", err)
	}
	return r, nil
}

type adoption struct {
	*checkpoint.Adoption
	take      []bool // by place in the list: to be written
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
func (a *adoption) write(w *writing, part []checkpoint.Entry) error {
	slices.SortFunc(part, func(x, y checkpoint.Entry) int { return cmp.Compare(x.Key, y.Key) })
	for _, e := range part {
		if err := w.adopt(e, a.corrected[e.Key]); err != nil {
			return err
		}
	}
	return nil
}

// examine refuses a list before anything is changed, counts its entries and finds those that
// have to be written.
func (a *adoption) examine(w *writing) (r checkpoint.AdoptResult, err error) {
	a.take = make([]bool, a.Len())
	err = a.Each(func(i int, e *checkpoint.Entry) error {
		k, err := w.under(e.Key)
		if err != nil {
			return err
		}
		owner, err := w.Owner(e.LeadID, e.Key)
		if err != nil {
			return err
		}
		if a.take[i], err = a.Judge(i, e, w.shown(e.Key, &k), owner, &r); a.take[i] && k.Corrects(e) {
			a.corrected[e.Key] = true
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

// adopt writes an entry that was judged good; corrects says that the key gave up a lead.
func (w *writing) adopt(e checkpoint.Entry, corrects bool) error {
	was, err := w.under(e.Key)
	if err != nil {
		return err
	}
	is, old := was, w.shown(e.Key, &was)
	is.Adopt(w, e, old, corrects, w.now)
	return w.put(e.Key, was, is)
}
