package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// Status returns an account of what is known now.
func (d *Store) Status() (s checkpoint.Status, err error) {
	s = checkpoint.Status{Path: d.path, Target: d.header.target, Warnings: d.warnings, At: time.Now().UTC()}
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

// statusWriter keeps PATH.status while the checkpoint is open for writing, so that its status
// can be asked for meanwhile.
type statusWriter struct {
	d    *Store
	f    *os.File // nil: it could not be made, which harms nobody
	stop chan struct{}
	done sync.WaitGroup
}

// statusEvery is how old it may become.
const statusEvery = time.Second

func (d *Store) statusPath() string { return d.path + ".status" }

func newStatusWriter(d *Store) *statusWriter {
	t := &statusWriter{d: d, stop: make(chan struct{})}
	t.f, _ = openOwn(d.statusPath(), os.O_RDWR|os.O_CREATE)
	if t.f == nil {
		return t
	}
	narrow(t.f)
	t.done.Go(t.run)
	return t
}

func (t *statusWriter) run() {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for told := uint64(0); ; {
		if seq := t.d.tally.Load().seq + 1; seq != told && t.write() == nil {
			told = seq
		}
		select {
		case <-t.stop:
			return
		case <-tick.C:
		}
	}
}

func (t *statusWriter) write() error {
	s, err := t.d.Status()
	if err != nil {
		return err
	}
	s.Process = os.Getpid()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	text = fmt.Appendf(nil, "%08x\n%s\n", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)), text)
	_, err = t.f.WriteAt(text, 0)
	return errors.Join(err, t.f.Truncate(int64(len(text))))
}

func (t *statusWriter) end() {
	if t == nil {
		return
	}
	close(t.stop)
	if !errors.Is(t.d.failed(), checkpoint.ErrDamaged) { // bbolt may never let it go then, see release
		t.done.Wait()
	}
	if t.f != nil {
		t.f.Close()
		os.Remove(t.d.statusPath())
	}
}

// mostStatus bounds an account, in bytes.
const mostStatus = 64 << 20

// readStatusFile reads the account of the process that holds the checkpoint; ok is false where there
// is none, or where it is being written just now.
func (d *Store) readStatusFile() (s checkpoint.Status, ok bool) {
	f, err := openOwn(d.statusPath(), os.O_RDONLY)
	if err != nil {
		return s, false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostStatus))
	sum, account, _ := bytes.Cut(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	if err != nil || string(sum) != fmt.Sprintf("%08x", crc32.Checksum(account, crc32.MakeTable(crc32.Castagnoli))) {
		return s, false
	}
	return s, json.Unmarshal(account, &s) == nil
}

// patienceOfReaders is how long the account of a process that has just begun is waited for.
const patienceOfReaders = 2 * time.Second

// ReadStatus returns what the checkpoint at path knows, also while a run goes on: then it
// is what that run told last, a second ago at most. Nothing is written. Errors are as
// those of [Open].
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
		if s, ok := (&Store{path: resolved(path)}).readStatusFile(); ok {
			if differ := (header{target: s.Target}).differences(t); differ != "" && t != (checkpoint.Target{}) {
				return s, (&Store{path: path}).refuse(checkpoint.ErrTarget, "belongs to another target: its "+differ, otherTarget)
			}
			return s, nil
		}
		if time.Now().After(end) {
			return s, err
		}
	}
}

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

func encodeShape(key []byte, s checkpoint.KeptShape) []byte {
	b := records.AppendText(records.AppendText(nil, s.Key), s.Namespace)
	return records.Seal(append(b, s.Columns...), 0, key)
}

// decodeShape reads a note. Its columns live as long as the record.
func decodeShape(key, record []byte) (s checkpoint.KeptShape, err error) {
	f, err := records.Unseal(key, record)
	if err != nil || !bytes.HasPrefix(key, []byte(shapePrefix)) || len(key) != len(shapePrefix)+len(checkpoint.Digest{}) {
		return s, records.ErrRecord
	}
	s = checkpoint.KeptShape{Key: f.Text(), Namespace: f.Text()}
	s.Columns = f.Rest()
	if f.Bad || len(s.Columns) == 0 || len(s.Columns)%checkpoint.ColumnSize != 0 {
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
	return w.in(inShapes).Put(key, encodeShape(key, s))
}

// Shapes returns all by which leads were made, see [checkpoint.Store].
func (d *Store) Shapes(context.Context) (all []checkpoint.KeptShape, err error) {
	err = d.view("read shapes", func(tx *bbolt.Tx) error {
		return tx.Bucket(inShapes).ForEach(func(k, v []byte) error {
			one, err := decodeShape(k, bytes.Clone(v))
			all = append(all, one)
			return err
		})
	})
	return all, err
}
