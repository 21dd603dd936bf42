package bolt

import (
	"context"

	"leadferry/checkpoint"
)

// Alone makes what f changes one commit, see [checkpoint.Store].
func (d *Store) Alone(_ context.Context, f func(checkpoint.Tx) error) error {
	return d.alone(func(w *writing) error { return f(w) })
}

// Load has nothing to do: what is asked for is read from the file as it is asked for.
func (*writing) Load([]string, []string) error { return nil }

// Held is never so: a file has one writer.
func (*writing) Held(string) bool { return false }

// Put stores something else under a key.
func (w *writing) Put(key string, k checkpoint.KeptKey) error {
	was, _, err := w.Under(key)
	if err != nil {
		return err
	}
	return w.put(key, was, k)
}

// Doubts stores something else under keys in doubt.
func (w *writing) Doubts(f func(checkpoint.KeptKey) checkpoint.KeptKey) error {
	var keys []string
	err := w.intents.ForEach(func(k, _ []byte) error {
		keys = append(keys, string(k))
		return nil
	})
	for i := 0; i < len(keys) && err == nil; i++ {
		var was checkpoint.KeptKey
		if was, _, err = w.Under(keys[i]); err == nil {
			if is := f(was); is != was {
				err = w.put(keys[i], was, is)
			}
		}
	}
	return err
}

// Notes are those whose names begin so.
func (w *writing) Notes(prefix string) ([]checkpoint.Note, error) { return notesIn(w.tx, prefix) }

// Lack notes what is missing.
func (w *writing) Lack(missing string) error {
	return w.setHeader(func(h *header) {
		if h.Lacks, h.Since = missing, w.seq; missing == "" {
			h.Since = 0
		}
	})
}

// Renew gives the file a new ID.
func (w *writing) Renew() error {
	return w.setHeader(func(h *header) { h.ID, h.Moved, h.Filling = newID(), "", "" })
}

// Erase removes keys. Close compacts the file, so that the bytes are gone from its unused parts; if that fails, the
// next writer does it.
func (w *writing) Erase(keys []string) error {
	for _, key := range keys {
		if err := w.eraseKey(key); err != nil {
			return err
		}
	}
	w.d.uncompacted = false
	return w.setHeader(func(h *header) { h.Erase = true })
}
