package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
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
// PATH again (see take). bbolt must be open, and nothing may be written afterwards.
func (d *DB) compact() (err error) {
	defer func() {
		if err != nil {
			os.Remove(d.compactPath())
			err = &FileError{d.path, fmt.Errorf("what was forgotten is not known any more, but still stands in unused parts of %s: %w\n"+
				"hint: make room beside it; the next command that writes to it tries again", d.path, err)}
		}
	}()
	f, err := os.OpenFile(d.compactPath(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	copied, err := bolt.Open(d.compactPath(), 0o600, &bolt.Options{
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
	if err := os.Rename(d.compactPath(), d.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(d.path))
}

func (d *DB) copyInto(copied *bolt.DB, f *os.File) error {
	if err := bolt.Compact(copied, d.bolt, step); err != nil {
		return err
	}
	err := copied.Update(func(tx *bolt.Tx) error { return tx.Bucket(inMeta).Delete(eraseKey) })
	if err := errors.Join(err, copied.Sync()); err != nil {
		return err
	}
	img, err := inspect(f)
	if err != nil {
		return err
	}
	return d.survey(img, nil)
}

// finishErasing compacts a file whose last writer was killed before it could, and
// opens it again. Without room for that, it is opened as it is, with a warning.
func (d *DB) finishErasing(t Target, o Options) (*DB, error) {
	failed := d.Close()
	if failed != nil {
		d.warn(failed.Error())
	}
	o.later, o.Accept, o.before = true, false, d
	return Open(d.path, t, o)
}
