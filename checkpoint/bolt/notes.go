package bolt

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// noteKey is where a note is in its bucket. Its value is JSON, which no entry begins like.
func noteKey(name string) []byte { return []byte(notePrefix + name) }

const notePrefix = "note "

func decodeNote(key, record []byte) (n checkpoint.Note, err error) {
	name, is := strings.CutPrefix(string(key), notePrefix)
	f, err := records.Unseal(key, record)
	n = checkpoint.Note{Name: name, Value: bytes.Clone(f.Rest())}
	if err != nil || !is || !json.Valid(n.Value) {
		return n, records.ErrRecord
	}
	return n, nil
}

// notesIn are the notes whose names begin so, in order.
func notesIn(tx *bbolt.Tx, prefix string) (all []checkpoint.Note, err error) {
	c := tx.Bucket(inNotes).Cursor()
	from := noteKey(prefix)
	for k, v := c.Seek(from); bytes.HasPrefix(k, from); k, v = c.Next() {
		n, err := decodeNote(k, v)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// Notes returns those whose names begin so, see [checkpoint.Store].
func (d *Store) Notes(_ context.Context, prefix string) (all []checkpoint.Note, err error) {
	err = d.view("read notes", func(tx *bbolt.Tx) error {
		all, err = notesIn(tx, prefix)
		return err
	})
	return all, err
}

// Note is one as it is in the commit that is under way.
func (w *writing) Note(name string) ([]byte, error) {
	record := w.in(inNotes).Get(noteKey(name))
	if record == nil {
		return nil, nil
	}
	n, err := decodeNote(noteKey(name), record)
	return n.Value, err
}

// PutNote keeps a note, or takes it away.
func (w *writing) PutNote(n checkpoint.Note) error {
	key, b := noteKey(n.Name), w.in(inNotes)
	if b.Get(key) != nil {
		w.countNote(n.Name, -1)
	}
	if n.Value == nil {
		return b.Delete(key)
	}
	w.countNote(n.Name, 1)
	return b.Put(key, records.Seal(bytes.Clone(n.Value), 0, key))
}

// noteOnce keeps a note that is not there yet.
func (w *writing) noteOnce(n checkpoint.Note) error {
	if w.in(inNotes).Get(noteKey(n.Name)) != nil {
		return nil
	}
	return w.PutNote(n)
}

func (t *tally) countNote(name string, by int) {
	t.notes += uint64(by)
	if checkpoint.TellsOfLeads(name) {
		t.people += uint64(by)
	}
}
