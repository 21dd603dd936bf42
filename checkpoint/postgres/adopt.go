package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"

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
		e := &a.chunk[i]
		q.keys, q.hashes = append(q.keys, e.Key), append(q.hashes, a.s.digests.Blocked(e.Key))
		if e.LeadID != "" {
			q.leads = append(q.leads, e.LeadID)
		}
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
func (a *adoption) judge(w *working, e *checkpoint.Entry) (take bool, err *checkpoint.ListError) {
	old, owner := w.rows[e.Key].visible(), ""
	if e.LeadID != "" {
		owner = w.owners[e.LeadID]
	}
	keeps := owner != "" && (a.given[hashOf(owner)] == hash{} || a.given[hashOf(owner)] == hashOf(e.LeadID))
	switch {
	case old.State == checkpoint.Forgotten:
		a.r.Forgotten++
	case e.State == checkpoint.Rejected:
		a.r.Rejected++
	case e.State != checkpoint.InDoubt && owner != e.Key && keeps:
		return false, &checkpoint.ListError{Text: "its lead ID belongs to another key"}
	case e.State == checkpoint.InDoubt && (old.State.HasLead() || old.State == checkpoint.InDoubt):
		a.r.Known++
	case e.State == checkpoint.InDoubt:
		a.r.InDoubt++
		return true, nil
	case old.State == checkpoint.InDoubt && old.Reason != checkpoint.ReasonIncomplete:
		return false, &checkpoint.ListError{Text: "its key is in doubt", Hint: "`leadferry checkpoint resolve` settles it"}
	case !old.State.HasLead() || old.LeadID == "" && e.LeadID != "":
		a.r.Leads++
		return true, nil
	case e.LeadID == "" || old.LeadID == e.LeadID:
		a.r.Known++
	case !old.byPeople():
		return false, &checkpoint.ListError{Text: "its key has another lead ID already, which the service itself gave", Hint: "`leadferry checkpoint history KEY` shows when"}
	default:
		a.r.Leads++
		a.r.Corrected++
		return true, nil
	}
	return false, nil
}

// byPeople says whether the lead ID of an entry is the word of people.
func (r *record) byPeople() bool {
	const ofPeople = checkpoint.Adopted | checkpoint.Decided
	for _, ev := range slices.Backward(append(slices.Clip(r.past), r.Event(r.act))) {
		if ev.Act&(checkpoint.Made|ofPeople) != 0 {
			return ev.Act&ofPeople != 0
		}
	}
	return false
}

// adopt takes an entry of a list over.
func (w *working) adopt(e checkpoint.Entry) {
	e.Digest, e.Content = checkpoint.Digest{}, nil
	next := *w.rows[e.Key]
	next.worker = w.worker
	if e.State == checkpoint.InDoubt {
		if e.Reason == "" {
			e.Reason = checkpoint.ReasonAdopted
		}
		next.intent = w.stamped(record{Entry: e, act: checkpoint.Adopted | checkpoint.Doubted})
		w.put(&next)
		return
	}
	if old := next.visible(); old.State.HasLead() { // its lead ID alone was not known, or was wrong
		before := old.Entry
		if before.LeadID != "" {
			bare := *old
			bare.Entry = old.Bare()
			next.entry = w.stamped(bare)
			before = next.entry.Entry
			before.Status, before.Code = "", 0 // of the other lead
		}
		e = before.Completed(&e)
	}
	if e.State == checkpoint.Unknown {
		e.State = checkpoint.Created
	}
	e.Updated = w.now
	w.conclude(&next, &e, checkpoint.Adopted)
	w.put(&next)
}
