package bolt

import (
	"maps"
	"slices"

	"go.etcd.io/bbolt"
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
func (r *reading) entry(key string) []byte { return r.entries.find(key, r.d.entries.gathers) }

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
