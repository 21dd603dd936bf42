package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// generationSize limits a generation of records to an eighth of all keys, within least and most. Zero: the defaults.
type generationSize struct{ least, most uint64 }

// buffered is a bucket with an insert buffer. Lead IDs, and the keys of many files, come in no order: each new record
// would rewrite a page of its own while a commit waits for the disk. So new records first gather in a log, a second
// bucket that grows at its end. When a generation of them is full, it moves into its places in the order of the keys,
// where many share a page. Each commit moves a few, while the next generation gathers.
//
// The contract:
//
//   - The record in its place counts, otherwise the record in the log.
//   - insert is for keys that have no record, put and delete for keys that have one.
//   - A process that is killed loses nothing: the next one moves all that is in the log.
//   - A record stays in the log for at least one commit after it was moved, for readers who still see the file as it
//     was before. Only announce changes gathers, while no reader is under way.
type buffered struct {
	name, log []byte // the buckets
	generationSize
	gathers map[string]uint64 // key → number, from 1, of each record in the log

	// Of the commit under way.
	places
	in, lines *bbolt.Bucket     // the bucket and its log
	fresh     map[string]uint64 // added records: key → number
	gone      map[string]bool   // keys whose records left the log

	// The generations.
	next      uint64   // number of the next record
	young     []string // keys that gather
	old       []string // keys that are still to be moved, in order
	oldBelow  uint64   // records with lower numbers are of the old generation, or of earlier ones
	doneBelow uint64   // records with lower numbers are of earlier generations, all of them moved
}

func newBuffered(name, log []byte, g generationSize) *buffered {
	return &buffered{
		name: name, log: log, generationSize: cmp.Or(g, generationSize{least: 1 << 10, most: 1 << 16}),
		gathers: make(map[string]uint64), fresh: make(map[string]uint64), gone: make(map[string]bool),
	}
}

// load reads the log, and makes all of it the old generation.
func (b *buffered) load(tx *bbolt.Tx) error {
	b.next = 1
	err := b.eachLine(tx, func(number uint64, key []byte) { b.gathers[string(key)], b.next = number, number+1 })
	b.old, b.oldBelow = slices.Sorted(maps.Keys(b.gathers)), b.next
	return err
}

// count counts the records that tx sees. A damaged record is an error.
func (b *buffered) count(tx *bbolt.Tx) (n uint64, err error) {
	if n, err = wholeRecords(tx, b.name); err != nil {
		return 0, err
	}
	in := tx.Bucket(b.name)
	err = b.eachLine(tx, func(_ uint64, key []byte) {
		if in.Get(key) == nil { // else it was moved, and is counted
			n++
		}
	})
	return n, err
}

// eachLine calls f with each line of the log. A damaged record is an error.
func (b *buffered) eachLine(tx *bbolt.Tx, f func(number uint64, key []byte)) error {
	return tx.Bucket(b.log).ForEach(func(k, v []byte) error {
		number, key := parseLogKey(k)
		if !isWhole(key, v) {
			return errRecord
		}
		f(number, key)
		return nil
	})
}

// logKey returns the key of a record in the log: its number, which orders the log, and its own key.
func logKey(number uint64, key string) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(key)), number), key...)
}

func parseLogKey(k []byte) (number uint64, key []byte) {
	if len(k) < 8 {
		return 0, nil
	}
	return binary.BigEndian.Uint64(k), k[8:]
}

// begin binds b to the next commit. keys is how many keys the checkpoint knows.
func (b *buffered) begin(tx *bbolt.Tx, keys uint64) {
	b.in, b.lines = tx.Bucket(b.name), tx.Bucket(b.log)
	b.lines.FillPercent = 0.95
	b.places = b.placesIn(tx)
	clear(b.fresh)
	clear(b.gone)
	if len(b.old) > 0 {
		return
	}
	b.doneBelow = b.oldBelow
	if uint64(len(b.young)) >= min(max(keys/8, b.least), b.most) {
		b.old, b.young, b.oldBelow = b.young, nil, b.next
		slices.Sort(b.old)
	}
}

// lineOf returns the number of a key's record in the log, or 0, as the commit under way sees it.
func (b *buffered) lineOf(key string) uint64 {
	if number := b.fresh[key]; number > 0 || b.gone[key] {
		return number
	}
	return b.gathers[key]
}

// find returns the record of key as the commit under way sees it, or nil.
func (b *buffered) find(key string) []byte { return b.places.find(key, b.lineOf(key)) }

// insert adds the record of a key that has none. value must not change until the commit.
func (b *buffered) insert(key string, value []byte) error {
	number := b.next
	b.next++
	b.fresh[key] = number
	return b.lines.Put(logKey(number, key), value)
}

// put replaces the record of a key where it is now. That is often still the log, when the link is made after a create.
func (b *buffered) put(key string, value []byte) error {
	if number := b.lineOf(key); number > 0 && exactly(b.inPlace, []byte(key)) == nil {
		return b.lines.Put(logKey(number, key), value)
	}
	return b.in.Put([]byte(key), value)
}

// delete removes the record of a key from its place and from the log.
func (b *buffered) delete(key string) error {
	if number := b.lineOf(key); number > 0 {
		delete(b.fresh, key)
		b.gone[key] = true
		if err := b.lines.Delete(logKey(number, key)); err != nil {
			return err
		}
	}
	return b.in.Delete([]byte(key))
}

// end moves twice as many records into their places as were added, so that the old generation is done before the young
// one is full. It removes as many lines of the log that are not needed any more.
func (b *buffered) end() error {
	return errors.Join(b.move(2*len(b.fresh)), b.sweep(2*len(b.fresh)))
}

// move puts up to n records into their places.
func (b *buffered) move(n int) error {
	for ; n > 0 && len(b.old) > 0; n-- {
		key := b.old[0]
		b.old = b.old[1:]
		number := b.lineOf(key)
		if number == 0 || number >= b.oldBelow || exactly(b.inPlace, []byte(key)) != nil {
			continue // it was deleted, it was added again, or the process before this one moved it
		}
		value := b.gathered(key, number)
		if !isWhole([]byte(key), value) {
			return errRecord
		}
		if err := b.in.Put([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes up to n lines of generations that were moved.
func (b *buffered) sweep(n int) error {
	c := b.lines.Cursor()
	for k, _ := c.First(); k != nil && n > 0; n-- {
		number, key := parseLogKey(k)
		if number >= b.doneBelow {
			break
		}
		if b.gathers[string(key)] == number {
			b.gone[string(key)] = true
		}
		if err := c.Delete(); err != nil {
			return err
		}
		k, _ = c.Seek(logKey(number+1, ""))
	}
	return nil
}

// announce tells readers what a commit does. It is called before the commit can be seen, while nobody reads.
func (b *buffered) announce() {
	for key := range b.gone {
		delete(b.gathers, key)
	}
	for key, number := range b.fresh {
		own := strings.Clone(key) // key may be a part of a row's text, and would keep all of it in memory
		b.gathers[own] = number
		b.young = append(b.young, own)
	}
}

// places are where a transaction finds the records of a buffered bucket.
type places struct{ inPlace, inLog *bbolt.Cursor }

func (b *buffered) placesIn(tx *bbolt.Tx) places {
	return places{tx.Bucket(b.name).Cursor(), tx.Bucket(b.log).Cursor()}
}

// find returns the record of key, or nil. number is the number of its line in the log, or 0. It returns damaged if the
// record may be there but cannot be found, so that damage does not look like an unknown key.
func (p *places) find(key string, number uint64) []byte {
	k, value := p.inPlace.Seek([]byte(key))
	switch {
	case string(k) == key && value != nil:
		return value
	case number > 0:
		return p.gathered(key, number)
	case !p.within(key, k, value):
		return damaged
	}
	return nil
}

// damaged is returned as the record of a key that cannot be read. No checksum fits it.
var damaged = []byte{0}

// within reports whether the records around a missing key are whole and in order. Else its record may be damaged.
func (p *places) within(key string, next, value []byte) bool {
	if next != nil && (string(next) <= key || !isWhole(next, value)) {
		return false
	}
	before, value := p.inPlace.Prev()
	return before == nil || string(before) < key && isWhole(before, value)
}

// gathered returns the record of key in the log, unchecked, or nil if this transaction does not see it.
func (p *places) gathered(key string, number uint64) []byte {
	value := exactly(p.inLog, logKey(number, key))
	if value == nil {
		if last, _ := p.inLog.Last(); last != nil && binary.BigEndian.Uint64(last) >= number {
			return damaged
		} // else a later commit wrote it
	}
	return value
}

// exactly returns the record under this key, or nil, and leaves the cursor there.
func exactly(c *bbolt.Cursor, key []byte) []byte {
	if k, v := c.Seek(key); bytes.Equal(k, key) {
		return v
	}
	return nil
}
