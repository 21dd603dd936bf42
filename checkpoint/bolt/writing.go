package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/failpoint"
)

// Commit makes changes durable in one transaction, see [checkpoint.Store]. bbolt is fastest in the order of keys.
func (d *Store) Commit(_ context.Context, changes []*checkpoint.Change) error {
	if len(changes) == 0 {
		return nil
	}
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) })
	err := d.transact(kindOf(changes), func(w *writing) error {
		for _, c := range sorted {
			if err := w.apply(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		d.changed.Store(true)
	}
	return err
}

// kindOf names a commit for [failpoint.At], by the change in it whose kind comes first.
func kindOf(changes []*checkpoint.Change) string {
	first := slices.MinFunc(changes, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Kind, b.Kind) })
	return [...]string{"claim", "withdrawal", "settle", "mark"}[first.Kind]
}

// Alone makes the changes of f one commit, see [checkpoint.Store].
func (d *Store) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	return d.transact("other", func(w *writing) error { return f(w) })
}

func (d *Store) setHeader(change func(*header)) error {
	return d.transact("other", func(w *writing) error { change(&w.head); return nil })
}

// transact makes the changes of f durable, while nobody else commits. After an error the checkpoint is broken: the
// failed commit may be in the file, and a later one might succeed by chance. A refusal only undoes the changes.
func (d *Store) transact(kind string, f func(*writing) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.o.ReadOnly:
		return checkpoint.ErrReadOnly
	case d.failed() != nil:
		return d.failed()
	case d.closed.Load():
		return checkpoint.ErrClosed
	}
	failpoint.At("commit " + kind)
	var w *writing
	err := guard(func() error {
		return d.bolt.Update(func(tx *bbolt.Tx) error {
			w = d.begin(tx)
			if err := f(w); err != nil {
				return err
			}
			return w.end()
		})
	})
	if err != nil {
		clear(d.claimed)
	}
	if checkpoint.Refuses(err) {
		return err
	}
	if err != nil {
		return d.fail(fmt.Errorf("write checkpoint %s: %w", d.path, err))
	}
	failpoint.At("durable " + kind)
	d.head.Store(&w.head)
	if err := d.inPlace(); err != nil { // nobody will find the file with this commit
		return d.fail(err)
	}
	d.testimony.Load().Reached(d.Progress())
	return nil
}

// begin binds the next commit to tx.
func (d *Store) begin(tx *bbolt.Tx) *writing {
	w := &writing{head: *d.head.Load(), now: d.o.Now().UTC()}
	w.head.Seq++
	d.entries.begin(tx, w.head.Counts.Entries)
	d.leads.begin(tx, w.head.Counts.Entries)
	w.reading = d.readingIn(tx, d.entries.find, d.leads.find)
	tx.Bucket(inIntents).FillPercent = 0.95 // new intents mostly come after all others, and are removed soon
	// records of indexes come in no order, or many at a time; these values were measured
	tx.Bucket(inLeads).FillPercent, tx.Bucket(inFolds).FillPercent = 0.6, 0.6
	last, _ := tx.Bucket(inEntries).Cursor().Last()
	w.last = string(last)
	return w
}

// end writes what belongs to every commit, and tells readers where records are now. That is right even before they see
// the commit: a line leaves the log only after an earlier commit has put its record in its place.
func (w *writing) end() error {
	d := w.d
	if err := errors.Join(d.entries.end(), d.leads.end(), w.head.putIn(w.tx)); err != nil {
		return err
	}
	d.readers.Lock()
	defer d.readers.Unlock()
	d.entries.announce()
	d.leads.announce()
	return nil
}

// apply makes one change. A refusal goes into the change's Err; a returned error is an error of the file.
func (w *writing) apply(c *checkpoint.Change) error {
	if note := w.d.digests.ShapeNote(c.Shape); note.Name != "" && w.tx.Bucket(inNotes).Get([]byte(note.Name)) == nil {
		if err := w.PutNote(note); err != nil {
			return err
		}
	}
	key := c.Entry.Key
	was, old, err := w.Under(key)
	if err != nil {
		return err
	}
	is := was
	err = is.Apply(w, c, old)
	switch {
	case err == nil:
		err = w.put(key, was, is)
		if c.Kind == checkpoint.Claim {
			w.d.claimed[key] = is
		}
		return err
	case checkpoint.IsRefusal(err):
		c.Err = err
		return nil
	}
	return err
}

// writing is the file inside a transaction that writes, see [checkpoint.Tx].
type writing struct {
	reading
	head header
	now  time.Time
	last string // the last key in entries when the commit began
}

func (*writing) Load([]string, []string) error { return nil }

// OtherMaySend returns false: a file has one writer.
func (*writing) OtherMaySend(string) bool { return false }

func (w *writing) Now() time.Time { return w.now }

func (w *writing) Seq() uint64 { return w.head.Seq }

func (w *writing) Put(key string, k checkpoint.KeptKey) error {
	was, err := w.under(key)
	if err != nil {
		return err
	}
	return w.put(key, was, k)
}

// Under has claims of this process in memory: to read one back would take as long as to write its outcome.
func (w *writing) Under(key string) (checkpoint.KeptKey, *checkpoint.Kept, error) {
	if k, has := w.d.claimed[key]; has {
		return k, k.Intent, nil
	}
	return w.reading.Under(key)
}

// put replaces what is stored under a key, was by is, and changes the counts and the indexes accordingly.
func (w *writing) put(key string, was, is checkpoint.KeptKey) error {
	delete(w.d.claimed, key)
	w.head.Counts.move(entryOf(was.Shown()).State, entryOf(is.Shown()).State)
	return errors.Join(w.putEntry(key, was.Entry, is.Entry), w.putIntent(key, was.Intent, is.Intent),
		w.moveLead(leadKey(entryOf(was.Entry).LeadID), leadKey(entryOf(is.Entry).LeadID), key),
		w.reindex(inLinks, linksOf(key, &was), linksOf(key, &is)),
		w.reindex(inFolds, foldsOf(key, &was), foldsOf(key, &is)))
}

// putEntry writes an entry. A new entry goes to the log, unless its key comes after all others.
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
	entries.in.FillPercent = 0.95 // halves the file; it would split pages all the time if keys came in between
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

// moveLead makes the index of leads name key for the ID lead, and no longer for the ID old. nil: no ID.
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

// reindex replaces the records was in an index by the records is.
func (w *writing) reindex(index []byte, was, is []string) (err error) {
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
	return errors.Join(w.tx.Bucket(inBlocked).Delete(b.Hash), w.reindex(inFolds, foldsOfBlock(&b), nil))
}

func (w *writing) Block(b checkpoint.KeptBlock) error {
	w.head.Counts.move(checkpoint.Unknown, checkpoint.Forgotten)
	err := w.tx.Bucket(inBlocked).Put(b.Hash, seal(checkpoint.Encode(&b), b.Hash))
	return errors.Join(err, w.reindex(inFolds, nil, foldsOfBlock(&b)))
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
