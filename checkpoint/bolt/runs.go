package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

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

// PutRun keeps the history of a run. A second call with the same ID replaces
// the first one: call it when a run starts and when it ends.
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
