package checkpoint

import (
	"runtime"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// reading is a transaction that only reads, with the recent entries as they stood when
// it began.
type reading struct {
	tx              *bolt.Tx
	at              map[string]uint64 // of recent
	entries, recent *bolt.Cursor
}

// read is view for what asks for entries. A commit shows in the file a moment before it
// shows in the memory of the recent ones, or a moment after a transaction has begun:
// then a new one begins.
func (d *DB) read(what string, f func(*reading) error) error {
	for moved := false; ; {
		err := d.view(what, func(tx *bolt.Tx) error {
			d.recent.mu.RLock()
			defer d.recent.mu.RUnlock()
			if moved = d.recent.txid.Load() != int64(tx.ID()); moved {
				return nil
			}
			return f(newReading(tx, d.recent))
		})
		if !moved || err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// newReading needs a lock on what is recent, or that nobody writes.
func newReading(tx *bolt.Tx, r *recent) *reading {
	reading := &reading{tx: tx, at: r.at, entries: tx.Bucket(inEntries).Cursor()}
	if bucket := tx.Bucket(inRecent); bucket != nil {
		reading.recent = bucket.Cursor()
	}
	return reading
}

// entry returns the record of the entry of key, also below an intent, or nil.
func (r *reading) entry(key string) []byte {
	if number, ok := r.at[key]; ok {
		return entryIn(find(r.recent, string(numberKey(number))))
	}
	return find(r.entries, key)
}

// each calls f with the record of every entry, in no order.
func (r *reading) each(f func(k, v []byte) error) error {
	for k, v := r.entries.First(); k != nil; k, v = r.entries.Next() {
		if err := f(k, v); err != nil {
			return err
		}
	}
	for key := range r.at {
		if err := f([]byte(key), r.entry(key)); err != nil {
			return err
		}
	}
	return nil
}

// ordered goes through entries in the order of their keys.
type ordered struct {
	*reading
	rest       []string // keys that were recent when this began, or before
	key, value []byte   // of the entry that it stands at, nil at the end
	k, v       []byte   // of the next one in its place
}

// from returns what goes through the entries from a key on. All recent keys have to be
// given, in order; those of entries that are in their places by now do no harm.
func (r *reading) from(key []byte, recent []string) *ordered {
	at, _ := slices.BinarySearch(recent, string(key))
	o := &ordered{reading: r, rest: recent[at:]}
	o.k, o.v = r.entries.Seek(key)
	o.next()
	return o
}

func (o *ordered) next() {
	for len(o.rest) > 0 && (o.k == nil || o.rest[0] < string(o.k)) {
		key := o.rest[0]
		o.rest = o.rest[1:]
		if _, ok := o.at[key]; !ok {
			continue // it stands in its place by now, or is gone
		}
		o.key, o.value = []byte(key), o.entry(key)
		return
	}
	o.key, o.value = o.k, o.v
	if o.k != nil {
		o.k, o.v = o.entries.Next()
	}
}
