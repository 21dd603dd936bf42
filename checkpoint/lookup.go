package checkpoint

import (
	"bytes"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// chunk is how many entries Each reads in one transaction.
const chunk = 512

// Lookup fills out[i] with what is known of keys[i], in one read transaction;
// out must be as long as keys. An intent hides an entry of the same key; a
// forgotten key has state Forgotten and nothing else. The slices of out's Content
// are used again.
func (d *DB) Lookup(keys []string, out []Entry) error {
	return d.read("look up keys", func(r *reading) error {
		f := d.finder(r)
		for i, key := range keys {
			if err := f.byKey(key, &out[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// find returns the record under exactly this key, and leaves the cursor at it.
func find(c *bolt.Cursor, key string) []byte {
	if k, v := c.Seek([]byte(key)); string(k) == key {
		return v
	}
	return nil
}

// Each calls f with every key in state s, or with all for Unknown, ordered by key;
// forgotten keys are not known any more. It reads some hundred at a time and holds no
// transaction while f runs, so f may call other methods; changes made meanwhile may be
// seen. An error of f ends it and is returned as it is.
func (d *DB) Each(s State, f func(Entry) error) error {
	return d.each(s, func(*Entry, *tail) bool { return true }, f)
}

// MadeBy is Each for leads that a run made, and for rows in doubt that it sent.
func (d *DB) MadeBy(run string, s State, f func(Entry) error) error {
	return d.each(s, func(e *Entry, t *tail) bool { return d.words.maker(e, t) == run }, f)
}

// maker is the run that made a lead, or sent what is in doubt.
func (w *words) maker(e *Entry, t *tail) string {
	if e.State == InDoubt || e.State.HasLead() && t.act&Made != 0 && t.act&Adopted == 0 {
		return e.Run
	}
	past, _ := w.events(t.past) // of a record that was decoded
	for _, ev := range slices.Backward(past) {
		if ev.Act&Made != 0 && ev.Act&Adopted == 0 && e.State.HasLead() {
			return ev.Run
		}
	}
	return ""
}

func (d *DB) each(s State, keep func(*Entry, *tail) bool, f func(Entry) error) error {
	var recent []string // keys, as of a commit
	commit := -1
	for after, more := []byte(nil), true; more; {
		var found []Entry
		err := d.read("read entries", func(r *reading) (err error) {
			if now := r.tx.ID(); now != commit {
				recent, commit = r.recentKeys(), now
			}
			found, after, err = d.collect(r, after, recent, s, keep)
			more = after != nil
			return err
		})
		if err != nil {
			return err
		}
		for _, e := range found {
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect reads up to chunk keys from key from on and returns the key to go on
// with, nil at the end.
func (d *DB) collect(r *reading, from []byte, recent []string, s State, keep func(*Entry, *tail) bool) (found []Entry, next []byte, err error) {
	intents := r.tx.Bucket(inIntents).Cursor()
	ik, iv := intents.Seek(from)
	entries := &ordered{}
	if s != InDoubt {
		entries = r.from(from, recent)
	}
	for n := 0; ik != nil || entries.key != nil; n++ {
		k, v := ik, iv
		order := compare(ik, entries.key)
		if order > 0 {
			k, v = entries.key, entries.value
		}
		if n == chunk {
			return found, bytes.Clone(k), nil
		}
		var e Entry
		t, err := d.words.decode(string(k), v, &e)
		if err != nil {
			return nil, nil, err
		}
		if (s == Unknown || s == e.State) && keep(&e, &t) {
			found = append(found, e)
		}
		if order <= 0 {
			ik, iv = intents.Next()
		}
		if order >= 0 && entries.key != nil {
			entries.next()
		}
	}
	return found, nil, nil
}

// compare orders keys; nil, the end, comes last.
func compare(a, b []byte) int {
	switch {
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return bytes.Compare(a, b)
}
