// Package bolt keeps a checkpoint in one bbolt file.
//
// Promises, in addition to those of [checkpoint.Store]:
//
//   - A commit has been synced to disk.
//   - A damaged, foreign, cut or rolled-back file is an error with a sentence, never a panic and never an empty ledger.
//     Every record carries a checksum. When the file is opened, a separate process, which may crash, checks pages,
//     records and counts. This is skipped if the file is exactly as the last run left it, in this boot of the machine.
//   - Forgotten data are gone from the file's unused parts, too, once it is closed.
//
// [Repair] makes a new checkpoint, which is incomplete, from a damaged one.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// Store is an open checkpoint file. All its methods are safe for concurrent use.
type Store struct {
	path string
	o    Options
	opening

	file           *os.File // bbolt's own handle, which it closes
	bolt           *bbolt.DB
	head           atomic.Pointer[header] // as of the last commit
	digests        *checkpoint.Digester
	readers        sync.RWMutex // each reader of entries holds it from before its transaction to the end
	entries, leads *buffered
	ending

	mu        sync.Mutex                           // one commit after another
	claimed   map[string]checkpoint.KeptKey        // what is stored under keys that this process has claimed
	testimony atomic.Pointer[checkpoint.Testimony] // see [Store.Attest]; nil: none
}

type opening struct {
	fresh    bool // the file was made by this opening
	unused   bool // the file was made by a run that ended before it used it, and that may have left a witness
	locked   bool // this process has the lock
	warnings []string
}

// ending is what Close has to know.
type ending struct {
	broken   atomic.Pointer[error] // the first error; every later call returns it
	changed  atomic.Bool           // a row has changed the file since it was opened
	closed   atomic.Bool
	looked   atomic.Int64 // when the path last led to this file, in ns
	leftover bool         // unused parts still hold what an earlier command has forgotten
}

// Info says what the checkpoint is and how much it knows now.
func (d *Store) Info() checkpoint.Info {
	h := d.head.Load()
	i := checkpoint.Info{
		Path: d.path, ID: h.ID, Target: h.Target, Sequence: h.Seq,
		Moved: h.Moved, New: d.fresh || d.unused, Warnings: d.warnings,
		Keys: make(map[checkpoint.State]int), Incomplete: h.Lacks != "", Missing: h.Lacks, Since: h.Since,
	}
	for s := checkpoint.Created; s <= checkpoint.Forgotten; s++ {
		i.Keys[s] = int(h.Counts.Keys[s])
	}
	i.Leads, i.InDoubt = i.Keys[checkpoint.Created]+i.Keys[checkpoint.Partial], i.Keys[checkpoint.InDoubt]
	i.WarnOfLoss()
	return i
}

// Digests makes the keyed digests of this checkpoint.
func (d *Store) Digests() *checkpoint.Digester { return d.digests }

// Reached returns the last commit, and whether the file knows the run, see [checkpoint.Store].
func (d *Store) Reached(ctx context.Context, run string) (commits uint64, knows bool, err error) {
	note, err := checkpoint.NoteOf(ctx, d, checkpoint.RunNote(run))
	return d.head.Load().Seq, note != nil, err
}

// Progress returns the number of the last commit, and what a witness counts.
func (d *Store) Progress() (commits uint64, leads, freed int) {
	i := d.Info()
	leads, freed = i.Counted()
	return i.Sequence, leads, freed
}

// Attest makes a witness note each commit and the orderly end, see [checkpoint.Store].
func (d *Store) Attest(t *checkpoint.Testimony) { d.testimony.Store(t) }

// Guard fails if the file was removed or replaced, see [checkpoint.Store]: a run with another file may send the row. It
// looks only if the last commit, which has looked, was a second ago.
func (d *Store) Guard(context.Context, string) error {
	if time.Now().UnixNano()-d.looked.Load() < int64(time.Second) {
		return nil
	}
	return d.inPlace()
}

// UnderWay returns none: only this process has the file, see [checkpoint.Store].
func (*Store) UnderWay(context.Context) (map[string]bool, error) { return nil, nil }

// Drop closes the file after a refusal, and removes an unused new file, see [checkpoint.Store].
func (d *Store) Drop() (gone bool, err error) {
	h := d.head.Load()
	unknown := h.Counts.Entries+h.Counts.Keys[checkpoint.InDoubt]+h.Counts.Keys[checkpoint.Forgotten] == 0
	gone = !d.closed.Load() && !d.o.ReadOnly && d.fresh && !d.changed.Load() && unknown && h.Lacks == ""
	if err = d.close(gone); gone && err == nil {
		d.testimony.Load().Withdraw()
	}
	return gone && err == nil, err
}

// Close compacts the file if keys were forgotten, notes in the witness how it leaves the file, and releases the lock.
// After an error of the file nothing is noted, so that the next opening checks everything. Only the first call counts.
func (d *Store) Close() error { return d.close(false) }

func (d *Store) close(drop bool) error {
	if d.closed.Swap(true) {
		return nil
	}
	if d.o.ReadOnly {
		return d.release()
	}
	d.mu.Lock() // a commit may be under way
	defer d.mu.Unlock()
	err := d.failed()
	if err == nil {
		err = d.inPlace()
	}
	witness := d.testimony.Load() // it may stay open: that is safe, too
	switch {
	case err != nil:
	case drop:
		err = d.inItsPlace(func() error { return disk.Patiently(0, func() error { return os.Remove(d.path) }) })
	case d.head.Load().Erase: // the compacted file will take the place of this one
		_ = witness.End("")
		if err = d.compact(); d.leftover { // an earlier command asked for it, so this command does not fail
			err = nil
		}
	default:
		_ = witness.End(d.leftAs())
	}
	return errors.Join(err, d.release())
}

const stillThere = "what was forgotten is not known any more, but is still in unused parts of %s"

// compact copies what the file knows into PATH.compact, checks the whole copy and renames it to PATH. A kill leaves the
// old file, which still has to be compacted, or the new one. A partial copy holds nothing that was forgotten, and the
// next opening removes it. The old file stays locked all the time; a process that waits for its lock opens PATH again
// (see openLocked). bbolt must be open, and nothing may be written afterwards.
func (d *Store) compact() (err error) {
	defer func() {
		if err != nil {
			os.Remove(d.compactPath())
			err = &checkpoint.StoreError{
				Text: fmt.Sprintf(stillThere+": %v", d.path, err), Err: err,
				Hint: "make room beside it; the next command that writes to it tries again",
			}
		}
	}()
	copied, err := bbolt.Open(d.compactPath(), 0o600, &bbolt.Options{
		NoStatistics: true, OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			return os.OpenFile(path, flag|os.O_EXCL, mode)
		},
	})
	if err != nil {
		return err
	}
	err = guard(func() error { return d.copyInto(copied) })
	if err := errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return d.inItsPlace(func() error { return disk.Rename(d.compactPath(), d.path) })
}

// inItsPlace calls f, which replaces or removes the file. On Windows f cannot do that to an open file. So the file is
// closed first, and a lock on PATH.replacing keeps others from it until f is done, see beingReplaced.
func (d *Store) inItsPlace(f func() error) error {
	if runtime.GOOS == "windows" {
		lock, err := openOwn(d.replacingPath(), os.O_RDWR|os.O_CREATE, 0)
		if err != nil {
			return err
		}
		defer os.Remove(d.replacingPath())
		defer lock.Close()
		if held, err := disk.TryLock(lock, false); !held {
			return errors.Join(errors.New("somebody else is about to replace it"), err)
		}
		if err := d.release(); err != nil {
			return err
		}
	}
	return errors.Join(f(), disk.SyncFolder(filepath.Dir(d.path)))
}

func (d *Store) copyInto(copied *bbolt.DB) error {
	if err := bbolt.Compact(copied, d.bolt, 16<<20); err != nil { // bytes in one transaction
		return err
	}
	h := *d.head.Load()
	h.Erase = false
	if err := copied.Update(h.putIn); err != nil {
		return err
	}
	return copied.View(func(tx *bbolt.Tx) error { return d.checkRecords(tx, true) })
}

// release closes the file. After damage, bbolt's own Close may wait for a lock for ever: then only the file is closed.
func (d *Store) release() error {
	if d.bolt == nil || errors.Is(d.failed(), checkpoint.ErrDamaged) {
		return errors.Join(disk.Unlock(d.file), d.file.Close())
	}
	return d.bolt.Close()
}

// inPlace fails if the path no longer leads to this file: later runs would not see what is written to it.
func (d *Store) inPlace() error {
	there, err := os.Stat(d.path)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w: %w", d.path, checkpoint.ErrRemoved, err)
	}
	own, err := d.file.Stat()
	if err == nil && !os.SameFile(there, own) {
		return fmt.Errorf("checkpoint %s: %w", d.path, checkpoint.ErrRemoved)
	}
	d.looked.Store(time.Now().UnixNano())
	return err
}

func (d *Store) failed() error {
	if err := d.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes err the error of every later call, unless there is one: damage as *OpenError, the rest as *StoreError.
func (d *Store) fail(err error) error {
	if errors.Is(err, checkpoint.ErrDamaged) {
		err = d.openError(err)
	} else {
		err = &checkpoint.StoreError{Text: err.Error(), Hint: disk.WayOut(err), Err: err}
	}
	d.broken.CompareAndSwap(nil, &err)
	return d.failed()
}

// guard runs f on bbolt's mapped file. It returns ErrDamaged if f panics: a page is invalid or behind the file's end.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", checkpoint.ErrDamaged, r)
		}
	}()
	return f()
}
