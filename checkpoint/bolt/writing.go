package bolt

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// The buckets of the file.
var (
	inMeta    = []byte("meta")    // header and tally
	inEntries = []byte("entries") // key → entry
	inIntents = []byte("intents") // key → intent; small, so that what was in flight is found at once
	inLeads   = []byte("leads")   // lead ID → key
	// external ID of a lead, or wanted for one, key → its checksum, unless they are equal
	inLinks    = []byte("links")
	inFolds    = []byte("folds")       // fold of a key, key → its checksum, unless they are equal
	inNotes    = []byte("notes")       // name → JSON: runs, decisions, shapes, the lineage
	inBlocked  = []byte("blocked")     // keyed hash of a forgotten key → when
	newEntries = []byte("new entries") // number, key → new entry, see buffered
	newLeads   = []byte("new leads")   // the same of leads
)

// writing is the file inside one transaction that writes, see [checkpoint.Tx].
type writing struct {
	d *Store
	tally
	now  time.Time
	head *header

	tx                          *bbolt.Tx
	meta, intents, links, folds *bbolt.Bucket
	entries, leads              *buffered
	sources
	last string // the last key in entries when the commit began
}

// begin binds it to the buckets of tx as the next commit.
func (w *writing) begin(tx *bbolt.Tx, t tally, h *header, now time.Time) {
	w.tally, w.head, w.now = t, h, now.UTC()
	w.seq++
	w.tx, w.meta, w.intents = tx, tx.Bucket(inMeta), tx.Bucket(inIntents)
	w.links, w.folds = tx.Bucket(inLinks), tx.Bucket(inFolds)
	w.sources = sources{w.entries.find, w.leads.find, w.intents.Cursor(), w.links.Cursor()}
	w.entries.begin(tx, w.total())
	w.leads.begin(tx, w.total())
	w.intents.FillPercent = 0.95 // the last come behind the others mostly, and go soon
	// index records come many at a time, or in no order; measured
	w.leads.in.FillPercent, w.folds.FillPercent = 0.6, 0.6
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

func (d *Store) setHeader(change func(*header)) error {
	return d.alone(func(w *writing) error { return w.setHeader(change) })
}

// in is a bucket that few commits need.
func (w *writing) in(bucket []byte) *bbolt.Bucket { return w.tx.Bucket(bucket) }

func (w *writing) Under(key string) (k checkpoint.KeptKey, shown *checkpoint.Kept, err error) {
	if k, err = w.under(key); err != nil {
		return k, nil, err
	}
	if shown = k.Shown(); shown == nil {
		shown = &checkpoint.Kept{Entry: checkpoint.Entry{Key: key}}
		if w.keys[checkpoint.Forgotten] > 0 && w.in(inBlocked).Get(w.d.digests.Blocked(key)) != nil {
			shown.State = checkpoint.Forgotten
		}
	}
	return k, shown, nil
}

func (w *writing) Now() time.Time { return w.now }

func (w *writing) Keep(k checkpoint.Kept) *checkpoint.Kept {
	k.Seq = w.seq
	return k.Stamp(w.now)
}

// put has something else under a key than what is there now.
func (w *writing) put(key string, was, is checkpoint.KeptKey) error {
	errs := []error{w.reindex(key, &was, &is)}
	switch {
	case is.Entry == was.Entry:
	case is.Entry == nil:
		errs = append(errs, w.entries.delete(key))
	default:
		errs = append(errs, w.putEntry(is.Entry, was.Entry == nil))
	}
	switch {
	case is.Intent == was.Intent:
	case is.Intent == nil:
		errs = append(errs, w.intents.Delete([]byte(key)))
	default:
		errs = append(errs, w.intents.Put([]byte(key), w.record(is.Intent)))
	}
	return errors.Join(errs...)
}

// putEntry writes an entry. A new one gathers, unless it comes behind all others: then its page is at hand.
func (w *writing) putEntry(k *checkpoint.Kept, isNew bool) error {
	if isNew && k.Key <= w.last {
		return w.entries.insert(k.Key, w.record(k))
	}
	if isNew {
		w.entries.in.FillPercent = 0.95 // half the file; for keys in between it would split pages all the time
	}
	return w.entries.put(k.Key, w.record(k))
}

func (w *writing) record(k *checkpoint.Kept) []byte {
	return appendKept(make([]byte, 0, 256), k)
}

// reindex has the counts and the indexes follow what is under a key.
func (w *writing) reindex(key string, was, is *checkpoint.KeptKey) error {
	w.tally.move(stateOf(was), stateOf(is))
	old, e := entryOf(was.Entry), entryOf(is.Entry)
	oldLinks, links := linksOf(key, was), linksOf(key, is)
	errs := []error{
		w.list(w.links, without(links, oldLinks)...), w.unlist(w.links, without(oldLinks, links)...),
		w.moveLead(leadKey(old.LeadID), leadKey(e.LeadID), key),
	}
	if known := is.Shown() != nil; known != (was.Shown() != nil) {
		if fold := foldKey(w.d.digests, key); fold != nil && known {
			errs = append(errs, w.list(w.folds, fold))
		} else if fold != nil {
			errs = append(errs, w.unlist(w.folds, fold))
		}
	}
	return errors.Join(errs...)
}

func without(all, others [][]byte) [][]byte {
	return slices.DeleteFunc(slices.Clone(all), func(one []byte) bool {
		return slices.ContainsFunc(others, func(other []byte) bool { return bytes.Equal(one, other) })
	})
}

// moveLead has the index of leads follow the lead ID of key's entry.
func (w *writing) moveLead(old, lead []byte, key string) (err error) {
	if bytes.Equal(old, lead) {
		return nil
	}
	if old != nil {
		w.indexed--
		err = w.leads.delete(string(old))
	}
	if lead != nil {
		w.indexed++
		err = errors.Join(err, w.leads.insert(string(lead), seal([]byte(key), 0, lead)))
	}
	return err
}

func (w *writing) list(index *bbolt.Bucket, keys ...[]byte) (err error) {
	for _, key := range keys {
		if index.Get(key) == nil {
			w.indexed++
			err = errors.Join(err, index.Put(key, sealedKey(key)))
		}
	}
	return err
}

func (w *writing) unlist(index *bbolt.Bucket, keys ...[]byte) (err error) {
	for _, key := range keys {
		if index.Get(key) != nil {
			w.indexed--
			err = errors.Join(err, index.Delete(key))
		}
	}
	return err
}

// stateOf is what look-ups show of a key that was not forgotten.
func stateOf(k *checkpoint.KeptKey) checkpoint.State { return entryOf(k.Shown()).State }

func entryOf(k *checkpoint.Kept) *checkpoint.Entry {
	if k == nil {
		return new(checkpoint.Entry)
	}
	return &k.Entry
}

func (w *writing) Linked(external, key string) (string, error) {
	all, err := w.linkedTo(external)
	for _, other := range all {
		if other != key {
			return other, err
		}
	}
	return "", err
}

// eraseKey removes what is stored under a key, and its hash if it was forgotten before.
func (w *writing) eraseKey(key string) error {
	was, shown, err := w.Under(key)
	if err != nil {
		return err
	}
	if shown.State != checkpoint.Forgotten {
		return w.put(key, was, checkpoint.KeptKey{})
	}
	w.tally.move(checkpoint.Forgotten, checkpoint.Unknown)
	hash := w.d.digests.Blocked(key)
	fold := forgottenFold(w.d.digests.Blocked(rowkey.Fold(key)), hash)
	return errors.Join(w.in(inBlocked).Delete(hash), w.unlist(w.folds, fold))
}

func (w *writing) Block(b checkpoint.KeptBlock) error {
	w.tally.move(checkpoint.Unknown, checkpoint.Forgotten)
	if len(b.Fold) > 0 {
		if err := w.list(w.folds, forgottenFold(b.Fold, b.Hash)); err != nil {
			return err
		}
	}
	return w.in(inBlocked).Put(b.Hash, encodeBlock(b))
}
