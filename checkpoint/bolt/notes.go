package bolt

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// of keys in the bucket: nothing else that has a checksum begins so and is so long
const notePrefix = "note "

// note is a record of the bucket of notes.
type note struct {
	key, namespace string
	columns        []byte // their digests in order, one after another
}

func (n *note) encode(key []byte) []byte {
	b := records.AppendText(records.AppendText(nil, n.key), n.namespace)
	return records.Seal(append(b, n.columns...), 0, key)
}

func decodeNote(key, record []byte) (n note, err error) {
	f, err := records.Unseal(key, record)
	if err != nil || !bytes.HasPrefix(key, []byte(notePrefix)) || len(key) != len(notePrefix)+len(checkpoint.Digest{}) {
		return n, records.ErrRecord
	}
	n = note{key: f.Text(), namespace: f.Text()}
	n.columns = f.Rest()
	if f.Bad || len(n.columns) == 0 || len(n.columns)%checkpoint.ColumnSize != 0 {
		return n, records.ErrRecord
	}
	return n, nil
}

// noteOf is the record of a shape and its key; nil of a shape without columns, which says
// nothing.
func noteOf(d *checkpoint.Digester, s *checkpoint.Shape) (key []byte, n note) {
	digests := make([][]byte, 0, len(s.Columns))
	for _, name := range s.Columns {
		digests = append(digests, d.Column(name))
	}
	slices.SortFunc(digests, bytes.Compare)
	n = note{key: s.Key, namespace: s.Namespace}
	n.columns = bytes.Join(slices.CompactFunc(digests, bytes.Equal), nil)
	if len(n.columns) == 0 {
		return nil, n
	}
	sum := d.Sum(append(records.AppendText(records.AppendText([]byte(notePrefix), n.key), n.namespace), n.columns...))
	return append([]byte(notePrefix), sum[:]...), n
}

// putNote keeps a shape by which rows are about to be made leads, once.
func (w *writing) putNote(s *checkpoint.Shape) error {
	key, n := noteOf(w.digests, s)
	if key == nil || w.notes.Get(key) != nil {
		return nil
	}
	w.tally.notes++
	return w.notes.Put(key, n.encode(key))
}

// Noted reports whether leads were made by this very shape; else kin are all of which the
// columns include its own, or are included in them.
func (d *Store) Noted(_ context.Context, s checkpoint.Shape) (known bool, kin []checkpoint.Kin, err error) {
	key, own := noteOf(d.digests, &s)
	if key == nil {
		return false, nil, nil
	}
	err = d.view("read notes", func(tx *bbolt.Tx) error {
		if known = tx.Bucket(inNotes).Get(key) != nil; known {
			return nil
		}
		return tx.Bucket(inNotes).ForEach(func(k, v []byte) error {
			n, err := decodeNote(k, v)
			if err != nil {
				return err
			}
			both := shared(own.columns, n.columns)
			if both < len(n.columns) && both < len(own.columns) {
				return nil
			}
			kin = append(kin, checkpoint.Kin{Key: n.key, Namespace: n.namespace, Strange: d.beyond(s.Columns, n.columns), Lacking: (len(n.columns) - both) / checkpoint.ColumnSize})
			return nil
		})
	})
	return known, kin, err
}

// beyond are the names of which the digest is none of columns.
func (d *Store) beyond(names []string, columns []byte) (strange []string) {
	for _, name := range names {
		if !includes(columns, d.digests.Column(name)) {
			strange = append(strange, name)
		}
	}
	return strange
}

// shared is how many bytes of digests two shapes have in common.
func shared(a, b []byte) (n int) {
	for ; len(a) > 0; a = a[checkpoint.ColumnSize:] {
		if includes(b, a[:checkpoint.ColumnSize]) {
			n += checkpoint.ColumnSize
		}
	}
	return n
}

func includes(columns, digest []byte) bool {
	count := len(columns) / checkpoint.ColumnSize
	at := sort.Search(count, func(i int) bool {
		return bytes.Compare(columns[i*checkpoint.ColumnSize:(i+1)*checkpoint.ColumnSize], digest) >= 0
	})
	return at < count && bytes.Equal(columns[at*checkpoint.ColumnSize:(at+1)*checkpoint.ColumnSize], digest)
}
