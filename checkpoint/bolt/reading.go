package bolt

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// reading is a transaction that only reads.
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

// gatheredKeys are those of entries that may stand in the log alone, in order.
func (r *reading) gatheredKeys() []string { return slices.Sorted(maps.Keys(r.d.entries.gathers)) }

// ordered goes through entries in the order of their keys.
type ordered struct {
	*reading
	rest       []string // keys in the log that are to come
	key, value []byte   // of the entry that it stands at, nil at the end
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
			continue // it stands in its place
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

// chunk is how many entries Each reads in one transaction.
const chunk = 512

// find returns the record under exactly this key, and leaves the cursor at it.
func find(c *bbolt.Cursor, key string) []byte {
	if k, v := c.Seek([]byte(key)); string(k) == key {
		return v
	}
	return nil
}

// Each calls f with every key that which takes. It reads some hundred at a time and
// holds no transaction while f runs. See [checkpoint.Store].
func (d *Store) Each(ctx context.Context, which checkpoint.Filter, f func(checkpoint.Entry) error) error {
	keep := func(e *checkpoint.Entry, t *records.Tail) bool {
		return which.Run == "" || d.words.Maker(e, t) == which.Run
	}
	return d.each(ctx, which.State, keep, f)
}

func (d *Store) each(ctx context.Context, s checkpoint.State, keep func(*checkpoint.Entry, *records.Tail) bool, f func(checkpoint.Entry) error) error {
	var gathered []string // keys, as of a commit
	commit := -1
	for after, more := []byte(nil), true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var found []checkpoint.Entry
		err := d.read("read entries", func(r *reading) (err error) {
			if now := r.tx.ID(); now != commit {
				gathered, commit = r.gatheredKeys(), now
			}
			found, after, err = d.collect(r, after, gathered, s, keep)
			more = after != nil
			return err
		})
		if err != nil {
			return err
		}
		for _, e := range found {
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect reads up to chunk keys from key from on and returns the key to go on
// with, nil at the end.
func (d *Store) collect(r *reading, from []byte, gathered []string, s checkpoint.State, keep func(*checkpoint.Entry, *records.Tail) bool) (found []checkpoint.Entry, next []byte, err error) {
	intents := r.tx.Bucket(inIntents).Cursor()
	ik, iv := intents.Seek(from)
	entries := &ordered{}
	if s != checkpoint.InDoubt {
		entries = r.from(from, gathered)
	}
	for n := 0; ik != nil || entries.key != nil; n++ {
		k, v := ik, iv
		order := compare(ik, entries.key)
		if order > 0 {
			k, v = entries.key, entries.value
		}
		if n == chunk {
			return found, bytes.Clone(k), nil
		}
		var e checkpoint.Entry
		t, err := d.words.Decode(string(k), v, &e)
		if err != nil {
			return nil, nil, err
		}
		if (s == checkpoint.Unknown || s == e.State) && keep(&e, &t) {
			found = append(found, e)
		}
		if order <= 0 {
			ik, iv = intents.Next()
		}
		if order >= 0 && entries.key != nil {
			entries.next()
		}
	}
	return found, nil, nil
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

// History returns what was done with a key, in order, see [checkpoint.Store].
func (d *Store) History(_ context.Context, key string) (all []checkpoint.Event, err error) {
	err = d.read("read history", func(r *reading) error {
		entry, errEntry := d.words.Kept(key, r.entry(key))
		in, errIntent := d.words.Kept(key, r.tx.Bucket(inIntents).Get([]byte(key)))
		var decided []*checkpoint.Kept
		err := r.tx.Bucket(inAudit).ForEach(func(k, v []byte) error {
			line, err := decodeAudit(k, v)
			if err != nil || line.Key != key {
				return err
			}
			send, err := d.words.Kept(key, line.send)
			decided = append(decided, send)
			return err
		})
		all = checkpoint.HistoryOf(entry, in, decided)
		return errors.Join(errEntry, errIntent, err)
	})
	return all, err
}
