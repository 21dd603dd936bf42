package bolt

import (
	"errors"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// reading is a transaction that only reads, with the recent entries as they stood when
// it began.
type reading struct {
	tx              *bbolt.Tx
	at, changed     map[string]uint64 // of recent; the second one may be nil
	entries, recent *bbolt.Cursor
}

var errForeign = errors.New("somebody else has changed it meanwhile")

// read is view for what asks for entries. The writer waits for it with its next change of
// what is recent.
func (d *Store) read(what string, f func(*reading) error) error {
	for again := true; again; {
		least := d.recent.landed.Load()
		err := d.view(what, func(tx *bbolt.Tx) error {
			d.recent.mu.RLock()
			defer d.recent.mu.RUnlock()
			id, landed := int64(tx.ID()), d.recent.landed.Load()
			again = false
			switch {
			case id < least || id > d.recent.coming.Load():
				return errForeign
			case id < landed:
				again = true // the transaction began just before a commit
				return nil
			case id > landed:
				return f(newReading(tx, d.recent.at, d.recent.shown))
			}
			return f(newReading(tx, d.recent.at, nil))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func newReading(tx *bbolt.Tx, at, changed map[string]uint64) *reading {
	return &reading{
		tx: tx, at: at, changed: changed,
		entries: tx.Bucket(inEntries).Cursor(), recent: tx.Bucket(inRecent).Cursor(),
	}
}

// number is where to find key, if it is recent.
func (r *reading) number(key string) (number uint64, ok bool) { return numberOf(key, r.changed, r.at) }

// entry returns the record of the entry of key, also below an intent, or nil.
func (r *reading) entry(key string) []byte {
	if number, ok := r.number(key); ok {
		return entryIn(find(r.recent, string(numberKey(number))))
	}
	return find(r.entries, key)
}

// recentKeys are those of recent entries, in order.
func (r *reading) recentKeys() []string {
	keys := slices.Collect(maps.Keys(r.at))
	keys = slices.AppendSeq(keys, maps.Keys(r.changed))
	slices.Sort(keys)
	keys = slices.Compact(keys)
	return slices.DeleteFunc(keys, func(key string) bool { _, ok := r.number(key); return !ok })
}

// each calls f with the record of every entry, in no order.
func (r *reading) each(f func(k, v []byte) error) error {
	for k, v := r.entries.First(); k != nil; k, v = r.entries.Next() {
		if err := f(k, v); err != nil {
			return err
		}
	}
	for _, key := range r.recentKeys() {
		if err := f([]byte(key), r.entry(key)); err != nil {
			return err
		}
	}
	return nil
}

// ordered goes through entries in the order of their keys.
type ordered struct {
	*reading
	rest       []string // keys of recent ones that are to come
	key, value []byte   // of the entry that it stands at, nil at the end
	k, v       []byte   // of the next one in its place
}

// from goes through the entries from a key on; recent is what recentKeys returns.
func (r *reading) from(key []byte, recent []string) *ordered {
	at, _ := slices.BinarySearch(recent, string(key))
	o := &ordered{reading: r, rest: recent[at:]}
	o.k, o.v = r.entries.Seek(key)
	o.next()
	return o
}

func (o *ordered) next() {
	if len(o.rest) > 0 && (o.k == nil || o.rest[0] < string(o.k)) {
		key := o.rest[0]
		o.rest = o.rest[1:]
		o.key, o.value = []byte(key), o.entry(key)
		return
	}
	o.key, o.value = o.k, o.v
	if o.k != nil {
		o.k, o.v = o.entries.Next()
	}
}
