package checkpoint

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// RunInfo is the history of one run.
type RunInfo struct {
	ID, Command       string
	Started, Finished time.Time // UTC, to the millisecond; Finished is zero for a run that was killed
	Outcome           string
	Counts            map[string]int // rows by outcome
}

// runs gives every run a small number, so that an entry need not hold its ID.
// Numbers begin at 1; 0 is no run. It is shared by the writer and all readers.
type runs struct {
	mu      sync.RWMutex
	names   []string
	numbers map[string]uint64
}

func (r *runs) name(number uint64) (id string, ok bool) {
	if number == 0 {
		return "", true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if number > uint64(len(r.names)) {
		return "", false
	}
	return r.names[number-1], true
}

// number returns the number of run id; added says that it is a new one.
func (r *runs) number(id string) (number uint64, added bool) {
	if id == "" {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.numbers[id]; ok {
		return n, false
	}
	r.names = append(r.names, id)
	if r.numbers == nil {
		r.numbers = make(map[string]uint64)
	}
	r.numbers[id] = uint64(len(r.names))
	return uint64(len(r.names)), true
}

// load reads the table from its bucket and refuses gaps and repeated IDs.
func (r *runs) load(b *bolt.Bucket) error {
	return eachRun(b, func(number uint64, info RunInfo) error {
		if n, added := r.number(info.ID); !added || n != number {
			return errRecord
		}
		return nil
	})
}

func eachRun(b *bolt.Bucket, f func(number uint64, info RunInfo) error) error {
	return b.ForEach(func(k, v []byte) error {
		info, err := decodeRun(k, v)
		if err != nil || len(k) != 4 {
			return errRecord
		}
		return f(uint64(binary.BigEndian.Uint32(k)), info)
	})
}

func runKey(number uint64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(number)) }

func encodeRun(key []byte, info RunInfo) []byte {
	b := appendText(appendText(nil, info.ID), info.Command)
	b = appendText(appendTime(appendTime(b, info.Started), info.Finished), info.Outcome)
	b = binary.AppendUvarint(b, uint64(len(info.Counts)))
	for _, name := range slices.Sorted(maps.Keys(info.Counts)) {
		b = binary.AppendUvarint(appendText(b, name), uint64(info.Counts[name]))
	}
	return seal(b, 0, key)
}

func decodeRun(key, record []byte) (info RunInfo, err error) {
	f, err := unseal(key, record)
	if err != nil {
		return info, err
	}
	info = RunInfo{ID: f.text(), Command: f.text(), Started: f.time(), Finished: f.time(), Outcome: f.text()}
	for n := f.uint(); n > 0 && !f.bad; n-- {
		if info.Counts == nil {
			info.Counts = make(map[string]int)
		}
		name := f.text()
		info.Counts[name] = int(f.uint())
	}
	return info, f.done()
}

// AddRun keeps the history of a run. A second call with the same ID replaces
// the first one: call it when a run starts and when it ends.
func (d *DB) AddRun(info RunInfo) error {
	err := d.alone(func(l *ledger) error {
		number, err := l.run(info.ID)
		if err != nil || number == 0 {
			return err
		}
		return l.runs.Put(runKey(number), encodeRun(runKey(number), info))
	})
	if err != nil {
		return fmt.Errorf("keep run: %w", err)
	}
	return nil
}

// Runs returns all runs in the order in which they began. A run that was never
// added, only named by entries, has nothing but its ID.
func (d *DB) Runs() (all []RunInfo, err error) {
	err = d.view("read runs", func(tx *bolt.Tx) error {
		return eachRun(tx.Bucket(inRuns), func(_ uint64, info RunInfo) error {
			all = append(all, info)
			return nil
		})
	})
	return all, err
}
