package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"
)

// copyStep is how many bytes are copied in one transaction.
const copyStep = 16 << 20

// Forget removes leads from the file of a sandbox, which must not be in use, and from its
// unused parts. It returns how many of them the file held; one that is not there holds none.
func Forget(path string, ids []string) (n int, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || len(ids) == 0 {
		return 0, nil
	}
	st, err := openStore(path, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	err = st.update(func(tx *bbolt.Tx) error {
		leads := tx.Bucket(leadBucket)
		for _, id := range ids {
			key, ok := parseID(id)
			if !ok || leads.Get(key[:]) == nil {
				continue
			}
			n++
			if err := leads.Delete(key[:]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = st.compact()
	}
	return n, err
}

// compact puts a copy in the place of the file: what was deleted stays in unused parts of
// the old one, which goes. The lock on the old one is held meanwhile.
func (st *store) compact() error {
	name := st.path + ".compact"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sandbox: %w", err)
	}
	fresh, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	err = errors.Join(bbolt.Compact(fresh, st.db, copyStep), fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(name, st.path)
	}
	if err != nil {
		os.Remove(name)
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}
