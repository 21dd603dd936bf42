package bolt

import (
	"bytes"
	"context"
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
