package bolt

import (
	"bytes"
	"context"
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
