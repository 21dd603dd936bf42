package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// adoptingKey stands in the file while a list is taken over by several commits: until it is
// whole, the file is incomplete.
var adoptingKey = []byte("adopting")

func adoptingMark() []byte { return seal(nil, 0, adoptingKey) }

// adopted is how many entries of a list one commit takes.
const adopted = 1 << 14

// Adopt takes over leads that exist on the service, see [checkpoint.Store]. A long list takes
// several commits: after a kill in their midst the checkpoint is incomplete until the same
// list is adopted again. It takes some bytes of memory and 15 µs an entry.
func (d *Store) Adopt(_ context.Context, list []checkpoint.Entry) (r checkpoint.AdoptResult, err error) {
	a := newAdoption(list)
	err = d.exclusively(func() error {
		err := d.transact("other", func(w *writing) error {
			if err := a.examine(w, &r); err != nil {
				return err
			}
			if err := a.giveUp(w); err != nil {
				return err
			}
			return a.write(w)
		})
		for err == nil && len(a.wanted) > 0 {
			err = d.transact("other", a.write)
		}
		if err == nil && d.lacks.adopting {
			d.lacks = lacking{}
		}
		return err
	})
	if err != nil {
		return r, fmt.Errorf("adopt: %w", err)
	}
	return r, nil
}

// adoption is a list on its way into the file.
type adoption struct {
	list          []checkpoint.Entry
	byKey, byLead []int32 // places in the list, ordered by key and by lead ID, and then as they come
	wanted        []int32 // what is to be written, in the order of keys
	gaveUp        map[string]bool
}

func newAdoption(list []checkpoint.Entry) *adoption {
	a := &adoption{list: list, gaveUp: make(map[string]bool)}
	for i := range list {
		if a.byKey = append(a.byKey, int32(i)); list[i].LeadID != "" && list[i].State != checkpoint.InDoubt {
			a.byLead = append(a.byLead, int32(i))
		}
	}
	slices.SortStableFunc(a.byKey, func(i, j int32) int { return cmp.Compare(list[i].Key, list[j].Key) })
	slices.SortStableFunc(a.byLead, func(i, j int32) int { return cmp.Compare(list[i].LeadID, list[j].LeadID) })
	return a
}

// ofKey is the first entry of a key, by its place in the list; -1: it has none.
func (a *adoption) ofKey(key string) int {
	at, ok := slices.BinarySearchFunc(a.byKey, key, func(i int32, key string) int { return cmp.Compare(a.list[i].Key, key) })
	if !ok {
		return -1
	}
	return int(a.byKey[at])
}

// ofLead is the same of a lead ID.
func (a *adoption) ofLead(id string) int {
	at, ok := slices.BinarySearchFunc(a.byLead, id, func(i int32, id string) int { return cmp.Compare(a.list[i].LeadID, id) })
	if !ok {
		return -1
	}
	return int(a.byLead[at])
}

// gives is the lead ID that the list gives to a key, or nothing.
func (a *adoption) gives(key string) string {
	if i := a.ofKey(key); i >= 0 && a.list[i].State != checkpoint.InDoubt && a.list[i].State != checkpoint.Rejected {
		return a.list[i].LeadID
	}
	return ""
}

// write takes the next entries over: entries in the order of their keys and index records in
// theirs, for bbolt holds what one commit changes in large arrays, into which it would insert
// each.
func (a *adoption) write(w *writing) error {
	w.batch = &indexBatch{}
	part := a.wanted[:min(len(a.wanted), adopted)]
	a.wanted = a.wanted[len(part):]
	for _, i := range part {
		e := a.list[i]
		if err := w.adopt(e, a.gaveUp[e.Key]); err != nil {
			return err
		}
	}
	note := w.meta.Delete(adoptingKey)
	if len(a.wanted) > 0 {
		note = w.meta.Put(adoptingKey, adoptingMark())
	}
	return errors.Join(note, putAll(w.leads.in, w.batch.leads), putAll(w.links, w.batch.links), putAll(w.folds, w.batch.folds))
}

func putAll(index *bbolt.Bucket, records []indexRecord) error {
	slices.SortFunc(records, func(a, b indexRecord) int { return bytes.Compare(a.key, b.key) })
	for _, record := range records {
		if err := index.Put(record.key, record.value); err != nil {
			return err
		}
	}
	return nil
}

// examine refuses a list before anything is changed, counts its entries and finds those that
// have to be written.
func (a *adoption) examine(w *writing, r *checkpoint.AdoptResult) error {
	*r = checkpoint.AdoptResult{}
	take := make([]bool, len(a.list))
	for i := range a.list {
		e := &a.list[i]
		text, hint := e.Unfit()
		if first := a.ofKey(e.Key); first < i && text == "" {
			text = fmt.Sprintf("its key stands in row %d already", first+1)
		}
		if first := a.ofLead(e.LeadID); first >= 0 && first < i && text == "" && e.State != checkpoint.InDoubt {
			text = fmt.Sprintf("its lead ID stands in row %d already", first+1)
		}
		if text != "" {
			return &checkpoint.ListError{Index: i, Key: e.Key, Text: text, Hint: hint}
		}
		var err error
		take[i], err = w.judge(e, a.gives, r)
		if refused := (*checkpoint.ListError)(nil); errors.As(err, &refused) {
			refused.Index, refused.Key = i, e.Key
		}
		if err != nil {
			return err
		}
		if take[i] && !checkpoint.KnownStatus(e.Status) {
			r.Unspecified++
		}
	}
	a.wanted = slices.DeleteFunc(slices.Clone(a.byKey), func(i int32) bool { return !take[i] })
	return nil
}

// judge compares an entry with what is known and says whether it is to be taken; gives is the
// lead ID that the list gives to a key.
func (w *writing) judge(e *checkpoint.Entry, gives func(key string) string, r *checkpoint.AdoptResult) (take bool, err error) {
	from, err := w.state(e.Key)
	if err != nil {
		return false, err
	}
	old, t, err := w.known(e.Key)
	if err != nil {
		return false, err
	}
	owner, err := "", error(nil)
	if e.State != checkpoint.InDoubt {
		owner, err = w.owner(e.LeadID)
	}
	switch {
	case err != nil:
		return false, err
	case from == checkpoint.Forgotten:
		r.Forgotten++
		return false, nil
	case e.State == checkpoint.Rejected:
		r.Rejected++
		return false, nil
	case owner != "" && owner != e.Key && (gives(owner) == "" || gives(owner) == e.LeadID):
		return false, &checkpoint.ListError{Text: "its lead ID belongs to another key"}
	case e.State == checkpoint.InDoubt && !from.HasLead() && from != checkpoint.InDoubt:
		r.InDoubt++
		return true, nil
	case e.State == checkpoint.InDoubt:
		r.Known++
		return false, nil
	case from == checkpoint.InDoubt && w.held(e.Key):
		r.Leads++
		return true, nil
	case from == checkpoint.InDoubt:
		return false, &checkpoint.ListError{Text: "its key is in doubt", Hint: "`leadferry checkpoint resolve` settles it"}
	case !from.HasLead() || old.LeadID == "" && e.LeadID != "":
		r.Leads++
		return true, nil
	case e.LeadID != "" && old.LeadID != e.LeadID && !w.words.byPeople(t):
		return false, &checkpoint.ListError{Text: "its key has another lead ID already, which the service itself gave", Hint: "`leadferry checkpoint history KEY` shows when"}
	case e.LeadID != "" && old.LeadID != e.LeadID:
		r.Leads++
		r.Corrected++
		return true, nil
	}
	r.Known++
	return false, nil
}

// held says whether a key in doubt was not sent, but may have a lead that is missing here.
func (w *writing) held(key string) bool {
	in, _, err := w.intent(key) // of a record that was read before
	return err == nil && in.Reason == checkpoint.ReasonIncomplete
}

// byPeople says whether the lead ID of an entry is the word of people.
func (w *words) byPeople(t tail) bool {
	if t.act&givesLead != 0 {
		return t.act&ofPeople != 0
	}
	past, _ := w.events(t.past) // of a record that was decoded
	for _, ev := range slices.Backward(past) {
		if ev.Act&givesLead != 0 {
			return ev.Act&ofPeople != 0
		}
	}
	return false
}

// giveUp takes the lead IDs, and what was known of these leads, from entries that a list
// corrects. Only then may others have these leads.
func (a *adoption) giveUp(w *writing) error {
	for _, i := range a.wanted {
		old, t, err := w.known(a.list[i].Key)
		if err != nil {
			return err
		}
		if old.LeadID == "" || a.list[i].State == checkpoint.InDoubt {
			continue
		}
		a.gaveUp[old.Key] = true
		bare := old.Bare()
		if err := errors.Join(w.move(old.Key, old.State, checkpoint.Created), w.replace(&old, &bare, t)); err != nil {
			return err
		}
	}
	return nil
}

// adopt writes an entry that was judged good; corrects says that its key gave up a lead.
func (w *writing) adopt(e checkpoint.Entry, corrects bool) error {
	e.Digest, e.Content = checkpoint.Digest{}, nil
	from, err := w.state(e.Key)
	if err != nil {
		return err
	}
	if e.State == checkpoint.InDoubt {
		if e.Reason == "" {
			e.Reason = checkpoint.ReasonAdopted
		}
		return errors.Join(w.move(e.Key, from, checkpoint.InDoubt), w.putIntent(new(checkpoint.Entry), &e, tail{act: checkpoint.Adopted | checkpoint.Doubted}))
	}
	if from.HasLead() { // its lead ID alone was not known
		old, _, err := w.known(e.Key)
		if err != nil {
			return err
		}
		if corrects {
			old.Status, old.Code = "", 0 // of the other lead
		}
		e = old.Completed(&e)
	}
	if e.State == checkpoint.Unknown {
		e.State = checkpoint.Created
	}
	e.Updated = w.now
	return w.conclude(&e, from, checkpoint.Adopted)
}
