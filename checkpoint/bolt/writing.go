package bolt

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"leadferry/checkpoint"
)

// writing is the file inside a transaction that writes, see [checkpoint.Tx].
type writing struct {
	reading
	head header
	now  time.Time
	last string // the last key in entries when the commit began
}

func (*writing) Load([]string, []string) error { return nil }

// Held returns false: a file has one writer.
func (*writing) Held(string) bool { return false }

func (w *writing) Now() time.Time { return w.now }

func (w *writing) Keep(k checkpoint.Kept) *checkpoint.Kept {
	k.Seq = w.head.Seq
	return k.Stamp(w.now)
}

func (w *writing) Put(key string, k checkpoint.KeptKey) error {
	was, err := w.under(key)
	if err != nil {
		return err
	}
	return w.put(key, was, k)
}

// put replaces what is stored under a key by is, and changes the counts and the indexes accordingly.
func (w *writing) put(key string, was, is checkpoint.KeptKey) error {
	w.head.Counts.move(entryOf(was.Shown()).State, entryOf(is.Shown()).State)
	return errors.Join(
		w.putEntry(key, was.Entry, is.Entry),
		w.putIntent(key, was.Intent, is.Intent),
		w.moveLead(leadKey(entryOf(was.Entry).LeadID), leadKey(entryOf(is.Entry).LeadID), key),
		w.follow(inLinks, linksOf(key, &was), linksOf(key, &is)),
		w.follow(inFolds, foldsOf(w.d.digests, key, &was), foldsOf(w.d.digests, key, &is)))
}

// putEntry writes an entry. A new entry gathers, unless it comes after all others: then its page is at hand.
func (w *writing) putEntry(key string, was, is *checkpoint.Kept) error {
	entries := w.d.entries
	switch {
	case is == was:
		return nil
	case is == nil:
		w.head.Counts.Entries--
		return entries.delete(key)
	case was != nil:
		return entries.put(key, encodeKept(is))
	}
	w.head.Counts.Entries++
	if key <= w.last {
		return entries.insert(key, encodeKept(is))
	}
	entries.in.FillPercent = 0.95 // halves the file; with keys in between, pages would be split all the time
	return entries.put(key, encodeKept(is))
}

func (w *writing) putIntent(key string, was, is *checkpoint.Kept) error {
	switch intents := w.tx.Bucket(inIntents); {
	case is == was:
		return nil
	case is == nil:
		return intents.Delete([]byte(key))
	default:
		return intents.Put([]byte(key), encodeKept(is))
	}
}

// moveLead gives key the lead ID of its entry in the index of leads, and takes the old lead ID away.
func (w *writing) moveLead(old, lead []byte, key string) (err error) {
	if bytes.Equal(old, lead) {
		return nil
	}
	if old != nil {
		w.head.Counts.Indexed--
		err = w.d.leads.delete(string(old))
	}
	if lead != nil {
		w.head.Counts.Indexed++
		err = errors.Join(err, w.d.leads.insert(string(lead), seal([]byte(key), lead)))
	}
	return err
}

// follow replaces the records was in an index by the records is.
func (w *writing) follow(index []byte, was, is []string) (err error) {
	b := w.tx.Bucket(index)
	for _, key := range was {
		if !slices.Contains(is, key) {
			w.head.Counts.Indexed--
			err = errors.Join(err, b.Delete([]byte(key)))
		}
	}
	for _, key := range is {
		if !slices.Contains(was, key) {
			w.head.Counts.Indexed++
			err = errors.Join(err, b.Put([]byte(key), seal(nil, []byte(key))))
		}
	}
	return err
}

func entryOf(k *checkpoint.Kept) *checkpoint.Entry {
	if k == nil {
		return new(checkpoint.Entry)
	}
	return &k.Entry
}

func (w *writing) InDoubt(after string) (keys []string, err error) {
	for k, _ := w.intents.Seek([]byte(after)); k != nil && len(keys) < inChunk; k, _ = w.intents.Next() {
		if string(k) != after {
			keys = append(keys, string(k))
		}
	}
	return keys, nil
}

// Erase removes keys. Close compacts the file, so that unused parts lose them too.
func (w *writing) Erase(keys []string) error {
	for _, key := range keys {
		if err := w.eraseKey(key); err != nil {
			return err
		}
	}
	w.d.leftover, w.head.Erase = false, true
	return nil
}

// eraseKey removes what is stored under a key, and its hash if it was forgotten before.
func (w *writing) eraseKey(key string) error {
	was, err := w.under(key)
	if err == nil {
		err = w.put(key, was, checkpoint.KeptKey{})
	}
	record := w.blockOf(key)
	if err != nil || record == nil {
		return err
	}
	b, err := decodeBlock(w.d.digests.Blocked(key), record)
	if err != nil {
		return err
	}
	w.head.Counts.move(checkpoint.Forgotten, checkpoint.Unknown)
	return errors.Join(w.tx.Bucket(inBlocked).Delete(b.Hash), w.follow(inFolds, foldsOfBlock(&b), nil))
}

func (w *writing) Block(b checkpoint.KeptBlock) error {
	if exactly(w.blocked, b.Hash) != nil { // a copy that was cut off has left it
		return nil
	}
	w.head.Counts.move(checkpoint.Unknown, checkpoint.Forgotten)
	return errors.Join(w.tx.Bucket(inBlocked).Put(b.Hash, encodeBlock(&b)), w.follow(inFolds, nil, foldsOfBlock(&b)))
}

func (w *writing) Lack(missing string) error {
	w.head.Lacks, w.head.Since = missing, w.head.Seq
	return nil
}

func (w *writing) Renew() error {
	w.head.ID, w.head.Moved, w.head.Filling = checkpoint.NewID(), "", ""
	return nil
}

func (w *writing) Note(name string) ([]byte, error) {
	return decodeNote(name, w.tx.Bucket(inNotes).Get([]byte(name)))
}

func (w *writing) PutNote(n checkpoint.Note) error {
	key, b := []byte(n.Name), w.tx.Bucket(inNotes)
	if b.Get(key) != nil {
		w.head.Counts.Notes--
	}
	if n.Value == nil {
		return b.Delete(key)
	}
	w.head.Counts.Notes++
	return b.Put(key, seal(bytes.Clone(n.Value), key))
}
