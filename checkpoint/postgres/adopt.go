package postgres

import (
	"context"
	"crypto/sha256"
	"errors"

	"leadferry/checkpoint"
)

// adoptChunk is how many entries of a list are looked up and stored at a time.
const adoptChunk = 2048

// hash stands for a text of a list that is too long for the memory.
type hash [16]byte

func hashOf(text string) (h hash) {
	if text == "" {
		return h
	}
	sum := sha256.Sum256([]byte(text))
	return hash(sum[:16])
}

// adoption is a list on its way.
type adoption struct {
	s         *Store
	r         checkpoint.AdoptResult
	given     map[hash]hash // the lead that the list gives each of its keys
	keys, ids map[hash]bool // that have come already
	chunk     []checkpoint.Entry
	at        int // of the first of the chunk in the list
}

// Adopt takes over leads in one transaction, see [checkpoint.Store].
func (s *Store) Adopt(_ context.Context, list checkpoint.List) (checkpoint.AdoptResult, error) {
	a := &adoption{s: s, given: map[hash]hash{}}
	for e, err := range list {
		if err != nil {
			return checkpoint.AdoptResult{}, err
		}
		key := hashOf(e.Key)
		if _, twice := a.given[key]; twice {
			continue
		}
		if a.given[key] = (hash{}); e.State != checkpoint.InDoubt && e.State != checkpoint.Rejected {
			a.given[key] = hashOf(e.LeadID)
		}
	}
	var yielded error
	err := s.alone(true, func() error {
		a.r, a.keys, a.ids, a.at, a.chunk = checkpoint.AdoptResult{}, map[hash]bool{}, map[hash]bool{}, 0, nil
		for e, err := range list {
			if err != nil {
				yielded = err
				return errYielded
			}
			if a.chunk = append(a.chunk, e); len(a.chunk) == adoptChunk {
				if err := a.take(); err != nil {
					return err
				}
			}
		}
		return a.take()
	})
	if errors.Is(err, errYielded) {
		err = yielded
	}
	return a.r, err
}

// errYielded stands for the error of a list, which is nobody else's.
var errYielded = &checkpoint.ListError{Text: "the list could not be read"}

// take judges the entries of the chunk and stores what they bring.
func (a *adoption) take() error {
	q := &wanted{}
	for i := range a.chunk {
		a.s.want(q, a.chunk[i].Key, a.chunk[i].LeadID)
	}
	w, base, err := a.s.working(q)
	if err != nil {
		return err
	}
	for i := range a.chunk {
		e := &a.chunk[i]
		take, err := a.fits(w, e)
		if err != nil {
			err.Index, err.Key = a.at+i, e.Key
			return err
		}
		if take {
			w.adopt(*e)
		}
	}
	a.at, a.chunk = a.at+len(a.chunk), a.chunk[:0]
	return a.s.keep(w, base)
}

// fits says whether an entry is to be taken over, or why the list is refused.
func (a *adoption) fits(w *working, e *checkpoint.Entry) (take bool, err *checkpoint.ListError) {
	refuse := func(text, hint string) (bool, *checkpoint.ListError) {
		return false, &checkpoint.ListError{Text: text, Hint: hint}
	}
	if text, hint := e.Unfit(); text != "" {
		return refuse(text, hint)
	}
	key, lead := hashOf(e.Key), hashOf(e.LeadID)
	if a.keys[key] {
		return refuse("its key stands in the list already", "keep one of its rows")
	}
	if a.keys[key] = true; e.State != checkpoint.InDoubt && e.LeadID != "" {
		if a.ids[lead] {
			return refuse("its lead ID stands in the list already", "one lead cannot belong to two rows: look both up")
		}
		a.ids[lead] = true
	}
	take, err = a.judge(w, e)
	if take && !checkpoint.KnownStatus(e.Status) {
		a.r.Unspecified++
	}
	return take, err
}

// judge says what an entry adds to what is known.
func (a *adoption) judge(w *working, e *checkpoint.Entry) (take bool, refusal *checkpoint.ListError) {
	old, owner := w.rows[e.Key].visible(), ""
	if e.LeadID != "" {
		owner = w.owners[e.LeadID]
	}
	keeps := owner != "" && (a.given[hashOf(owner)] == hash{} || a.given[hashOf(owner)] == hashOf(e.LeadID))
	return a.r.Judge(e, &old.Entry, owner != e.Key && keeps, old.ByPeople)
}

// adopt takes an entry of a list over.
func (w *working) adopt(e checkpoint.Entry) {
	next := *w.rows[e.Key]
	next.worker = w.worker
	corrects := e.State != checkpoint.InDoubt && next.state().HasLead() && next.visible().LeadID != ""
	if corrects {
		next.GiveUp(w)
	}
	next.Adopt(w, e, next.visible(), corrects, w.now)
	w.put(&next)
}
