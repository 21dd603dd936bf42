package bolt

import (
	"context"

	"leadferry/checkpoint"
)

// Alone makes what f changes one commit, see [checkpoint.Store].
func (d *Store) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	return d.alone(func(w *writing) error { return f(&change{w, d}) })
}

// change is the file inside a commit, see [checkpoint.Tx].
type change struct {
	*writing
	d *Store
}

// Load has nothing to do: what is asked for is read from the file as it is asked for.
func (*change) Load([]string, []string) error { return nil }

// Held is never so: a file has one writer.
func (*change) Held(string) bool { return false }

// Under is what is stored under a key, and what look-ups show of it.
func (c *change) Under(key string) (k checkpoint.KeptKey, shown *checkpoint.Kept, err error) {
	k, err = c.under(key)
	return k, c.shown(key, &k), err
}

// Put stores something else under a key.
func (c *change) Put(key string, k checkpoint.KeptKey) error {
	was, err := c.under(key)
	if err != nil {
		return err
	}
	return c.put(key, was, k)
}

// Doubts stores something else under keys in doubt.
func (c *change) Doubts(f func(checkpoint.KeptKey) checkpoint.KeptKey) error {
	var keys []string
	err := c.intents.ForEach(func(k, _ []byte) error {
		keys = append(keys, string(k))
		return nil
	})
	for i := 0; i < len(keys) && err == nil; i++ {
		var was checkpoint.KeptKey
		if was, err = c.under(keys[i]); err == nil {
			if is := f(was); is != was {
				err = c.put(keys[i], was, is)
			}
		}
	}
	return err
}

// Notes are those whose names begin so.
func (c *change) Notes(prefix string) ([]checkpoint.Note, error) { return notesIn(c.tx, prefix) }

// Lack notes what is missing.
func (c *change) Lack(missing string) error {
	return c.setHeader(func(h *header) {
		if h.Lacks, h.Since = missing, c.seq; missing == "" {
			h.Since = 0
		}
	})
}

// Renew gives the file a new ID.
func (c *change) Renew() error {
	return c.setHeader(func(h *header) { h.ID, h.Moved, h.Filling = newID(), "", "" })
}

// Erase removes keys. Close compacts the file, so that the bytes are gone from its unused parts; if that fails, the
// next writer does it.
func (c *change) Erase(keys []string) error {
	for _, key := range keys {
		if err := c.eraseKey(key); err != nil {
			return err
		}
	}
	c.d.uncompacted = false
	return c.setHeader(func(h *header) { h.Erase = true })
}
