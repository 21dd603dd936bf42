package sandbox

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	lockWait = 500 * time.Millisecond
	copyStep = 16 << 20 // bytes that compacting copies in one transaction
)

// The buckets of a file, those of tokens beside; their names are in order.
var (
	clientBucket = []byte("clients") // OAuth client → digest of its secret
	leadBucket   = []byte("leads")   // lead ID, in the order of creation → History as JSON
	buckets      = [][]byte{[]byte(accessUse), clientBucket, leadBucket, []byte(loginUse), []byte(refreshUse)}
)

// ErrInUse is that of a file that another process holds.
var ErrInUse = errors.New("in use by another process")

// store keeps leads, OAuth clients and tokens in a bbolt file. Nothing is synced: what is committed survives the process.
type store struct {
	*bbolt.DB
	path      string
	temporary bool // removed by close
}

func openStore(path string, wait time.Duration) (*store, error) {
	st := &store{path: path}
	options := &bbolt.Options{Timeout: max(wait, lockWait), NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType}
	if path == "" {
		f, err := os.CreateTemp("", "leadferry-sandbox-*.db")
		if err != nil {
			return nil, fmt.Errorf("sandbox: make a temporary file: %w", err)
		}
		// Without its name it is gone with the process, even when that is killed. Systems
		// that keep the names of open files lose it in close.
		st.path, st.temporary = f.Name(), os.Remove(f.Name()) != nil
		options.OpenFile = func(string, int, os.FileMode) (*os.File, error) { return f, nil }
	}
	db, err := bbolt.Open(st.path, 0o600, options)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("sandbox: %s is %w", st.path, ErrInUse)
	} else if err != nil {
		return nil, fmt.Errorf("sandbox: open %s: %w", st.path, err)
	}
	if err := db.Update(prepare); err != nil {
		return nil, fmt.Errorf("sandbox: open %s: %w", st.path, errors.Join(err, db.Close()))
	}
	st.DB = db
	return st, nil
}

// prepare makes the buckets of a new file, and refuses a file of another program: a checkpoint has a bucket of leads, too.
func prepare(tx *bbolt.Tx) error {
	var found [][]byte
	err := tx.ForEach(func(name []byte, _ *bbolt.Bucket) error { found = append(found, name); return nil })
	if err != nil || slices.EqualFunc(found, buckets, bytes.Equal) {
		return err
	}
	if len(found) > 0 {
		return errors.New("this is not a file of the sandbox")
	}
	for _, name := range buckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return putClient(tx, ClientID, ClientSecret)
}

func (st *store) close() error {
	err := st.Close()
	if st.temporary {
		err = errors.Join(err, os.Remove(st.path))
	}
	return err
}

// newID returns a UUID of version 7 that begins with n, so that those of growing numbers are in order.
func newID(n uint64) string {
	var r [10]byte
	_, _ = rand.Read(r[:])
	r[0], r[2] = r[0]&0x0f|0x70, r[2]&0x3f|0x80
	return fmt.Sprintf("%08x-%04x-%x-%x-%x", uint32(n>>16), uint16(n), r[:2], r[2:4], r[4:])
}

// add gives the lead its ID and stores it. IDs grow whatever the clock does.
func (st *store) add(l *Lead) error {
	return st.Update(func(tx *bbolt.Tx) error {
		n, err := tx.Bucket(leadBucket).NextSequence()
		if err != nil {
			return err
		}
		l.ID = newID(n)
		return putLead(tx, &History{Lead: *l})
	})
}

// change applies edit to a lead and returns it as stored, with what changed in its history; a lead that is not known is
// refused.
func (st *store) change(id string, now time.Time, edit func(*Lead)) (Lead, error) {
	var h History
	err := st.Update(func(tx *bbolt.Tx) error {
		v := tx.Bucket(leadBucket).Get([]byte(id))
		if v == nil {
			return refuse(http.StatusNotFound, "the lead is not known")
		}
		if err := json.Unmarshal(v, &h, exactNumbers); err != nil {
			return err
		}
		before := h.Lead
		before.Content = maps.Clone(h.Content)
		edit(&h.Lead)
		h.touch(now)
		h.add(now, before)
		return putLead(tx, &h)
	})
	return h.Lead, err
}

func putLead(tx *bbolt.Tx, h *History) error {
	v, err := json.Marshal(h)
	if err != nil {
		return err
	}
	b := tx.Bucket(leadBucket)
	b.FillPercent = 0.95 // IDs come in order
	return b.Put([]byte(h.ID), v)
}

func putClient(tx *bbolt.Tx, id, secret string) error {
	return tx.Bucket(clientBucket).Put([]byte(id), digest(secret))
}

func (st *store) isClient(id, secret string) (known bool) {
	err := st.View(func(tx *bbolt.Tx) error {
		known = bytes.Equal(tx.Bucket(clientBucket).Get([]byte(id)), digest(secret))
		return nil
	})
	return known && err == nil
}

// digest is what the file holds instead of a secret or token.
func digest(secret string) []byte {
	hash := sha256.Sum256([]byte(secret))
	return hash[:]
}

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
	err = st.Update(func(tx *bbolt.Tx) error {
		leads := tx.Bucket(leadBucket)
		for _, id := range ids {
			if leads.Get([]byte(id)) == nil {
				continue
			}
			n++
			if err := leads.Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = st.compact()
	}
	if err != nil {
		return n, fmt.Errorf("sandbox: forget leads: %w", err)
	}
	return n, nil
}

// compact puts a copy in the place of the file: what was deleted stays in unused parts of
// the old one, which goes. The lock on the old one is held meanwhile, but on Windows, where a file that is open cannot
// be replaced: there the store is closed afterwards.
func (st *store) compact() error {
	name := st.path + ".compact"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fresh, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	if err := errors.Join(bbolt.Compact(fresh, st.DB, copyStep), fresh.Sync(), fresh.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	if runtime.GOOS == "windows" {
		if err := st.Close(); err != nil {
			return err
		}
	}
	return os.Rename(name, st.path)
}
