package bolt

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/rowkey"
)

// Find looks for the lead of each Query in one read transaction, see [checkpoint.Store].
func (d *Store) Find(_ context.Context, qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error {
	return d.read("look up leads", func(r *reading) error {
		f := d.finder(r)
		for i := range qs {
			var err error
			if how[i], err = f.find(&qs[i], &out[i]); err != nil {
				return err
			}
			if how[i] == checkpoint.NoMatch && qs[i].Alike != nil {
				if err := f.alike(qs[i].Key, qs[i].Alike); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

type finder struct {
	*reading
	intents, links, wanted, folds, blocked *bbolt.Cursor
	doubts, forgotten, folded              bool // there are any
}

func (d *Store) finder(r *reading) *finder {
	cursor := func(name []byte) *bbolt.Cursor { return r.tx.Bucket(name).Cursor() }
	f := &finder{
		reading: r, intents: cursor(inIntents),
		links: cursor(inLinks), wanted: cursor(inWanted), folds: cursor(inFolds), blocked: cursor(inBlocked),
	}
	doubt, _ := f.intents.First()
	block, _ := f.blocked.First()
	fold, _ := f.folds.First()
	f.doubts, f.forgotten, f.folded = doubt != nil, block != nil, fold != nil
	return f
}

func (f *finder) find(q *checkpoint.Query, out *checkpoint.Entry) (checkpoint.Match, error) {
	if err := f.byKey(q.Key, out); err != nil {
		return checkpoint.NoMatch, err
	}
	owner, err := f.owner(q.LeadID)
	if err != nil {
		return checkpoint.NoMatch, err
	}
	switch out.State {
	case checkpoint.Created, checkpoint.Partial:
		if owner != "" && owner != q.Key {
			return checkpoint.Ambiguous, nil
		}
		return checkpoint.ByKey, nil
	case checkpoint.InDoubt, checkpoint.Forgotten:
		return checkpoint.ByKey, nil
	}
	if owner != "" {
		return checkpoint.ByLeadID, f.byKey(owner, out)
	}
	if !records.Indexed(q.ExternalID) {
		return checkpoint.NoMatch, nil
	}
	return f.byExternalID(q, out)
}

// record is what stands under key, in doubt or not, or nil.
func (f *finder) record(key string) []byte {
	if f.doubts {
		if record := find(f.intents, key); record != nil {
			return record
		}
	}
	return f.entry(key)
}

func (f *finder) byKey(key string, out *checkpoint.Entry) error {
	record := f.record(key)
	if record != nil {
		return f.d.words.Decode(key, record, out)
	}
	*out = checkpoint.Entry{Key: key, Content: out.Content[:0]}
	if f.forgotten && find(f.blocked, string(f.d.digests.Blocked(key))) != nil {
		out.State = checkpoint.Forgotten
	}
	return nil
}

func (f *finder) owner(id string) (string, error) {
	if !records.Indexed(id) {
		return "", nil
	}
	lead := string(records.AppendText(nil, id))
	return ownerOf(f.d.words, id, f.entry, string(f.leads.find(lead, f.d.leads.gathers)))
}

// byExternalID fills out with the one lead that is linked so, or is to be, unless the Query names
// another one. Where there is none, out stays as it is.
func (f *finder) byExternalID(q *checkpoint.Query, out *checkpoint.Entry) (checkpoint.Match, error) {
	key, several, err := f.linked(q.ExternalID)
	switch {
	case err != nil || key == "" && !several:
		return checkpoint.NoMatch, err
	case several:
		return checkpoint.Ambiguous, nil
	}
	if err := f.byKey(key, out); err != nil {
		return checkpoint.NoMatch, err
	}
	if !out.State.HasLead() && out.State != checkpoint.InDoubt {
		return checkpoint.NoMatch, f.byKey(q.Key, out)
	}
	if q.LeadID != "" && out.LeadID != "" {
		return checkpoint.Ambiguous, nil
	}
	return checkpoint.ByExternalID, nil
}

// linked is the key whose lead has the ExternalID, or is to have it, or says that there are
// several.
func (f *finder) linked(external string) (key string, several bool, err error) {
	note := func(other string) {
		several = several || key != "" && key != other
		key = other
	}
	var e checkpoint.Entry
	for _, record := range [][]byte{f.entry(external), find(f.intents, external)} { // the indexes lack what equals its key
		if record == nil {
			continue
		}
		if err := f.d.words.Decode(external, record, &e); err != nil {
			return "", false, err
		}
		if (e.State.HasLead() && e.ExternalID == external) || ((e.State.HasLead() || e.State == checkpoint.InDoubt) && e.WantLink == external) {
			note(external)
		}
	}
	prefix := records.AppendText(nil, external)
	for _, index := range []*bbolt.Cursor{f.links, f.wanted} {
		for k, _ := index.Seek(prefix); bytes.HasPrefix(k, prefix) && !several; k, _ = index.Next() {
			note(string(k[len(prefix):]))
		}
	}
	return key, several, nil
}

// alike looks for a key that this one looks like. One that has a lead, or may have one,
// comes before one that was forgotten.
func (f *finder) alike(key string, found *checkpoint.Likeness) error {
	*found = checkpoint.Likeness{}
	folded := rowkey.Fold(key)
	if folded == "" {
		return nil
	}
	if folded != key {
		if err := f.resembles(folded, found); err != nil {
			return err
		}
	}
	if f.folded {
		prefix := records.FoldPrefix(f.d.digests, folded)
		for k, _ := f.folds.Seek(prefix); found.State == checkpoint.Unknown && bytes.HasPrefix(k, prefix); k, _ = f.folds.Next() {
			if other := records.Unfolded(folded, k[len(prefix):]); other != key {
				if err := f.resembles(other, found); err != nil {
					return err
				}
			}
		}
	}
	if found.State == checkpoint.Unknown && f.forgotten && f.wasForgotten(key, folded) {
		found.State = checkpoint.Forgotten
	}
	return nil
}

// resembles takes a key that looks alike, if it has a lead or may have one.
func (f *finder) resembles(key string, found *checkpoint.Likeness) error {
	record := f.record(key)
	if record == nil {
		return nil
	}
	var e checkpoint.Entry
	if err := f.d.words.Decode(key, record, &e); err != nil {
		return err
	}
	if e.State.HasLead() || e.State == checkpoint.InDoubt {
		*found = checkpoint.Likeness{State: e.State, File: e.File, Line: e.Line}
	}
	return nil
}

func (f *finder) wasForgotten(key, folded string) bool {
	hash := f.d.digests.Blocked(folded)
	if folded != key && find(f.blocked, string(hash)) != nil {
		return true
	}
	prefix := records.ForgottenFold(hash, nil)
	k, _ := f.folds.Seek(prefix)
	return bytes.HasPrefix(k, prefix)
}
