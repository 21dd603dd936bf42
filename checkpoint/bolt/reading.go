package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"leadferry/checkpoint"
)

// reading answers look-ups inside one transaction, of a reader or of the writer. See [checkpoint.Finder].
type reading struct {
	d     *Store
	tx    *bbolt.Tx
	entry func(key string) []byte // the record of a key's entry, even if an intent hides it, or nil
	lead  func(key string) []byte // the record of a leadKey in the index of leads, or nil
	// cursors are used again: Bucket.Get would make a new one each time
	intents, links, folds, blocked *bbolt.Cursor
	unknown                        checkpoint.Kept     // what Under shows of an unknown key, until its next call
	rooms                          [2]*checkpoint.Kept // for entry and intent of one key at a time; nil: each gets its own
}

func (d *Store) readingIn(tx *bbolt.Tx, entry, lead func(string) []byte) reading {
	cursor := func(name []byte) *bbolt.Cursor { return tx.Bucket(name).Cursor() }
	none, own := checkpoint.Kept{}, [2]*checkpoint.Kept{}
	return reading{d, tx, entry, lead, cursor(inIntents), cursor(inLinks), cursor(inFolds), cursor(inBlocked), none, own}
}

// read calls f in one transaction. bbolt's values must not leave f. The writer waits for f before it moves entries.
func (d *Store) read(what string, f func(*reading) error) error {
	if err := d.failed(); err != nil {
		return err
	}
	d.readers.RLock()
	defer d.readers.RUnlock()
	err := guard(func() error {
		return d.bolt.View(func(tx *bbolt.Tx) error { return f(d.readingNow(tx)) })
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return checkpoint.ErrClosed
	}
	return d.fail(fmt.Errorf("%s in checkpoint %s: %w", what, d.path, err))
}

func (d *Store) readingNow(tx *bbolt.Tx) *reading {
	entries, leads := d.entries.placesIn(tx), d.leads.placesIn(tx)
	entry := func(key string) []byte {
		// Keys often come in order: then the cursor's next record is that of this key.
		if k, record := entries.inPlace.Next(); string(k) == key && record != nil {
			return record
		}
		return entries.find(key, d.entries.gathers[key])
	}
	lead := func(key string) []byte { return leads.find(key, d.leads.gathers[key]) }
	r := d.readingIn(tx, entry, lead)
	return &r
}

const inChunk = 512

// Scan calls f with what is stored under each key, see [checkpoint.Store]. It holds no transaction while f runs.
func (d *Store) Scan(ctx context.Context, which checkpoint.Filter, f func(checkpoint.KeptKey) error) error {
	var gathered []string // keys in the log, in order, as of the commit below
	commit := -1
	for from, more := which.From, true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var found []checkpoint.KeptKey
		err := d.read("read entries", func(r *reading) error {
			if now := r.tx.ID(); now != commit {
				gathered, commit = slices.Sorted(maps.Keys(d.entries.gathers)), now
			}
			keys := r.chunk(from, gathered, which.State != checkpoint.InDoubt)
			if more = len(keys) > inChunk; more {
				from, keys = keys[inChunk], keys[:inChunk]
			}
			for _, key := range keys {
				k, err := r.under(key)
				if err != nil {
					return err
				}
				if k.Shown() != nil { // else the key was deleted, and gathered still has it
					found = append(found, k)
				}
			}
			return nil
		})
		for i := 0; i < len(found) && err == nil; i++ {
			err = f(found[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) under(key string) (k checkpoint.KeptKey, err error) {
	if k.Entry, err = decodeKept(key, r.entry(key), r.rooms[0]); err == nil {
		k.Intent, err = decodeKept(key, exactly(r.intents, []byte(key)), r.rooms[1])
	}
	return k, err
}

// chunk returns the next keys from a key on, in order, and the first key of the next chunk. It takes keys with an
// intent and, if all is set, also keys with an entry, in its place or in the log.
func (r *reading) chunk(from string, gathered []string, all bool) (keys []string) {
	buckets := [][]byte{inIntents}
	if all {
		buckets = append(buckets, inEntries)
		at, _ := slices.BinarySearch(gathered, from)
		keys = append(keys, gathered[at:min(at+inChunk+1, len(gathered))]...)
	}
	for _, name := range buckets {
		c := r.tx.Bucket(name).Cursor()
		k, _ := c.Seek([]byte(from))
		for n := 0; k != nil && n <= inChunk; n++ {
			keys = append(keys, string(k))
			k, _ = c.Next()
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	return keys[:min(len(keys), inChunk+1)]
}

// Find looks for the lead of each Query in one read transaction, see [checkpoint.Store].
func (d *Store) Find(_ context.Context, qs []checkpoint.Query) error {
	return d.read("look up leads", func(r *reading) error {
		r.rooms = [2]*checkpoint.Kept{new(checkpoint.Kept), new(checkpoint.Kept)}
		return checkpoint.Find(r, qs)
	})
}

func (r *reading) Show(key string, out *checkpoint.Entry) error {
	_, shown, err := r.Under(key)
	if err == nil {
		*out = shown.Entry
	}
	return err
}

// Under returns what is stored under a key, and what look-ups show of it, see [checkpoint.Tx].
func (r *reading) Under(key string) (k checkpoint.KeptKey, shown *checkpoint.Kept, err error) {
	if k, err = r.under(key); err != nil {
		return k, nil, err
	}
	if shown = k.Shown(); shown == nil {
		shown = &r.unknown
		*shown = checkpoint.Kept{Entry: checkpoint.Entry{Key: key}}
		if r.blockOf(key) != nil {
			shown.State = checkpoint.Forgotten
		}
	}
	return k, shown, nil
}

func (r *reading) Owner(id, _ string) (string, error) {
	lead := leadKey(id)
	if lead == nil {
		return "", nil
	}
	indexed := r.lead(string(lead))
	if indexed == nil {
		return "", nil
	}
	key, err := unseal(lead, indexed)
	return string(key), err
}

func (r *reading) LinkOwners(external, key string) (others []string, err error) {
	if !hasIndex(external) {
		return nil, nil
	}
	own, err := r.under(external) // the index has no record if ExternalID and key are equal
	if own.OwnsLink(external) && external != key {
		others = append(others, external)
	}
	prefix := checkpoint.AppendText(nil, external)
	for k, _ := r.links.Seek(prefix); bytes.HasPrefix(k, prefix) && len(others) < 2; k, _ = r.links.Next() {
		if other := string(k[len(prefix):]); other != key {
			others = append(others, other)
		}
	}
	return others, err
}

func (r *reading) Alike(folded string) (keys []string, forgotten bool) {
	prefix := checkpoint.AppendText(nil, folded)
	for k, _ := r.folds.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = r.folds.Next() {
		keys = append(keys, string(k[len(prefix):]))
	}
	if r.forgetsNone() {
		return keys, false
	}
	prefix = forgottenFold(r.d.digests.Blocked(folded))
	k, _ := r.folds.Seek(prefix)
	return keys, bytes.HasPrefix(k, prefix) || r.blockOf(folded) != nil // a forgotten key that is its own fold
}

// forgetsNone reports whether no key was forgotten. Then no key need be hashed, which takes longer than a look-up.
func (r *reading) forgetsNone() bool { first, _ := r.blocked.First(); return first == nil }

// blockOf returns the record of a key that was forgotten, or nil.
func (r *reading) blockOf(key string) []byte {
	if r.forgetsNone() {
		return nil
	}
	return exactly(r.blocked, r.d.digests.Blocked(key))
}

// Notes returns the notes whose names have a prefix, see [checkpoint.Store].
func (d *Store) Notes(_ context.Context, prefix string) (all []checkpoint.Note, err error) {
	err = d.read("read notes", func(r *reading) error { all, err = r.Notes(prefix); return err })
	return all, err
}

func (r *reading) Notes(prefix string) (all []checkpoint.Note, err error) {
	c, from := r.tx.Bucket(inNotes).Cursor(), []byte(prefix)
	for k, v := c.Seek(from); k != nil && bytes.HasPrefix(k, from) && err == nil; k, v = c.Next() {
		n := checkpoint.Note{Name: string(k)}
		n.Value, err = decodeNote(n.Name, v)
		all = append(all, n)
	}
	return all, err
}

// decodeNote returns the value of a note; nil if record is nil.
func decodeNote(name string, record []byte) ([]byte, error) {
	if record == nil {
		return nil, nil
	}
	value, err := unseal([]byte(name), record)
	return bytes.Clone(value), err
}

// Contents returns all that is known.
func (d *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	var forgotten []checkpoint.KeptBlock
	err := d.read("read forgotten keys", func(r *reading) error {
		return r.tx.Bucket(inBlocked).ForEach(func(k, v []byte) error {
			b, err := decodeBlock(k, v)
			forgotten = append(forgotten, b)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return checkpoint.ContentsOf(ctx, d, d.head.Load().Secret, forgotten)
}
