package bolt

import (
	"bytes"
	"context"
	"iter"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// Find looks for the lead of each Query in one read transaction, see [checkpoint.Store].
func (d *Store) Find(_ context.Context, qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error {
	return d.read("look up leads", func(r *reading) error { return checkpoint.Find(d.finder(r), qs, out, how) })
}

// finder is the file inside one transaction, see [checkpoint.Finder].
type finder struct {
	*reading
	intents, links, folds, blocked *bbolt.Cursor
	doubts, forgotten, folded      bool // there are any
}

func (d *Store) finder(r *reading) *finder {
	cursor := func(name []byte) *bbolt.Cursor { return r.tx.Bucket(name).Cursor() }
	f := &finder{
		reading: r, intents: cursor(inIntents),
		links: cursor(inLinks), folds: cursor(inFolds), blocked: cursor(inBlocked),
	}
	doubt, _ := f.intents.First()
	block, _ := f.blocked.First()
	fold, _ := f.folds.First()
	f.doubts, f.forgotten, f.folded = doubt != nil, block != nil, fold != nil
	return f
}

// record is what is stored under key, in doubt or not, or nil.
func (f *finder) record(key string) []byte {
	if f.doubts {
		if record := find(f.intents, key); record != nil {
			return record
		}
	}
	return f.entry(key)
}

// Show fills out with what look-ups show of a key.
func (f *finder) Show(key string, out *checkpoint.Entry) error {
	record := f.record(key)
	if record != nil {
		return records.Decode(key, record, out)
	}
	*out = checkpoint.Entry{Key: key, Content: out.Content[:0]}
	if f.forgotten && find(f.blocked, string(f.d.digests.Blocked(key))) != nil {
		out.State = checkpoint.Forgotten
	}
	return nil
}

// OwnerOf is the key that has a lead, or nothing.
func (f *finder) OwnerOf(id string) (string, error) {
	if !records.Indexed(id) {
		return "", nil
	}
	lead := string(records.AppendText(nil, id))
	return ownerOf(id, f.entry, lead, f.leads.find(lead, f.d.leads.gathers))
}

// Linked is the key whose lead has the ExternalID, or is to have it, or says that there are several.
func (f *finder) Linked(external string) (key string, several bool, err error) {
	err = eachLinked(external, f.entry, f.intents, f.links, func(other string) bool {
		several = several || key != "" && key != other
		key = other
		return !several
	})
	return key, several, err
}

// Linked is another key than this one whose lead has the ExternalID, or which has asked for it.
func (w *writing) Linked(external, key string) (found string, err error) {
	err = eachLinked(external, w.entry, w.sent, w.linked, func(other string) bool {
		if other != key {
			found = other
		}
		return found == ""
	})
	return found, err
}

// eachLinked calls f with each key whose lead has an ExternalID, or is to have it, as long as f returns true.
func eachLinked(external string, entry func(string) []byte, intents, links *bbolt.Cursor, f func(key string) bool,
) error {
	if !records.Indexed(external) {
		return nil
	}
	var e checkpoint.Entry
	for _, record := range [][]byte{entry(external), find(intents, external)} { // the indexes lack what equals its key
		if record == nil {
			continue
		}
		if err := records.Decode(external, record, &e); err != nil {
			return err
		}
		has, wants := e.State.HasLead(), e.State.HasLead() || e.State == checkpoint.InDoubt
		if (has && e.ExternalID == external || wants && e.WantLink == external) && !f(external) {
			return nil
		}
	}
	prefix := records.AppendText(nil, external)
	for k, _ := links.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = links.Next() {
		if !f(string(k[len(prefix):])) {
			return nil
		}
	}
	return nil
}

// Folding are known keys that fold so and are not their own fold.
func (f *finder) Folding(folded string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !f.folded {
			return
		}
		prefix := records.FoldPrefix(f.d.digests, folded)
		for k, _ := f.folds.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = f.folds.Next() {
			if !yield(string(k[len(prefix):])) {
				return
			}
		}
	}
}

// WasForgotten says whether a key that was forgotten folds so.
func (f *finder) WasForgotten(folded string) bool {
	if !f.forgotten {
		return false
	}
	hash := f.d.digests.Blocked(folded)
	if find(f.blocked, string(hash)) != nil { // it is its own fold
		return true
	}
	prefix := records.ForgottenFold(hash, nil)
	k, _ := f.folds.Seek(prefix)
	return bytes.HasPrefix(k, prefix)
}
