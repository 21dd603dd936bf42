package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// The buckets of the file.
var (
	inMeta     = []byte("meta")        // header and tally
	inEntries  = []byte("entries")     // key → entry
	inIntents  = []byte("intents")     // key → intent; small, so that what was in flight is found at once
	inLeads    = []byte("leads")       // lead ID → key, unless they are equal
	inLinks    = []byte("links")       // external ID that a lead has or is to have, key → nothing, unless they are equal
	inWanted   = []byte("wanted")      // the same of intents
	inFolds    = []byte("folds")       // fold of a key, key → nothing, unless they are equal; see move
	inWords    = []byte("words")       // number → word
	inRuns     = []byte("runs")        // number → run
	inAudit    = []byte("audit")       // number → decision, or what contradicts one
	inNotes    = []byte("notes")       // digest of a shape → shape
	inBlocked  = []byte("blocked")     // keyed hash of a forgotten key → when
	newEntries = []byte("new entries") // number → some new records of entries, see buffered
	newLeads   = []byte("new leads")   // the same of leads
)

// states is how many there are.
const states = int(checkpoint.Forgotten) + 1

var tallyKey = []byte("tally")

// tally counts commits, keys by the state that a look-up shows, words, runs,
// decisions, their contradictions and notes. It shows when a damaged page has lost some.
type tally struct {
	seq            uint64
	keys           [states]uint64
	words          uint64
	runs           uint64
	decisions      uint64
	contradictions uint64
	notes          uint64
	statuses       [records.KindsOfStatus]uint64 // leads by the status last confirmed
}

func (t tally) encode() []byte {
	b := binary.AppendUvarint(nil, t.seq)
	for _, n := range t.keys {
		b = binary.AppendUvarint(b, n)
	}
	for _, n := range append([]uint64{t.words, t.runs, t.decisions, t.contradictions, t.notes}, t.statuses[:]...) {
		b = binary.AppendUvarint(b, n)
	}
	return records.Seal(b, 0, tallyKey)
}

func decodeTally(record []byte) (t tally, err error) {
	f, err := records.Unseal(tallyKey, record)
	if err != nil {
		return t, err
	}
	t.seq = f.Uint()
	for i := range t.keys {
		t.keys[i] = f.Uint()
	}
	t.words, t.runs, t.decisions, t.contradictions, t.notes = f.Uint(), f.Uint(), f.Uint(), f.Uint(), f.Uint()
	for i := range t.statuses {
		t.statuses[i] = f.Uint()
	}
	return t, f.Done()
}

// total is the number of keys that are known.
func (t *tally) total() (n uint64) {
	for _, keys := range t.keys {
		n += keys
	}
	return n
}

// move counts a key from one state to another; Unknown is not counted.
func (t *tally) move(from, to checkpoint.State) {
	if from != checkpoint.Unknown {
		t.keys[from]--
	}
	if to != checkpoint.Unknown {
		t.keys[to]++
	}
}

// writing is the file inside one transaction that writes.
type writing struct {
	tally
	now     time.Time
	digests *checkpoint.Digester
	words   *records.Words
	vacant  map[string]bool // keys claimed while they had no entry: none is there until putEntry
	arena   []byte          // records live here until the commit: bbolt does not copy values
	batch   *indexBatch     // unless nil, takes index records

	meta, intents, links, wanted, folds, runs, audit, blocked, notes *bbolt.Bucket
	entries, leads                                                   *buffered
	sent                                                             *bbolt.Cursor // of intents, for looking up: a bucket's own Get would make a new one each time
	last                                                             string        // the last key in entries when the commit began
}

func (d *Store) newWriting() writing {
	return writing{digests: d.digests, words: d.words, entries: d.entries, leads: d.leads, vacant: make(map[string]bool)}
}

// begin binds it to the buckets of tx as the next commit.
func (w *writing) begin(tx *bbolt.Tx, t tally, now time.Time) {
	w.tally, w.now, w.arena, w.batch = t, now.UTC(), w.arena[:0], nil
	w.seq++
	w.meta, w.intents = tx.Bucket(inMeta), tx.Bucket(inIntents)
	w.links, w.wanted, w.folds = tx.Bucket(inLinks), tx.Bucket(inWanted), tx.Bucket(inFolds)
	w.runs, w.audit, w.blocked, w.notes = tx.Bucket(inRuns), tx.Bucket(inAudit), tx.Bucket(inBlocked), tx.Bucket(inNotes)
	w.sent = w.intents.Cursor()
	w.entries.begin(tx, w.total())
	w.leads.begin(tx, w.total())
	w.intents.FillPercent = 0.95                           // the last come behind the others mostly, and go soon
	w.leads.in.FillPercent, w.folds.FillPercent = 0.7, 0.7 // index records come many at a time, or in no order; measured
	last, _ := w.entries.in.Cursor().Last()
	w.last = string(last)
}

// end writes what belongs to every commit.
func (w *writing) end(tx *bbolt.Tx) error {
	if err := w.words.Store(tx.Bucket(inWords)); err != nil {
		return err
	}
	if err := errors.Join(w.entries.end(), w.leads.end()); err != nil {
		return err
	}
	w.tally.words = uint64(w.words.Count())
	return w.meta.Put(tallyKey, w.tally.encode())
}

// drain moves some of what gathers, and is done when nothing of it is left in the log.
func (w *writing) drain() (done bool, err error) {
	entries, err := w.entries.drain()
	leads, failed := w.leads.drain()
	return entries && leads, errors.Join(err, failed)
}

// state returns what a look-up of key would show.
func (w *writing) state(key string) (checkpoint.State, error) {
	if find(w.sent, key) != nil {
		return checkpoint.InDoubt, nil
	}
	s, err := records.StateOf(key, w.entry(key))
	if s == checkpoint.Unknown && err == nil && w.keys[checkpoint.Forgotten] > 0 && w.blocked.Get(w.digests.Blocked(key)) != nil {
		return checkpoint.Forgotten, nil
	}
	return s, err
}

// entry returns the record of the entry of key, also below an intent, or nil.
func (w *writing) entry(key string) []byte {
	if w.vacant[key] {
		return nil
	}
	return w.entries.find(key)
}

// move counts a key from one state to another, and keeps the index of folds in step.
func (w *writing) move(key string, from, to checkpoint.State) error {
	w.tally.move(from, to)
	was, is := from != checkpoint.Unknown && from != checkpoint.Forgotten, to != checkpoint.Unknown && to != checkpoint.Forgotten
	if was == is {
		return nil
	}
	record := records.FoldKey(w.digests, key)
	switch {
	case record == nil:
		return nil
	case was:
		return w.folds.Delete(record)
	case w.batch != nil:
		w.batch.folds = append(w.batch.folds, indexRecord{key: record})
		return nil
	}
	return w.folds.Put(record, nil)
}

// indexBatch is where index records gather while many entries are written at once, for bbolt
// likes them in order.
type indexBatch struct{ leads, links, folds []indexRecord }

type indexRecord struct{ key, value []byte }

// putEntry writes an entry. A new one gathers, unless it comes behind all others: then its
// page is at hand.
func (w *writing) putEntry(e *checkpoint.Entry, t records.Tail, isNew bool) error {
	record := w.record(e, t)
	delete(w.vacant, e.Key)
	if isNew && w.batch == nil && e.Key <= w.last {
		w.entries.insert(e.Key, record)
		return nil
	}
	if isNew && e.Key > w.last {
		w.entries.in.FillPercent = 0.95 // half the file; for keys in between it would split pages all the time
	}
	return w.entries.put(e.Key, record)
}

// putIntent writes an intent in place of the old one; the zero Entry is none.
func (w *writing) putIntent(old, e *checkpoint.Entry, t records.Tail) error {
	return errors.Join(w.want(old, e), w.intents.Put([]byte(e.Key), w.record(e, t)))
}

func (w *writing) deleteIntent(old *checkpoint.Entry) error {
	delete(w.vacant, old.Key)
	return errors.Join(w.want(old, new(checkpoint.Entry)), w.intents.Delete([]byte(old.Key)))
}

// want brings the index of wanted external IDs in step with an intent that another one
// replaces.
func (w *writing) want(old, e *checkpoint.Entry) error {
	before, now := records.LinkKey(old.WantLink, old.Key), records.LinkKey(e.WantLink, e.Key)
	var errs [2]error
	if before != nil && !bytes.Equal(before, now) {
		errs[0] = w.wanted.Delete(before)
	}
	if now != nil && !bytes.Equal(before, now) {
		errs[1] = w.wanted.Put(now, nil)
	}
	return errors.Join(errs[:]...)
}

// under is what stands under a key.
func (w *writing) under(key string) (k checkpoint.KeptKey, err error) {
	if k.Intent, err = w.words.Kept(key, find(w.sent, key)); err == nil {
		k.Entry, err = w.words.Kept(key, w.entry(key))
	}
	return k, err
}

// put has something else stand under a key than what stands there now.
func (w *writing) put(key string, was, is checkpoint.KeptKey) error {
	errs := []error{w.move(key, stateOf(&was), stateOf(&is))}
	switch {
	case is.Entry != nil:
		e := is.Entry.Entry
		errs = append(errs, w.replace(entryOf(was.Entry), &e, w.words.TailOf(is.Entry)))
	case was.Entry != nil:
		errs = append(errs, w.unindex(entryOf(was.Entry)), w.entries.delete(key))
	}
	switch {
	case is.Intent != nil:
		e := is.Intent.Entry
		errs = append(errs, w.putIntent(entryOf(was.Intent), &e, w.words.TailOf(is.Intent)))
	case was.Intent != nil:
		errs = append(errs, w.deleteIntent(entryOf(was.Intent)))
	}
	return errors.Join(errs...)
}

// stateOf is what look-ups show of a key that was not forgotten.
func stateOf(k *checkpoint.KeptKey) checkpoint.State { return entryOf(k.Shown()).State }

// entryOf is the entry of k; the zero Entry stands for none.
func entryOf(k *checkpoint.Kept) *checkpoint.Entry {
	if k == nil {
		return new(checkpoint.Entry)
	}
	return &k.Entry
}

// record is what is written of e now. It stands until the commit.
func (w *writing) record(e *checkpoint.Entry, t records.Tail) []byte {
	e.Seq = w.seq
	if e.Updated.IsZero() {
		e.Updated = w.now
	}
	e.Updated = time.UnixMilli(e.Updated.UnixMilli()).UTC()
	from := len(w.arena)
	w.arena = w.words.AppendEntry(w.arena, e, t)
	return w.arena[from:len(w.arena):len(w.arena)]
}

// intent returns the intent of key; its State is Unknown when there is none.
func (w *writing) intent(key string) (e checkpoint.Entry, t records.Tail, err error) {
	record := find(w.sent, key)
	if record == nil {
		return e, t, nil
	}
	t, err = w.words.Decode(key, record, &e)
	return e, t, err
}

// known returns the entry of key, below an intent too; its State is Unknown when
// there is none.
func (w *writing) known(key string) (e checkpoint.Entry, t records.Tail, err error) {
	record := w.entry(key)
	if record == nil {
		return e, t, nil
	}
	t, err = w.words.Decode(key, record, &e)
	return e, t, err
}
