package bolt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"leadferry/checkpoint/bolt/records"

	"go.etcd.io/bbolt"
)

// gathering bounds a generation of records that gather: a share of all keys, between least
// and most. The zero value stands for defaults.
type gathering struct{ least, most uint64 }

const (
	gatherShare = 8
	lineSize    = 1 << 10 // bytes, about
	drainStep   = 1 << 10 // records that one commit moves when all have to go
)

// buffered is a bucket with an insert buffer: lead IDs, and keys of many files, come in no
// order, and each record put at once into its place would rewrite pages all over the file,
// while a commit waits for the disk. So new records gather in a log first, some to a line,
// and go into their places in the order of their keys, when many can share pages: while one
// generation gathers, each commit moves a few records of the one before.
//
// What stands in its place counts, else what stands in the log. Lines are removed when all
// that they hold has been moved, so a process that is killed meanwhile loses nothing: the
// next one moves it again.
type buffered struct {
	name, log []byte // the buckets
	small     bool   // records are short: they are kept in memory too
	gathering
	gathers map[string]gathered // what stands in the log, by key
	texts   texts               // of gathers

	// Of the commit under way.
	places
	in, lines *bbolt.Bucket
	added     map[string][]byte // nil: taken back
	fresh     []fresh           // of added, as they came
	swept     []string          // keys in lines that go
	deleted   []string          // keys that do not stand in the log any more

	// The generations.
	next      uint64   // number of the next line
	unflushed []string // keys that gather
	old       []string // keys that are moved: those that were not yet
	inOrder   bool     // old is: nothing is moved before
	oldBelow  uint64   // lines with lower numbers belong to the old generation
	doneBelow uint64   // and those below this one to an earlier one: all has been moved
	foundUpTo uint64   // lines with lower numbers were there when the file was opened
}

// gathered is where a record stands in the log.
type gathered struct {
	line  uint64
	value string // of small ones
}

// texts give many texts one piece of memory: whoever collects garbage would look at each of a
// hundred thousand that had its own, over and over.
type texts struct{ strings.Builder }

const textsAtOnce = 1 << 14 // bytes

func (t *texts) of(text string) string {
	if t.Cap()-t.Len() < len(text) {
		t.Reset()
		t.Grow(max(len(text), textsAtOnce))
	}
	from := t.Len()
	t.WriteString(text)
	return t.String()[from:]
}

// fresh is a key that was added, and the line where it stands now.
type fresh struct {
	key  string
	line uint64
}

func newBuffered(name, log []byte, small bool, g gathering) *buffered {
	return &buffered{
		name: name, log: log, small: small, gathering: cmp.Or(g, gathering{least: 1 << 10, most: 1 << 16}),
		gathers: make(map[string]gathered), added: make(map[string][]byte),
	}
}

// load reads what gathers; all of it is the old generation.
func (b *buffered) load(tx *bbolt.Tx) error {
	b.next = 1
	err := tx.Bucket(b.log).ForEach(func(k, line []byte) error {
		number, items, err := records.OpenLine(k, line)
		if err != nil {
			return err
		}
		b.next = number + 1
		return items.Each(func(key, value []byte) error {
			b.know(string(key), number, value)
			return nil
		})
	})
	b.old, b.oldBelow, b.foundUpTo = slices.Collect(maps.Keys(b.gathers)), b.next, b.next
	return err
}

// know notes where a record stands, by a key of its own, which it returns: the one that is given may be a part of a row's
// text, all of which would be kept with it.
func (b *buffered) know(key string, line uint64, value []byte) string {
	g := gathered{line: line}
	if b.small {
		g.value = b.texts.of(string(value))
	}
	own := b.texts.of(key)
	b.gathers[own] = g
	return own
}

// begin binds it to the next commit; a generation that is full becomes the old one.
func (b *buffered) begin(tx *bbolt.Tx, keys uint64) {
	b.in, b.lines = tx.Bucket(b.name), tx.Bucket(b.log)
	b.lines.FillPercent = 0.95
	b.places = b.placesIn(tx)
	clear(b.added)
	b.fresh, b.swept, b.deleted = b.fresh[:0], b.swept[:0], b.deleted[:0]
	b.turn(min(max(keys/gatherShare, b.least), b.most))
}

// turn makes the generation that gathers the old one, if that has been moved and so many
// are there.
func (b *buffered) turn(full uint64) {
	if len(b.old) > 0 {
		return
	}
	if b.doneBelow = b.oldBelow; uint64(len(b.unflushed)) < full {
		return
	}
	b.old, b.unflushed, b.inOrder = b.unflushed, nil, false
	b.oldBelow = b.next
}

func (b *buffered) find(key string) []byte {
	if value := b.added[key]; value != nil {
		return value
	}
	return b.places.find(key, b.gathers)
}

// insert adds the record of a key that has none. It stands until the commit.
func (b *buffered) insert(key string, value []byte) {
	if _, again := b.added[key]; !again {
		b.fresh = append(b.fresh, fresh{key: key})
	}
	b.added[key] = value
}

// put writes the record of a key into its place, or where it gathers. Nothing gathers anew;
// small records are never replaced.
func (b *buffered) put(key string, value []byte) error {
	if b.added[key] != nil {
		b.added[key] = value
		return nil
	}
	// What this commit took out of its line comes back into its place: the line knows it no more.
	if g, ok := b.gathers[key]; ok && find(b.inPlace, key) == nil && !slices.Contains(b.deleted, key) {
		return b.rewrite(g.line, key, value)
	}
	return b.in.Put([]byte(key), value)
}

func (b *buffered) delete(key string) error {
	if b.added[key] != nil {
		b.added[key] = nil
		return nil
	}
	if g, ok := b.gathers[key]; ok && !slices.Contains(b.swept, key) {
		b.deleted = append(b.deleted, key)
		if err := b.rewrite(g.line, key, nil); err != nil {
			return err
		}
	}
	return b.in.Delete([]byte(key))
}

// rewrite replaces one record of a line, or takes it out.
func (b *buffered) rewrite(number uint64, key string, value []byte) error {
	k := numberKey(number)
	_, items, err := records.OpenLine(k, b.lines.Get(k))
	if err != nil {
		return err
	}
	line := records.NewLine()
	err = items.Each(func(other, was []byte) error {
		switch {
		case string(other) != key:
			line = records.AppendItem(line, string(other), was)
		case value != nil:
			line = records.AppendItem(line, key, value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.lines.Put(k, records.Seal(line, 0, k))
}

// end moves twice as many records into their places as were added, so that the old generation
// has been moved before the new one is full, removes lines that are not needed any more, and
// writes what was added.
func (b *buffered) end() error {
	if len(b.fresh) == 0 {
		return nil
	}
	if err := errors.Join(b.move(2*len(b.fresh)), b.sweep(2*len(b.fresh))); err != nil {
		return err
	}
	var line []byte
	for i := range b.fresh {
		one := &b.fresh[i]
		if value := b.added[one.key]; value != nil {
			if len(line) == 0 {
				line = append(line, records.NewLine()...)
			}
			line = records.AppendItem(line, one.key, value)
			one.line = b.next
		}
		if len(line) < lineSize && i < len(b.fresh)-1 || len(line) == 0 {
			continue
		}
		k := numberKey(b.next)
		if err := b.lines.Put(k, records.Seal(line, 0, k)); err != nil {
			return err
		}
		b.next++
		line = make([]byte, 0, len(line))
	}
	return nil
}

// move puts up to n records into their places.
func (b *buffered) move(n int) error {
	if !b.inOrder {
		slices.Sort(b.old)
		b.inOrder = true
	}
	for ; n > 0 && len(b.old) > 0; n-- {
		key := b.old[0]
		b.old = b.old[1:]
		g, ok := b.gathers[key]
		switch {
		case !ok || g.line >= b.oldBelow || slices.Contains(b.deleted, key):
			continue // deleted, and perhaps added again
		case g.line < b.foundUpTo && find(b.inPlace, key) != nil:
			continue // the process before this one moved it
		}
		value := []byte(g.value)
		if !b.small {
			value = b.gathered(key, g)
		}
		if value == nil || !b.small && len(value) < records.SealSize {
			return records.ErrRecord
		}
		if err := b.in.Put([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes lines whose records have all been moved, of about n records.
func (b *buffered) sweep(n int) error {
	c := b.lines.Cursor()
	var gone []uint64
	for k, line := c.First(); k != nil && len(b.swept) < n && binary.BigEndian.Uint64(k) < b.doneBelow; k, line = c.Next() {
		number, items, err := records.OpenLine(k, line)
		if err != nil {
			return err
		}
		gone = append(gone, number)
		err = items.Each(func(key, _ []byte) error {
			if b.gathers[string(key)].line == number {
				b.swept = append(b.swept, string(key))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, number := range gone {
		if err := b.lines.Delete(numberKey(number)); err != nil {
			return err
		}
	}
	return nil
}

// drain moves some records and removes some lines, also those of the generation that gathers;
// done says that no line is left.
func (b *buffered) drain() (done bool, err error) {
	b.turn(0)
	if err := errors.Join(b.move(drainStep), b.sweep(drainStep)); err != nil {
		return false, err
	}
	k, _ := b.lines.Cursor().First()
	return k == nil, nil
}

// announce is called when all changes of a commit are made, before it can show, while nobody
// reads. What lines that go have held stands in its place for a commit at least.
func (b *buffered) announce() {
	for _, key := range b.swept {
		delete(b.gathers, key)
	}
	for _, one := range b.fresh {
		if one.line > 0 {
			b.unflushed = append(b.unflushed, b.know(one.key, one.line, b.added[one.key]))
		}
	}
}

// land is called once nobody reads the file as it was before the commit.
func (b *buffered) land() {
	for _, key := range b.deleted {
		if b.added[key] == nil {
			delete(b.gathers, key)
		}
	}
}

// places is where a transaction finds the records of a bucket that is buffered.
type places struct {
	inPlace, inLog *bbolt.Cursor
	sealed         bool // records carry checksums
}

func (b *buffered) placesIn(tx *bbolt.Tx) places {
	return places{tx.Bucket(b.name).Cursor(), tx.Bucket(b.log).Cursor(), !b.small}
}

// find returns the record of key, or nil; gathers is that of the bucket. What is damaged must read as damage, not as a key that
// nobody knows.
func (p *places) find(key string, gathers map[string]gathered) []byte {
	k, value := p.inPlace.Seek([]byte(key))
	if string(k) == key && value != nil {
		return value
	}
	if g, ok := gathers[key]; ok {
		return p.gathered(key, g)
	}
	if p.sealed && !p.within(key, k, value) {
		return []byte{0}
	}
	return nil
}

// within tells whether what stands before and behind the place of a key, which is not there, is whole and in order. Else the key
// itself, or the way to it, may be damaged.
func (p *places) within(key string, next, value []byte) bool {
	if next != nil && (string(next) <= key || !isWhole(next, value)) {
		return false
	}
	before, value := p.inPlace.Prev()
	return before == nil || string(before) < key && isWhole(before, value)
}

func isWhole(key, record []byte) bool {
	_, err := records.Unseal(key, record)
	return err == nil
}

// gathered returns the record of a key from the log, unchecked, or nil where this transaction
// does not see it.
func (p *places) gathered(key string, g gathered) (value []byte) {
	k := numberKey(g.line)
	line := find(p.inLog, string(k))
	if line == nil {
		if last, _ := p.inLog.Last(); last == nil || binary.BigEndian.Uint64(last) < g.line {
			return nil // a later commit wrote it
		}
		return []byte{0}
	}
	return records.ItemOf(line, key)
}

func numberKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }
