package bolt

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// gathering says when entries gather in recent. The zero value stands for defaults.
type gathering struct {
	from  uint64 // keys that are known; before that, pages are few anyway
	least uint64 // entries of a generation: a share of all, within these bounds
	most  uint64
}

const gatherShare = 16

func (g gathering) orDefault() gathering {
	if g == (gathering{}) {
		return gathering{from: 1 << 14, least: 1 << 10, most: 1 << 16}
	}
	return g
}

// recent holds entries whose keys come in no order, until many are there. Each in its
// own place would rewrite pages of every level of the tree, all over the file, and a
// commit waits for the disk to write them. Here they stand in the order in which they
// came. A generation gathers; of the one before, each commit that adds some puts a few,
// by the order of their keys, into their places, which often share pages then; the
// records of the one before that are void and go.
//
// An entry is either recent or in its place. A key has one record here at most that is
// not void: one that is replaced or deleted is removed, one that has gone into its place
// becomes void. Which are, stage tells.
type recent struct {
	gathering

	// What readers see, with what bbolt calls the commits, of which a transaction shows
	// one. The maps change under the lock alone.
	mu     sync.RWMutex
	landed atomic.Int64      // the last commit: at fits
	coming atomic.Int64      // the one that may show any moment now: at with shown fits
	at     map[string]uint64 // key → number of its record
	shown  map[string]uint64 // what the coming commit changes; nil: nothing

	// The writer's own.
	stage
	stored  stage
	bucket  *bbolt.Bucket
	cursor  *bbolt.Cursor
	changed map[string]uint64 // by the commit under way; 0: gone
	next    uint64            // number of the next record; the first is 1
	filling uint64            // entries of the generation that gathers
	queue   []string          // keys of the generation before that wait, in order; some may be gone
	added   int               // since the last commit
}

// stage is how far entries have gone into their places. A key that comes again afterwards
// gets a number of the generation that gathers.
type stage struct {
	cleared uint64 // records with lower numbers are void
	turned  uint64 // those with lower numbers belong to the generation that goes …
	mark    string // … and are void up to this key
}

var stageKey = []byte("recent")

func (s stage) encode() []byte {
	b := binary.AppendUvarint(binary.AppendUvarint(nil, s.cleared), s.turned)
	return seal(appendText(b, s.mark), 0, stageKey)
}

func decodeStage(record []byte) (s stage, err error) {
	if record == nil {
		return stage{cleared: 1, turned: 1}, nil
	}
	f, err := unseal(stageKey, record)
	if err != nil {
		return s, err
	}
	s = stage{cleared: f.uint(), turned: f.uint(), mark: f.text()}
	return s, f.done()
}

func (s stage) void(number uint64, key string) bool {
	return number < s.cleared || number < s.turned && key <= s.mark
}

// load reads what the file holds.
func (r *recent) load(tx *bbolt.Tx) (err error) {
	r.at, r.changed = make(map[string]uint64), make(map[string]uint64)
	r.landed.Store(int64(tx.ID()))
	r.coming.Store(int64(tx.ID()))
	if r.stage, err = decodeStage(tx.Bucket(inMeta).Get(stageKey)); err != nil {
		return err
	}
	r.stored, r.next = r.stage, r.turned
	err = tx.Bucket(inRecent).ForEach(func(k, v []byte) error {
		number, key, _, err := openRecent(k, v)
		if err != nil {
			return err
		}
		r.next = max(r.next, number+1)
		if r.void(number, key) {
			return nil
		}
		if _, twice := r.at[key]; twice {
			return errRecord
		}
		r.at[key] = number
		if number >= r.turned {
			r.filling++
		}
		return nil
	})
	r.line()
	return err
}

// line queues the generation that goes.
func (r *recent) line() {
	r.queue = r.queue[:0]
	for key, number := range r.at {
		if number < r.turned {
			r.queue = append(r.queue, key)
		}
	}
	slices.Sort(r.queue)
}

// begin binds it to the next commit, and lets a full generation go; that stands also
// when the commit is not made, for it changes nothing that is stored.
func (r *recent) begin(tx *bbolt.Tx, keys uint64) {
	r.bucket = tx.Bucket(inRecent)
	r.bucket.FillPercent = 0.95
	r.cursor = r.bucket.Cursor()
	clear(r.changed)
	if r.filling >= min(max(keys/gatherShare, r.least), r.most) {
		r.turn()
	}
}

// turn lets the generation that gathers go, unless the one before is still going.
func (r *recent) turn() {
	if len(r.queue) > 0 || r.filling == 0 {
		return
	}
	r.clear()
	r.turned, r.filling = r.next, 0
	r.line()
}

// clear makes the records of the generation that has gone void.
func (r *recent) clear() { r.cleared, r.mark = r.turned, "" }

// number is where the writer finds key, if it is recent.
func (r *recent) number(key string) (number uint64, ok bool) { return numberOf(key, r.changed, r.at) }

// numberOf is the number of the record of key in at, after what a commit has changed.
func numberOf(key string, changed, at map[string]uint64) (number uint64, ok bool) {
	if number, ok = changed[key]; ok {
		return number, number > 0
	}
	number, ok = at[key]
	return number, ok
}

// find is what the writer finds under key, or nil.
func (r *recent) find(key string) []byte {
	if number, ok := r.number(key); ok {
		return entryIn(find(r.cursor, string(numberKey(number))))
	}
	return nil
}

// put adds the record of an entry.
func (r *recent) put(key string, record []byte) error {
	if err := r.drop(key); err != nil {
		return err
	}
	number := numberKey(r.next)
	value := append(appendText(make([]byte, 0, len(key)+len(record)+8), key), record...)
	r.changed[key] = r.next
	r.next++
	r.filling++
	r.added++
	return r.bucket.Put(number, seal(value, 0, number))
}

// drop removes the record of key, if there is one.
func (r *recent) drop(key string) error {
	number, ok := r.number(key)
	if !ok {
		return nil
	}
	if number >= r.turned {
		r.filling--
	}
	r.changed[key] = 0
	return r.bucket.Delete(numberKey(number))
}

// settle puts twice as many entries into their places as came since the last commit,
// so that a generation has gone before the next one is full.
func (r *recent) settle(entries, meta *bbolt.Bucket) error {
	n := 2 * r.added
	r.added = 0
	return r.place(entries, meta, n)
}

// place puts up to n entries into their places and removes as many void records.
func (r *recent) place(entries, meta *bbolt.Bucket, n int) error {
	if err := r.sweep(n); err != nil {
		return err
	}
	for ; n > 0 && len(r.queue) > 0; n-- {
		key := r.queue[0]
		r.queue = r.queue[1:]
		number, ok := r.number(key)
		if !ok || number >= r.turned {
			continue // gone, or come again, meanwhile
		}
		record := r.find(key)
		if _, err := stateOf(key, record); err != nil {
			return err
		}
		if err := entries.Put([]byte(key), record); err != nil {
			return err
		}
		r.changed[key], r.mark = 0, key
	}
	if len(r.queue) == 0 {
		r.clear()
	}
	if r.stage == r.stored {
		return nil
	}
	r.stored = r.stage
	return meta.Put(stageKey, r.encode())
}

// settleDown puts some entries into their places, also those that still gather.
func (l *ledger) settleDown() error {
	l.recent.turn()
	if err := l.recent.place(l.entries, l.meta, lastStep); err != nil {
		return err
	}
	return l.recent.sweep(lastStep)
}

// sweep removes up to n void records of the generation that has gone.
func (r *recent) sweep(n int) error {
	var gone [][]byte
	for k, _ := r.cursor.First(); k != nil && len(gone) < n && binary.BigEndian.Uint64(k) < r.cleared; k, _ = r.cursor.Next() {
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

// announce is called when all changes of the commit txid are made, before it can show:
// readers meet it while it still waits for the disk.
func (r *recent) announce(txid int) {
	if len(r.changed) > 0 {
		r.mu.Lock() // waits for those who read
		defer r.mu.Unlock()
		r.shown = r.changed
	}
	r.coming.Store(int64(txid))
}

// land takes over what the announced commit has changed.
func (r *recent) land() {
	if r.shown == nil {
		r.landed.Store(r.coming.Load())
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.landed.Store(r.coming.Load())
	for key, number := range r.shown {
		if number == 0 {
			delete(r.at, key)
		} else {
			r.at[key] = number
		}
	}
	r.shown = nil
}

func numberKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// entryIn is the record of the entry in a record of the bucket, unchecked. It is never
// nil: what is missing must read as damage, not as a key that nobody knows.
func entryIn(v []byte) []byte {
	f := reader{b: v[:max(len(v)-4, 0)]}
	f.rawText()
	if f.b == nil {
		return []byte{}
	}
	return f.b
}

// openRecent takes a record of the bucket apart: its number, and the key and the record
// of the entry.
func openRecent(k, v []byte) (number uint64, key string, record []byte, err error) {
	f, err := unseal(k, v)
	if err != nil || len(k) != 8 {
		return 0, "", nil, errRecord
	}
	key = f.text()
	if f.bad || !validKey(key) {
		return 0, "", nil, errRecord
	}
	return binary.BigEndian.Uint64(k), key, f.b, nil
}
