package bolt

import (
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
	inLinks    = []byte("links")       // external ID that a lead has or is to have, key → its checksum, unless they are equal
	inWanted   = []byte("wanted")      // the same of intents
	inFolds    = []byte("folds")       // fold of a key, key → its checksum, unless they are equal
	inWords    = []byte("words")       // number → word
	inNotes    = []byte("notes")       // name → JSON: runs, decisions, shapes, the lineage
	inBlocked  = []byte("blocked")     // keyed hash of a forgotten key → when
	newEntries = []byte("new entries") // number, key → new entry, see buffered
	newLeads   = []byte("new leads")   // the same of leads
)

// writing is the file inside one transaction that writes.
type writing struct {
	tally
	now     time.Time
	head    *header
	digests *checkpoint.Digester
	words   *records.Words
	vacant  map[string]bool // keys claimed while they had no entry: none is there until putEntry
	arena   []byte          // records live here until the commit: bbolt does not copy values

	tx                                  *bbolt.Tx
	meta, intents, links, wanted, folds *bbolt.Bucket
	entries, leads                      *buffered
	sent                                *bbolt.Cursor // of intents, for looking up: a bucket's own Get would make a new one each time
	last                                string        // the last key in entries when the commit began
}

func (d *Store) newWriting() writing {
	return writing{digests: d.digests, words: d.words, entries: d.entries, leads: d.leads, vacant: make(map[string]bool)}
}

// begin binds it to the buckets of tx as the next commit.
func (w *writing) begin(tx *bbolt.Tx, t tally, h *header, now time.Time) {
	w.tally, w.head, w.now, w.arena = t, h, now.UTC(), w.arena[:0]
	w.seq++
	w.tx, w.meta, w.intents = tx, tx.Bucket(inMeta), tx.Bucket(inIntents)
	w.links, w.wanted, w.folds = tx.Bucket(inLinks), tx.Bucket(inWanted), tx.Bucket(inFolds)
	w.sent = w.intents.Cursor()
	w.entries.begin(tx, w.total())
	w.leads.begin(tx, w.total())
	w.intents.FillPercent = 0.95                           // the last come behind the others mostly, and go soon
	w.leads.in.FillPercent, w.folds.FillPercent = 0.6, 0.6 // index records come many at a time, or in no order; measured
	last, _ := w.entries.in.Cursor().Last()
	w.last = string(last)
}

// setHeader changes what the file says of itself.
func (w *writing) setHeader(change func(*header)) error {
	h := *w.head
	change(&h)
	w.head = &h
	return w.meta.Put(headerKey, h.encode())
}

// in is a bucket that few commits need.
func (w *writing) in(bucket []byte) *bbolt.Bucket { return w.tx.Bucket(bucket) }

// end writes what belongs to every commit.
func (w *writing) end() error {
	if err := w.words.Store(w.in(inWords)); err != nil {
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
	fold := records.FoldKey(w.digests, key)
	switch {
	case fold == nil:
		return nil
	case was:
		return w.unlist(w.folds, fold)
	}
	return w.list(w.folds, fold)
}

// record is what stands in a bucket under a key.
type record struct{ key, value []byte }

// putEntry writes an entry. A new one gathers, unless it comes behind all others: then its
// page is at hand.
func (w *writing) putEntry(k *checkpoint.Kept, isNew bool) error {
	record := w.record(k)
	delete(w.vacant, k.Key)
	if isNew && k.Key <= w.last {
		return w.entries.insert(k.Key, record)
	}
	if isNew && k.Key > w.last {
		w.entries.in.FillPercent = 0.95 // half the file; for keys in between it would split pages all the time
	}
	return w.entries.put(k.Key, record)
}

func (w *writing) under(key string) (k checkpoint.KeptKey, err error) {
	if record := find(w.sent, key); record != nil {
		k.Intent, err = w.words.Kept(key, record)
	}
	if record := w.entry(key); record != nil && err == nil {
		k.Entry, err = w.words.Kept(key, record)
	}
	return k, err
}

// shown is what look-ups show of a key.
func (w *writing) shown(key string, k *checkpoint.KeptKey) *checkpoint.Kept {
	if shown := k.Shown(); shown != nil {
		return shown
	}
	none := &checkpoint.Kept{Entry: checkpoint.Entry{Key: key}}
	if w.keys[checkpoint.Forgotten] > 0 && w.in(inBlocked).Get(w.digests.Blocked(key)) != nil {
		none.State = checkpoint.Forgotten
	}
	return none
}

// Now is the time of the commit.
func (w *writing) Now() time.Time { return w.now }

// Keep is an entry or an intent as it is kept, with the number and the time of the commit.
func (w *writing) Keep(k checkpoint.Kept) *checkpoint.Kept {
	k.Seq = w.seq
	return k.Stamp(w.now)
}

// put has something else stand under a key than what stands there now.
func (w *writing) put(key string, was, is checkpoint.KeptKey) error {
	old, in := entryOf(was.Entry), entryOf(was.Intent)
	errs := [3]error{w.move(key, stateOf(&was), stateOf(&is))}
	switch {
	case is.Entry == was.Entry:
		if delete(w.vacant, key); is.Entry == nil && is.Intent != nil {
			w.vacant[key] = true
		}
	case is.Entry == nil:
		errs[1] = errors.Join(w.index(old, new(checkpoint.Entry)), w.entries.delete(key))
	default:
		errs[1] = errors.Join(w.index(old, &is.Entry.Entry), w.putEntry(is.Entry, was.Entry == nil))
	}
	switch {
	case is.Intent == was.Intent:
	case is.Intent == nil:
		errs[2] = errors.Join(w.reindex(w.wanted, wish(in), records.LinkKeys{}), w.intents.Delete([]byte(key)))
	default:
		errs[2] = errors.Join(w.reindex(w.wanted, wish(in), wish(&is.Intent.Entry)), w.intents.Put([]byte(key), w.record(is.Intent)))
	}
	return errors.Join(errs[:]...)
}

// wish is the index key of the external ID that an intent wants.
func wish(in *checkpoint.Entry) records.LinkKeys {
	return records.LinkKeys{records.LinkKey(in.WantLink, in.Key)}
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

// record is what is written of k. It stands until the commit.
func (w *writing) record(k *checkpoint.Kept) []byte {
	from := len(w.arena)
	w.arena = w.words.AppendKept(w.arena, k)
	return w.arena[from:len(w.arena):len(w.arena)]
}
