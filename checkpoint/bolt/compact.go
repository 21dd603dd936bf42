package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/pages"
	"leadferry/internal/disk"
)

// eraseKey stands in the file from the commit that forgets keys until the file is
// compacted: deleted records stay in unused pages until then.
var eraseKey = []byte("erase")

// step is how many bytes a compaction copies in one transaction.
const step = 16 << 20

// compact copies what the file knows into PATH.compact, checks the copy whole and
// renames it to PATH. A kill leaves the old file, which asks to be compacted, or
// the new one; a half copy holds nothing that was forgotten, and the next opening
// removes it. The lock on the old file is held throughout; who waits for it opens
// PATH again (see openLocked). bbolt must be open, and nothing may be written afterwards.
func (d *Store) compact() (err error) {
	defer func() {
		if err != nil {
			os.Remove(d.compactPath())
			err = &checkpoint.FileError{Path: d.path, Err: fmt.Errorf("what was forgotten is not known any more, but still stands in unused parts of %s: %w\n"+
				"hint: make room beside it; the next command that writes to it tries again", d.path, err)}
		}
	}()
	f, err := os.OpenFile(d.compactPath(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = disk.MakeNewPrivate(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	copied, err := bbolt.Open(d.compactPath(), 0o600, &bbolt.Options{
		NoSync: true, NoStatistics: true, // synced once, at its end
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return f, nil },
	})
	if err != nil {
		f.Close()
		return err
	}
	err = guard(func() error { return d.copyInto(copied, f) })
	if err := errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return d.inItsPlace(func() error { return disk.Rename(d.compactPath(), d.path) })
}

// inItsPlace replaces or removes the file by f. Where a file that is open cannot be (on Windows), it is closed
// before, and the lock of PATH.seq keeps others from it until f is done: see lockInPlace.
func (d *Store) inItsPlace(f func() error) error {
	if disk.KeepsOpenFiles {
		held, err := disk.TryLock(d.seqFile, false) // given back when it is closed
		if !held {
			return errors.Join(errors.New("somebody else is about to replace it"), err)
		}
		if err := d.release(); err != nil {
			return err
		}
	}
	return errors.Join(f(), disk.SyncFolder(filepath.Dir(d.path)))
}

func (d *Store) copyInto(copied *bbolt.DB, f *os.File) error {
	if err := bbolt.Compact(copied, d.bolt, step); err != nil {
		return err
	}
	err := copied.Update(func(tx *bbolt.Tx) error { return tx.Bucket(inMeta).Delete(eraseKey) })
	if err := errors.Join(err, copied.Sync()); err != nil {
		return err
	}
	img, err := pages.Inspect(f)
	if err != nil {
		return err
	}
	return d.survey(img)
}

// finishErasing compacts a file whose last writer was killed before it could, and
// opens it again. Without room for that, it is opened as it is, with a warning.
func (d *Store) finishErasing(t checkpoint.Target, o Options) (*Store, error) {
	failed := d.Close()
	if failed != nil {
		d.warn(failed.Error())
	}
	o.later, o.Accept, o.before = true, false, d
	return Open(d.path, t, o)
}
