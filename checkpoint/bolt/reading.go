package bolt

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

type reading struct {
	d              *Store
	tx             *bbolt.Tx
	entries, leads places
}

// read is view for what asks for entries. The writer waits for it before it changes where
// they are found.
func (d *Store) read(what string, f func(*reading) error) error {
	d.readers.RLock()
	defer d.readers.RUnlock()
	return d.view(what, func(tx *bbolt.Tx) error {
		return f(&reading{d, tx, d.entries.placesIn(tx), d.leads.placesIn(tx)})
	})
}

// entry returns the record of the entry of key, also below an intent, or nil.
func (r *reading) entry(key string) []byte {
	// Keys mostly come in the order of the file before, which is often their own: then the next place holds it.
	if k, record := r.entries.inPlace.Next(); string(k) == key {
		return record
	}
	return r.entries.find(key, r.d.entries.gathers)
}

// gatheredKeys are those of entries that may be in the log alone, in order.
func (r *reading) gatheredKeys() []string { return slices.Sorted(maps.Keys(r.d.entries.gathers)) }

// ordered goes through entries in the order of their keys.
type ordered struct {
	*reading
	rest       []string // keys in the log that are to come
	key, value []byte   // of the entry that it is at, nil at the end
	k, v       []byte   // of the next one in its place
}

// from goes through the entries from a key on; gathered is what gatheredKeys returns.
func (r *reading) from(key []byte, gathered []string) *ordered {
	at, _ := slices.BinarySearch(gathered, string(key))
	o := &ordered{reading: r, rest: gathered[at:]}
	o.k, o.v = r.entries.inPlace.Seek(key)
	o.next()
	return o
}

func (o *ordered) next() {
	for len(o.rest) > 0 && (o.k == nil || o.rest[0] <= string(o.k)) {
		key := o.rest[0]
		o.rest = o.rest[1:]
		if key == string(o.k) {
			continue // it is in its place
		}
		if o.value = o.entries.gathered(key, o.d.entries.gathers[key]); o.value != nil {
			o.key = []byte(key)
			return
		}
	}
	o.key, o.value = o.k, o.v
	if o.k != nil {
		o.k, o.v = o.entries.inPlace.Next()
	}
}

// inChunk is how many keys are read in one transaction.
const inChunk = 512

// find returns the record under exactly this key, and leaves the cursor at it.
func find(c *bbolt.Cursor, key string) []byte {
	return exactly(c, []byte(key))
}

// Scan calls f with what is stored under each key, see [checkpoint.Store]. It holds no transaction while f runs.
func (d *Store) Scan(ctx context.Context, which checkpoint.Filter, f func(checkpoint.KeptKey) error) error {
	var gathered []string // keys, as of a commit
	commit := -1
	for after, more := []byte(nil), true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var found []checkpoint.KeptKey
		err := d.read("read entries", func(r *reading) (err error) {
			if now := r.tx.ID(); now != commit {
				gathered, commit = r.gatheredKeys(), now
			}
			after, err = r.chunk(after, gathered, which.State != checkpoint.InDoubt,
				func(key string, entry, intent []byte) error {
					if which.Skip != nil && which.Skip(key) {
						return nil
					}
					k, err := kept(key, entry, intent)
					found = append(found, k)
					return err
				})
			more = after != nil
			return err
		})
		for i := 0; i < len(found) && err == nil; i++ {
			err = f(found[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// kept is what the records under a key say; either may be nil.
func kept(key string, entry, intent []byte) (k checkpoint.KeptKey, err error) {
	if k.Entry, err = records.Kept(key, entry); err == nil {
		k.Intent, err = records.Kept(key, intent)
	}
	return k, err
}

// chunk calls f with the records of up to inChunk keys from a key on and returns the key to go on with, nil at the end.
func (r *reading) chunk(from []byte, gathered []string, all bool,
	f func(key string, entry, intent []byte) error,
) (next []byte, err error) {
	intents, entries := r.tx.Bucket(inIntents).Cursor(), &ordered{}
	ik, iv := intents.Seek(from)
	if all {
		entries = r.from(from, gathered)
	}
	for n := 0; ik != nil || entries.key != nil; n++ {
		key, entry, intent, order := ik, entries.value, iv, compare(ik, entries.key)
		switch {
		case order < 0:
			entry = nil
		case order > 0:
			key, intent = entries.key, nil
		}
		if n == inChunk {
			return bytes.Clone(key), nil
		}
		if err := f(string(key), entry, intent); err != nil {
			return nil, err
		}
		if order <= 0 {
			ik, iv = intents.Next()
		}
		if order >= 0 {
			entries.next()
		}
	}
	return nil, nil
}

// compare orders keys; nil, the end, comes last.
func compare(a, b []byte) int {
	switch {
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return bytes.Compare(a, b)
}

// Under is what is stored under a key, see [checkpoint.Store].
func (d *Store) Under(_ context.Context, key string) (k checkpoint.KeptKey, err error) {
	err = d.read("read a key", func(r *reading) error {
		k, err = kept(key, r.entry(key), r.tx.Bucket(inIntents).Get([]byte(key)))
		return err
	})
	return k, err
}

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
