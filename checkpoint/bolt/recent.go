package bolt

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// gathering bounds a generation of recent entries: a share of all keys, between least and
// most. The zero value stands for defaults.
type gathering struct{ least, most uint64 }

const (
	gatherShare = 8
	lastStep    = 1 << 10 // records that one commit puts into their places when all have to go
)

func (g gathering) orDefault() gathering {
	if g == (gathering{}) {
		return gathering{least: 1 << 10, most: 1 << 16}
	}
	return g
}

// recent holds new entries in the order in which they come, until many are there. Keys and
// lead IDs come in any order: each entry and its index record in their own places would
// rewrite pages all over the file, and a commit waits for the disk to write them. So
// they are kept here first, in generations. While the new generation gathers, each commit
// moves a few records of the old one into their places: first the index records in the order
// of their lead IDs, then the entries in the order of their keys, which often share pages
// then. A record that was moved is void, and is removed by a later commit.
//
// An entry is either recent or in its place. Which are, a transaction tells by the stage that
// it sees; the maps only say where to look: they know every entry that is recent in any
// transaction that somebody reads, and perhaps more.
type recent struct {
	gathering

	mu     sync.RWMutex        // held by who reads from before its transaction to the end
	at     map[string]position // by key
	owners map[string]string   // lead index key → key

	// The writer's own.
	stage
	stored   stage
	bucket   *bbolt.Bucket
	cursor   *bbolt.Cursor
	added    map[string]position // by the commit under way, by key
	leading  map[string]string   // of added: lead index key → key
	placed   []position          // by the commit under way: they are in their places
	left     []position          // leads that the commit under way takes from entries
	gathered uint64              // entries of the new generation
	leads    []string            // of the old generation: index keys to be moved, in order
	keys     []string            // the same: keys of entries
}

// position is where an entry stands among the recent ones, with the index key of its lead.
type position struct {
	key, lead string
	number    uint64
}

// stage is how far entries have gone into their places. A record that is not void and whose
// number is below next is there.
type stage struct {
	next      uint64 // number of the next record; the first is 1
	voidBelow uint64 // records with lower numbers are void
	oldBelow  uint64 // those with lower numbers belong to the old generation …
	upTo      string // … and are void up to this key
}

var stageKey = []byte("recent")

func (s stage) encode() []byte {
	b := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, s.next), s.voidBelow), s.oldBelow)
	return seal(appendText(b, s.upTo), 0, stageKey)
}

func decodeStage(record []byte) (s stage, err error) {
	if record == nil {
		return stage{next: 1, voidBelow: 1, oldBelow: 1}, nil
	}
	f, err := unseal(stageKey, record)
	if err != nil {
		return s, err
	}
	s = stage{next: f.uint(), voidBelow: f.uint(), oldBelow: f.uint(), upTo: f.text()}
	return s, f.done()
}

func (s stage) void(number uint64, key string) bool {
	return number < s.voidBelow || number < s.oldBelow && key <= s.upTo
}

// load reads what the file holds.
func (r *recent) load(tx *bbolt.Tx) (err error) {
	r.at, r.owners = make(map[string]position), make(map[string]string)
	r.added, r.leading = make(map[string]position), make(map[string]string)
	if r.stage, err = decodeStage(tx.Bucket(inMeta).Get(stageKey)); err != nil {
		return err
	}
	r.stored = r.stage
	err = tx.Bucket(inRecent).ForEach(func(k, v []byte) error {
		number, key, record, err := openRecent(k, v)
		if err != nil || r.void(number, key) {
			return err
		}
		if _, twice := r.at[key]; twice || number >= r.next {
			return errRecord
		}
		r.know(position{key, leadOf(key, record), number})
		if number >= r.oldBelow {
			r.gathered++
		}
		return nil
	})
	r.line()
	return err
}

func (r *recent) know(p position) {
	r.at[p.key] = p
	if p.lead != "" {
		r.owners[p.lead] = p.key
	}
}

// line queues the old generation.
func (r *recent) line() {
	r.leads, r.keys = r.leads[:0], r.keys[:0]
	for key, p := range r.at {
		if p.number >= r.oldBelow {
			continue
		}
		if r.keys = append(r.keys, key); p.lead != "" {
			r.leads = append(r.leads, p.lead)
		}
	}
	slices.Sort(r.keys)
	slices.Sort(r.leads)
}

// begin binds it to the next commit; a generation that is full becomes the old one.
func (r *recent) begin(tx *bbolt.Tx, keys uint64) {
	r.bucket = tx.Bucket(inRecent)
	r.bucket.FillPercent = 0.95
	r.cursor = r.bucket.Cursor()
	r.placed, r.left = r.placed[:0], r.left[:0]
	clear(r.added)
	clear(r.leading)
	if r.gathered >= min(max(keys/gatherShare, r.least), r.most) {
		r.turn()
	}
}

// turn makes the generation that gathers the old one, unless that is still being moved.
func (r *recent) turn() {
	if len(r.keys) > 0 || r.gathered == 0 {
		return
	}
	r.voidBelow, r.upTo = r.oldBelow, ""
	r.oldBelow, r.gathered = r.next, 0
	r.line()
}

// where is where the writer finds key, if it is recent.
func (r *recent) where(key string) (p position, ok bool) {
	if p, ok = r.added[key]; ok {
		return p, true
	}
	p, ok = r.at[key]
	return p, ok && !r.void(p.number, key)
}

// owner is the key that may have a lead, as far as that is recent, for the writer.
func (r *recent) owner(lead string) string {
	if key, ok := r.leading[lead]; ok {
		return key
	}
	return r.owners[lead]
}

// find is what the writer finds under a key that is recent: an empty record of one that was
// deleted.
func (r *recent) find(key string) (record []byte, ok bool) {
	p, ok := r.where(key)
	if !ok {
		return nil, false
	}
	k := numberKey(p.number)
	return entryIn(k, find(r.cursor, string(k))), true
}

// put adds the record of an entry, or replaces it. An empty record stands for one that was
// deleted, until its turn comes.
func (r *recent) put(key string, record []byte) error {
	p := position{key, leadOf(key, record), r.next}
	if old, ok := r.where(key); ok {
		if p.number = old.number; old.lead != p.lead {
			r.left = append(r.left, old)
		}
	} else {
		r.next++
		r.gathered++
	}
	r.added[key] = p
	if p.lead != "" {
		r.leading[p.lead] = key
	}
	k := numberKey(p.number)
	value := append(appendText(make([]byte, 0, len(key)+len(record)+8), key), record...)
	return r.bucket.Put(k, seal(value, 0, k))
}

// flush puts three times as many records into their places as entries came, so that the
// old generation has been moved before the new one is full.
func (r *recent) flush(l *ledger) error { return r.place(l, 3*len(r.added)) }

// place puts up to n records into their places and removes as many void ones.
func (r *recent) place(l *ledger, n int) error {
	if err := r.sweep(n); err != nil {
		return err
	}
	if n > 0 && len(r.keys) > 0 {
		l.fillAfter(r.keys[0])
	}
	for ; n > 0 && len(r.leads)+len(r.keys) > 0; n-- {
		if err := r.placeOne(l); err != nil {
			return err
		}
	}
	if len(r.keys) == 0 {
		r.voidBelow, r.upTo = r.oldBelow, ""
	}
	if r.stage == r.stored {
		return nil
	}
	r.stored = r.stage
	return l.meta.Put(stageKey, r.encode())
}

// placeOne puts the next index record or entry into its place.
func (r *recent) placeOne(l *ledger) error {
	if len(r.leads) > 0 {
		lead := r.leads[0]
		r.leads = r.leads[1:]
		if p, ok := r.where(r.owner(lead)); ok && p.lead == lead { // else it has another one meanwhile
			return l.leads.Put([]byte(lead), []byte(p.key))
		}
		return nil
	}
	key := r.keys[0]
	r.keys = r.keys[1:]
	p, _ := r.where(key)
	k := numberKey(p.number)
	record := entryIn(k, find(r.cursor, string(k)))
	r.upTo = key
	if r.placed = append(r.placed, p); len(record) == 0 {
		return nil
	}
	if _, err := stateOf(key, record); err != nil {
		return err
	}
	return l.entries.Put([]byte(key), record)
}

// settleDown puts some entries into their places, also those of the new generation.
func (l *ledger) settleDown() error {
	l.recent.turn()
	return l.recent.place(l, lastStep)
}

// sweep removes up to n void records.
func (r *recent) sweep(n int) error {
	var gone [][]byte
	for k, _ := r.cursor.First(); k != nil && len(gone) < n && binary.BigEndian.Uint64(k) < r.voidBelow; k, _ = r.cursor.Next() {
		gone = append(gone, slices.Clone(k))
	}
	for _, k := range gone {
		if err := r.bucket.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// empty says that no record is left, void ones included.
func (r *recent) empty() bool {
	k, _ := r.cursor.First()
	return k == nil
}

// announce is called when all changes of a commit are made, before it can show.
func (r *recent) announce() {
	if len(r.added) == 0 {
		return
	}
	r.mu.Lock() // waits for those who read
	defer r.mu.Unlock()
	for _, p := range r.added {
		r.know(p)
	}
}

// land lets go of what the commit has put into its place, once nobody reads the file as it
// was before.
func (r *recent) land() {
	if len(r.placed)+len(r.left) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.left {
		if r.owners[p.lead] == p.key {
			delete(r.owners, p.lead)
		}
	}
	for _, p := range r.placed {
		delete(r.at, p.key)
		if r.owners[p.lead] == p.key {
			delete(r.owners, p.lead)
		}
	}
}

func numberKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// leadOf is the index key of the lead in the record of an entry, or nothing.
func leadOf(key string, record []byte) string {
	if len(record) < 4 {
		return ""
	}
	f := reader{b: record[3:]}
	f.statusKind()
	lead := f.rawText()
	if len(lead) <= 1 || len(lead) > maxIndexKey || isText(lead, []byte(key)) {
		return ""
	}
	return string(lead)
}

// entryIn is the record of the entry in a record of the bucket, unchecked; that of one that
// was deleted is empty. What is missing must read as damage, not as a key that nobody knows.
func entryIn(k, v []byte) []byte {
	f := reader{b: v[:max(len(v)-4, 0)]}
	if f.rawText(); len(f.b) > 0 {
		return f.b
	}
	if _, _, record, err := openRecent(k, v); err == nil {
		return record
	}
	return []byte{0}
}

// openRecent takes a record of the bucket apart: its number, and the key and the record
// of the entry.
func openRecent(k, v []byte) (number uint64, key string, record []byte, err error) {
	f, err := unseal(k, v)
	if err != nil || len(k) != 8 {
		return 0, "", nil, errRecord
	}
	key = f.text()
	if f.bad || !checkpoint.ValidKey(key) {
		return 0, "", nil, errRecord
	}
	return binary.BigEndian.Uint64(k), key, f.b, nil
}

// reading is a transaction that only reads.
type reading struct {
	tx *bbolt.Tx
	stage
	at              map[string]position // of recent
	owners          map[string]string
	entries, recent *bbolt.Cursor
}

// read is view for what asks for entries. The writer waits for it before it changes the maps.
func (d *Store) read(what string, f func(*reading) error) error {
	d.recent.mu.RLock()
	defer d.recent.mu.RUnlock()
	return d.view(what, func(tx *bbolt.Tx) error {
		r := &reading{tx: tx, at: d.recent.at, owners: d.recent.owners, entries: tx.Bucket(inEntries).Cursor(), recent: tx.Bucket(inRecent).Cursor()}
		var err error
		if r.stage, err = decodeStage(tx.Bucket(inMeta).Get(stageKey)); err != nil {
			return err
		}
		return f(r)
	})
}

// number is where to find key, if it is recent in this transaction.
func (r *reading) number(key string) (number uint64, ok bool) {
	p, ok := r.at[key]
	return p.number, ok && p.number < r.next && !r.void(p.number, key)
}

// entry returns the record of the entry of key, also below an intent, or nil.
func (r *reading) entry(key string) []byte {
	if number, ok := r.number(key); ok {
		k := numberKey(number)
		if record := entryIn(k, find(r.recent, string(k))); len(record) > 0 {
			return record
		}
		return nil
	}
	return find(r.entries, key)
}

// recentKeys are those of recent entries, in order.
func (r *reading) recentKeys() []string {
	keys := slices.Sorted(maps.Keys(r.at))
	return slices.DeleteFunc(keys, func(key string) bool { _, ok := r.number(key); return !ok })
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
	for len(o.rest) > 0 && (o.k == nil || o.rest[0] < string(o.k)) {
		key := o.rest[0]
		o.rest = o.rest[1:]
		if o.value = o.entry(key); o.value != nil {
			o.key = []byte(key)
			return
		}
	}
	o.key, o.value = o.k, o.v
	if o.k != nil {
		o.k, o.v = o.entries.Next()
	}
}
