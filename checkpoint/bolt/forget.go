package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
	"leadferry/internal/rowkey"
)

// eraseKey removes what is stored under a key, and its hash if it was forgotten before.
func (w *writing) eraseKey(key string) error {
	was, shown, err := w.Under(key)
	if err != nil {
		return err
	}
	if shown.State != checkpoint.Forgotten {
		return w.put(key, was, checkpoint.KeptKey{})
	}
	w.tally.move(checkpoint.Forgotten, checkpoint.Unknown)
	hash := w.d.digests.Blocked(key)
	fold := records.ForgottenFold(w.d.digests.Blocked(rowkey.Fold(key)), hash)
	return errors.Join(w.in(inBlocked).Delete(hash), w.unlist(w.folds, fold))
}

// Block keeps what is left of a forgotten key.
func (w *writing) Block(b checkpoint.KeptBlock) error {
	w.tally.move(checkpoint.Unknown, checkpoint.Forgotten)
	if len(b.Fold) > 0 {
		if err := w.list(w.folds, records.ForgottenFold(b.Fold, b.Hash)); err != nil {
			return err
		}
	}
	return w.in(inBlocked).Put(b.Hash, records.EncodeBlock(b))
}

// drainAll moves everything that gathers into its place.
func (d *Store) drainAll() (err error) {
	for done := false; !done && err == nil; {
		err = d.transact("other", func(w *writing) error {
			done, err = w.drain()
			return err
		})
	}
	return err
}

// step is how many bytes a compaction copies in one transaction.
const step = 16 << 20

// compact copies what the file knows into PATH.compact, checks the copy whole and renames it to PATH. A kill leaves
// the old file, which asks to be compacted, or the new one; a half copy holds nothing that was forgotten, and the next
// opening removes it. The lock on the old file is held throughout; who waits for it opens PATH again (see openLocked).
// bbolt must be open, and nothing may be written afterwards.
func (d *Store) compact() (err error) {
	defer func() {
		if err != nil {
			os.Remove(d.compactPath())
			err = &checkpoint.FileError{Err: fmt.Errorf("what was forgotten is not known any more, but is still in "+
				"unused parts of %s: %w\n"+
				"hint: make room beside it; the next command that writes to it tries again", d.path, err)}
		}
	}()
	if err := d.drainAll(); err != nil {
		return err
	}
	var f *os.File
	copied, err := bbolt.Open(d.compactPath(), 0o600, &bbolt.Options{
		NoSync: true, NoStatistics: true, // synced once, at its end
		OpenFile: func(path string, _ int, mode os.FileMode) (*os.File, error) {
			f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
			return f, err
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

// inItsPlace replaces or removes the file by f. Where a file that is open cannot be (on Windows), it is closed
// before, and the lock of PATH.replacing keeps others from it until f is done: see lockInPlace.
func (d *Store) inItsPlace(f func() error) error {
	if disk.KeepsOpenFiles {
		lock, err := openOwn(d.replacingPath(), os.O_RDWR|os.O_CREATE)
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
	if err := bbolt.Compact(copied, d.bolt, step); err != nil {
		return err
	}
	h := *d.head.Load()
	h.Erase = false
	err := copied.Update(func(tx *bbolt.Tx) error { return tx.Bucket(inMeta).Put(headerKey, h.encode()) })
	if err := errors.Join(err, copied.Sync()); err != nil {
		return err
	}
	return copied.View(d.checkRecords)
}
