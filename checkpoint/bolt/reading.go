package bolt

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

type reading struct {
	d              *Store
	tx             *bbolt.Tx
	entries, leads places
}

// read is view for what asks for entries. The writer waits for it before it changes where they are found.
func (d *Store) read(what string, f func(*reading) error) error {
	d.readers.RLock()
	defer d.readers.RUnlock()
	return d.view(what, func(tx *bbolt.Tx) error {
		return f(&reading{d, tx, d.entries.placesIn(tx), d.leads.placesIn(tx)})
	})
}

// entry returns the record of the entry of key, also below an intent, or nil.
func (r *reading) entry(key string) []byte {
	// Keys mostly come in the order of the file before, which is often their own: then the next place holds it.
	if k, record := r.entries.inPlace.Next(); string(k) == key && record != nil {
		return record
	}
	return r.entries.find(key, r.d.entries.gathers)
}

// inChunk is how many keys are read in one transaction.
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

func (r *reading) under(key string) (checkpoint.KeptKey, error) {
	return kept(key, r.entry(key), r.tx.Bucket(inIntents).Get([]byte(key)))
}

// kept is what the records under a key say; either may be nil.
func kept(key string, entry, intent []byte) (k checkpoint.KeptKey, err error) {
	if k.Entry, err = records.Kept(key, entry); err == nil {
		k.Intent, err = records.Kept(key, intent)
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
	return d.read("look up leads", func(r *reading) error { return checkpoint.Find(d.finder(r), qs, out, how) })
}

// sources are where a transaction, of a reader or of the writer, finds what it asks for.
type sources struct {
	entry        func(key string) []byte // its record, also below an intent, or nil
	lead         func(key string) []byte // its record in the index of leads, or nil
	sent, linked *bbolt.Cursor           // of intents and links: a bucket's own Get would make a new one each time
}

// finder is the file inside one transaction, see [checkpoint.Finder].
type finder struct {
	*reading
	sources
	folds, blocked *bbolt.Cursor
	forgotten      bool // some key is
}

func (d *Store) finder(r *reading) *finder {
	cursor := func(name []byte) *bbolt.Cursor { return r.tx.Bucket(name).Cursor() }
	lead := func(key string) []byte { return r.leads.find(key, d.leads.gathers) }
	f := &finder{
		reading: r, sources: sources{r.entry, lead, cursor(inIntents), cursor(inLinks)},
		folds: cursor(inFolds), blocked: cursor(inBlocked),
	}
	block, _ := f.blocked.First()
	f.forgotten = block != nil
	return f
}

func (f *finder) Show(key string, out *checkpoint.Entry) error {
	record := exactly(f.sent, []byte(key))
	if record == nil {
		record = f.sources.entry(key)
	}
	if record != nil {
		return records.Decode(key, record, out)
	}
	*out = checkpoint.Entry{Key: key, Content: out.Content[:0]}
	if f.forgotten && exactly(f.blocked, f.d.digests.Blocked(key)) != nil {
		out.State = checkpoint.Forgotten
	}
	return nil
}

func (l *sources) Owner(id, _ string) (string, error) {
	lead := records.LeadKey(id)
	if lead == nil {
		return "", nil
	}
	indexed := l.lead(string(lead))
	if indexed == nil {
		return "", nil
	}
	key, err := records.Unseal(lead, indexed)
	return string(key), err
}

func (f *finder) Linked(external string) (key string, several bool, err error) {
	err = f.eachLinked(external, func(other string) bool {
		several = several || key != "" && key != other
		key = other
		return !several
	})
	return key, several, err
}

// eachLinked calls f with each key whose lead has an ExternalID, or is to have it, as long as f returns true.
func (l *sources) eachLinked(external string, f func(key string) bool) error {
	if !records.Indexed(external) {
		return nil
	}
	var e checkpoint.Entry
	// the indexes lack what equals its key
	for _, record := range [][]byte{l.entry(external), exactly(l.sent, []byte(external))} {
		if record == nil {
			continue
		}
		if err := records.Decode(external, record, &e); err != nil {
			return err
		}
		has, wants := e.State.HasLead(), e.State.HasLead() || e.State == checkpoint.InDoubt
		if (has && e.ExternalID == external || wants && e.WantLink == external) && !f(external) {
			return nil
		}
	}
	prefix := records.AppendText(nil, external)
	for k, _ := l.linked.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = l.linked.Next() {
		if !f(string(k[len(prefix):])) {
			return nil
		}
	}
	return nil
}

func (f *finder) Alike(folded string) (keys []string, forgotten bool) {
	prefix := records.FoldPrefix(f.d.digests, folded)
	for k, _ := f.folds.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = f.folds.Next() {
		keys = append(keys, string(k[len(prefix):]))
	}
	if !f.forgotten {
		return keys, false
	}
	hash := f.d.digests.Blocked(folded)
	prefix = records.ForgottenFold(hash, nil)
	k, _ := f.folds.Seek(prefix)
	return keys, bytes.HasPrefix(k, prefix) || exactly(f.blocked, hash) != nil // it is its own fold
}

// Contents are all that is known.
func (d *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	var forgotten []checkpoint.KeptBlock
	err := d.view("read forgotten keys", func(tx *bbolt.Tx) error {
		return tx.Bucket(inBlocked).ForEach(func(k, v []byte) error {
			b, err := records.DecodeBlock(bytes.Clone(k), bytes.Clone(v))
			forgotten = append(forgotten, b)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return checkpoint.ContentsOf(ctx, d, d.head.Load().Secret, forgotten)
}
