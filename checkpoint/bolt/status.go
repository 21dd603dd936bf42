package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// Status returns an account of what is known now.
func (d *Store) Status() (s checkpoint.Status, err error) {
	s = checkpoint.Status{Path: d.path, Target: d.header.target, Warnings: d.warnings}
	s.Keys = d.Info().Keys
	s.Statuses = d.tally.Load().byStatus()
	var a checkpoint.Audit
	err = d.view("read runs", func(tx *bbolt.Tx) error {
		c := tx.Bucket(inRuns).Cursor()
		for k, v := c.Last(); k != nil && len(s.Runs) < checkpoint.NewestRuns; k, v = c.Prev() {
			info, err := decodeRun(k, v)
			if err != nil {
				return err
			}
			s.Runs = append(s.Runs, info)
		}
		slices.Reverse(s.Runs)
		if d.tally.Load().contradictions == 0 {
			return nil
		}
		return readAudit(&a, nil, tx.Bucket(inAudit))
	})
	if err == nil {
		s.Contradictions, err = checkpoint.Standing(context.Background(), d, a)
	}
	return s, err
}

func (t *tally) byStatus() map[string]int {
	counts := make(map[string]int)
	for i, n := range t.statuses {
		name := "unknown"
		if i < len(checkpoint.Statuses) {
			name = checkpoint.Statuses[i]
		}
		counts[name] = int(n)
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

// patienceOfReaders is how long to wait until a run that has just begun is in the book.
const patienceOfReaders = 2 * time.Second

// ReadStatus returns what the checkpoint at path knows; while a run goes on, what the book of ledgers says of that
// run. Nothing is written. Errors are as those of [Open].
func ReadStatus(path string, t checkpoint.Target, o Options) (s checkpoint.Status, err error) {
	wait := max(o.Wait, patienceOfReaders)
	o.ReadOnly, o.Wait = true, 0
	for end := time.Now().Add(wait); ; time.Sleep(pollEvery) {
		d, err := Open(path, t, o)
		if err == nil {
			s, err = d.Status()
			return s, errors.Join(err, d.Close())
		}
		if !errors.Is(err, checkpoint.ErrLocked) {
			return s, err
		}
		if w, goesOn := o.Witnesses.Holder(resolved(path)); goesOn {
			if differ := (header{target: w.Target}).differences(t); differ != "" && t != (checkpoint.Target{}) {
				return s, refuse(path, checkpoint.ErrTarget, "belongs to another target: its "+differ, otherTarget)
			}
			return checkpoint.Status{Path: w.Place, Target: w.Target, Holder: &w}, nil
		}
		if time.Now().After(end) {
			return s, err
		}
	}
}

// sealJSON is a value as a record of JSON.
func sealJSON(key []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // of a type of ours that JSON cannot hold
	}
	return records.Seal(text, 0, key)
}

func unsealJSON(key, record []byte, value any) error {
	f, err := records.Unseal(key, record)
	if err != nil || json.Unmarshal(f.Rest(), value) != nil {
		return records.ErrRecord
	}
	return nil
}

func encodeRun(key []byte, info checkpoint.RunInfo) []byte {
	for _, t := range []*time.Time{&info.Started, &info.Finished} {
		if !t.IsZero() {
			*t = time.UnixMilli(t.UnixMilli()).UTC()
		}
	}
	return sealJSON(key, info)
}

func decodeRun(key, record []byte) (info checkpoint.RunInfo, err error) {
	err = unsealJSON(key, record, &info)
	return info, err
}

// PutRun keeps the history of a run, see [checkpoint.Store].
func (d *Store) PutRun(_ context.Context, info checkpoint.RunInfo) error {
	err := d.alone(func(w *writing) error { return w.addRun(info) })
	if err != nil {
		return fmt.Errorf("keep run: %w", err)
	}
	return nil
}

// addRun looks for the run from the newest one on, which is nearly always it.
func (w *writing) addRun(info checkpoint.RunInfo) error {
	c := w.in(inRuns).Cursor()
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		old, err := decodeRun(k, v)
		if err != nil {
			return err
		}
		if old.ID == info.ID {
			key := slices.Clone(k)
			return w.in(inRuns).Put(key, encodeRun(key, info))
		}
	}
	w.tally.runs++
	key := binary.BigEndian.AppendUint64(nil, w.tally.runs)
	return w.in(inRuns).Put(key, encodeRun(key, info))
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

// shapePrefix begins the keys of the bucket of shapes: nothing else that has a checksum begins so and is so long.
const shapePrefix = "note "

// decodeShape reads a note.
func decodeShape(key, record []byte) (s checkpoint.KeptShape, err error) {
	err = unsealJSON(key, record, &s)
	if err != nil || !bytes.HasPrefix(key, []byte(shapePrefix)) || len(key) != len(shapePrefix)+len(checkpoint.Digest{}) ||
		len(s.Columns) == 0 || len(s.Columns)%checkpoint.ColumnSize != 0 {
		return s, records.ErrRecord
	}
	return s, nil
}

func shapeKey(d *checkpoint.Digester, s checkpoint.KeptShape) []byte {
	sum := d.Sum(append(records.AppendText(records.AppendText([]byte(shapePrefix), s.Key), s.Namespace), s.Columns...))
	return append([]byte(shapePrefix), sum[:]...)
}

// addShape keeps a shape by which rows are about to be made leads, once.
func (w *writing) addShape(s checkpoint.KeptShape) error {
	key := shapeKey(w.digests, s)
	if len(s.Columns) == 0 || w.in(inShapes).Get(key) != nil {
		return nil
	}
	w.tally.shapes++
	return w.in(inShapes).Put(key, sealJSON(key, s))
}

// Shapes returns all by which leads were made, see [checkpoint.Store].
func (d *Store) Shapes(context.Context) (all []checkpoint.KeptShape, err error) {
	err = d.view("read shapes", func(tx *bbolt.Tx) error {
		return tx.Bucket(inShapes).ForEach(func(k, v []byte) error {
			one, err := decodeShape(k, v)
			all = append(all, one)
			return err
		})
	})
	return all, err
}
