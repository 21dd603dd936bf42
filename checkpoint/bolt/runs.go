package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

func encodeRun(key []byte, info checkpoint.RunInfo) []byte {
	b := records.AppendText(records.AppendText(nil, info.ID), info.Command)
	b = records.AppendText(records.AppendTime(records.AppendTime(b, info.Started), info.Finished), info.Outcome)
	b = binary.AppendUvarint(b, uint64(len(info.Counts)))
	for _, name := range slices.Sorted(maps.Keys(info.Counts)) {
		b = binary.AppendUvarint(records.AppendText(b, name), uint64(info.Counts[name]))
	}
	return records.Seal(b, 0, key)
}

func decodeRun(key, record []byte) (info checkpoint.RunInfo, err error) {
	f, err := records.Unseal(key, record)
	if err != nil {
		return info, err
	}
	info = checkpoint.RunInfo{ID: f.Text(), Command: f.Text(), Started: f.Time(), Finished: f.Time(), Outcome: f.Text()}
	for n := f.Uint(); n > 0 && !f.Bad; n-- {
		if info.Counts == nil {
			info.Counts = make(map[string]int)
		}
		name := f.Text()
		info.Counts[name] = int(f.Uint())
	}
	return info, f.Done()
}

// PutRun keeps the history of a run, see [checkpoint.Store].
func (d *Store) PutRun(_ context.Context, info checkpoint.RunInfo) error {
	if info.ID == "" {
		return errors.New("keep run: it has no ID")
	}
	err := d.alone(func(w *writing) error { return w.addRun(info) })
	if err != nil {
		return fmt.Errorf("keep run: %w", err)
	}
	return nil
}

// addRun looks for the run from the newest one on, which is nearly always it.
func (w *writing) addRun(info checkpoint.RunInfo) error {
	c := w.runs.Cursor()
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		old, err := decodeRun(k, v)
		if err != nil {
			return err
		}
		if old.ID == info.ID {
			key := slices.Clone(k)
			return w.runs.Put(key, encodeRun(key, info))
		}
	}
	w.tally.runs++
	key := binary.BigEndian.AppendUint64(nil, w.tally.runs)
	return w.runs.Put(key, encodeRun(key, info))
}

// Runs returns all runs that were added, in the order of their first PutRun.
func (d *Store) Runs(_ context.Context) (all []checkpoint.RunInfo, err error) {
	err = d.view("read runs", func(tx *bbolt.Tx) error {
		return tx.Bucket(inRuns).ForEach(func(k, v []byte) error {
			info, err := decodeRun(k, v)
			all = append(all, info)
			return err
		})
	})
	return all, err
}

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
	return n.under(d), n
}

// under is the key of the record.
func (n *note) under(d *checkpoint.Digester) []byte {
	sum := d.Sum(append(records.AppendText(records.AppendText([]byte(notePrefix), n.key), n.namespace), n.columns...))
	return append([]byte(notePrefix), sum[:]...)
}

// putNote keeps a shape by which rows are about to be made leads, once.
func (w *writing) putNote(s *checkpoint.Shape) error {
	key, n := noteOf(w.digests, s)
	if key == nil || w.notes.Get(key) != nil {
		return nil
	}
	return w.addNote(n)
}

func (w *writing) addNote(n note) error {
	key := n.under(w.digests)
	w.tally.notes++
	return w.notes.Put(key, n.encode(key))
}

// Noted compares a shape with those of earlier claims, see [checkpoint.Store].
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
