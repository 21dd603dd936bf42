package bolt

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// sources are where a transaction, of a reader or of the writer, finds what it asks for.
type sources struct {
	entry        func(key string) []byte // its record, also below an intent, or nil
	lead         func(key string) []byte // its record in the index of leads, or nil
	sent, linked *bbolt.Cursor           // of intents and links: a bucket's own Get would make a new one each time
}

// reading is the file inside one transaction that reads, see [checkpoint.Finder].
type reading struct {
	d  *Store
	tx *bbolt.Tx
	sources
	folds, blocked *bbolt.Cursor
	forgotten      bool // some key is
}

// read is view for what asks for entries. The writer waits for it before it changes where they are found.
func (d *Store) read(what string, f func(*reading) error) error {
	d.readers.RLock()
	defer d.readers.RUnlock()
	return d.view(what, func(tx *bbolt.Tx) error {
		entries, leads := d.entries.placesIn(tx), d.leads.placesIn(tx)
		entry := func(key string) []byte {
			// Keys mostly come in the order of the file before, which is often their own: then the next place holds it.
			if k, record := entries.inPlace.Next(); string(k) == key && record != nil {
				return record
			}
			return entries.find(key, d.entries.gathers)
		}
		lead := func(key string) []byte { return leads.find(key, d.leads.gathers) }
		cursor := func(name []byte) *bbolt.Cursor { return tx.Bucket(name).Cursor() }
		r := &reading{
			d: d, tx: tx, sources: sources{entry, lead, cursor(inIntents), cursor(inLinks)},
			folds: cursor(inFolds), blocked: cursor(inBlocked),
		}
		block, _ := r.blocked.First()
		r.forgotten = block != nil
		return f(r)
	})
}

const inChunk = 512

// Scan calls f with what is stored under each key, see [checkpoint.Store]. It holds no transaction while f runs.
func (d *Store) Scan(ctx context.Context, which checkpoint.Filter, f func(checkpoint.KeptKey) error) error {
	var gathered []string // keys in the log, in order, as of a commit
	commit := -1
	for from, more := "", true; more; {
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
				if which.Skip != nil && which.Skip(key) {
					continue
				}
				k, err := r.under(key)
				if err != nil {
					return err
				}
				if k.Shown() != nil { // else it is gone, and its line in the log is there still
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

func (l *sources) under(key string) (k checkpoint.KeptKey, err error) {
	if k.Entry, err = decodeKept(key, l.entry(key)); err == nil {
		k.Intent, err = decodeKept(key, exactly(l.sent, []byte(key)))
	}
	return k, err
}

// chunk are the next keys from one on, in order, the first one of the next chunk with them: those with an intent or, of
// all, also those with an entry, in its place or gathered.
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

// Under is what is stored under a key, see [checkpoint.Store].
func (d *Store) Under(_ context.Context, key string) (k checkpoint.KeptKey, err error) {
	err = d.read("read a key", func(r *reading) error {
		k, err = r.under(key)
		return err
	})
	return k, err
}

// Find looks for the lead of each Query in one read transaction, see [checkpoint.Store].
func (d *Store) Find(_ context.Context, qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error {
	return d.read("look up leads", func(r *reading) error { return checkpoint.Find(r, qs, out, how) })
}

func (r *reading) Show(key string, out *checkpoint.Entry) error {
	record := exactly(r.sent, []byte(key))
	if record == nil {
		record = r.entry(key)
	}
	if record != nil {
		return decodeEntry(key, record, out)
	}
	*out = checkpoint.Entry{Key: key, Content: out.Content[:0]}
	if r.forgotten && exactly(r.blocked, r.d.digests.Blocked(key)) != nil {
		out.State = checkpoint.Forgotten
	}
	return nil
}

func (l *sources) Owner(id, _ string) (string, error) {
	lead := leadKey(id)
	if lead == nil {
		return "", nil
	}
	indexed := l.lead(string(lead))
	if indexed == nil {
		return "", nil
	}
	key, err := unseal(lead, indexed)
	return string(key), err
}

func (r *reading) Linked(external string) (key string, several bool, err error) {
	all, err := r.linkedTo(external)
	if len(all) > 0 {
		key = all[0]
	}
	return key, len(all) > 1, err
}

// linkedTo are two of the keys whose lead has an ExternalID, or is to have it, or as many as there are.
func (l *sources) linkedTo(external string) (keys []string, err error) {
	if !hasIndex(external) {
		return nil, nil
	}
	own, err := l.under(external) // the index lacks what equals its key
	if own.Linked(external) {
		keys = append(keys, external)
	}
	prefix := appendText(nil, external)
	for k, _ := l.linked.Seek(prefix); bytes.HasPrefix(k, prefix) && len(keys) < 2; k, _ = l.linked.Next() {
		keys = append(keys, string(k[len(prefix):]))
	}
	return keys, err
}

func (r *reading) Alike(folded string) (keys []string, forgotten bool) {
	prefix := foldPrefix(r.d.digests, folded)
	for k, _ := r.folds.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = r.folds.Next() {
		keys = append(keys, string(k[len(prefix):]))
	}
	if !r.forgotten {
		return keys, false
	}
	hash := r.d.digests.Blocked(folded)
	prefix = forgottenFold(hash, nil)
	k, _ := r.folds.Seek(prefix)
	return keys, bytes.HasPrefix(k, prefix) || exactly(r.blocked, hash) != nil // it is its own fold
}

// Contents are all that is known.
func (d *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	var forgotten []checkpoint.KeptBlock
	err := d.view("read forgotten keys", func(tx *bbolt.Tx) error {
		return tx.Bucket(inBlocked).ForEach(func(k, v []byte) error {
			b, err := decodeBlock(bytes.Clone(k), bytes.Clone(v))
			forgotten = append(forgotten, b)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return checkpoint.ContentsOf(ctx, d, d.head.Load().Secret, forgotten)
}
