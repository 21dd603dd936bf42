package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	lockWait = 500 * time.Millisecond
	maxBatch = 512 // writes in one commit
)

var (
	leadBucket    = []byte("leads")   // lead ID, in the order of creation → Lead as JSON
	accountBucket = []byte("account") // the signing key, and OAuth clients → digest of the secret
	errClosed     = errors.New("the sandbox is closed")
)

// store keeps leads and OAuth clients in a bbolt file. One goroutine writes, and commits together what
// has gathered while it was committing. Nothing is synced: what is committed survives the process.
type store struct {
	db         *bbolt.DB
	path       string
	temporary  bool // removed by close
	last       uuid // the newest lead; the writer's own
	jobs       chan job
	quit, done chan struct{}
}

// job is one write; err is given the outcome of its commit.
type job struct {
	do  func(*bbolt.Tx) error
	err chan error
}

// ErrInUse is that of a file that another process holds.
var ErrInUse = errors.New("in use by another process")

func openStore(path string, wait time.Duration) (*store, error) {
	st := &store{path: path, jobs: make(chan job), quit: make(chan struct{}), done: make(chan struct{})}
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
	st.db = db
	if err := db.Update(st.prepare); err != nil {
		return nil, fmt.Errorf("sandbox: open %s: %w", st.path, errors.Join(err, db.Close()))
	}
	go st.write()
	return st, nil
}

// prepare makes the buckets of a new file, and refuses a file of another program.
func (st *store) prepare(tx *bbolt.Tx) error {
	leads := tx.Bucket(leadBucket)
	foreign := (leads == nil) != (tx.Bucket(accountBucket) == nil)
	err := tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
		foreign = foreign || !bytes.Equal(name, leadBucket) && !bytes.Equal(name, accountBucket)
		return nil
	})
	if err != nil {
		return err
	}
	if foreign { // a checkpoint has a bucket of leads, too
		return errors.New("this is not a file of the sandbox")
	}
	if leads != nil {
		key, _ := leads.Cursor().Last()
		copy(st.last[:], key)
		return nil
	}
	_, err = tx.CreateBucket(leadBucket)
	if err == nil {
		_, err = tx.CreateBucket(accountBucket)
	}
	return err
}

// write is the goroutine that commits; close waits for it.
func (st *store) write() {
	defer close(st.done)
	for {
		select {
		case <-st.quit:
			return
		case j := <-st.jobs:
			st.commit(st.gather(j))
		}
	}
}

func (st *store) gather(first job) []job {
	batch := []job{first}
	for len(batch) < maxBatch {
		select {
		case j := <-st.jobs:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

func (st *store) commit(batch []job) {
	last := st.last
	err := st.db.Update(func(tx *bbolt.Tx) error {
		for _, j := range batch {
			if err := j.do(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		st.last = last
		err = fmt.Errorf("sandbox: store: %w", err)
	}
	for _, j := range batch {
		j.err <- err
	}
}

// update runs do in the writer and returns once it is committed. An error of do undoes the whole
// commit, that of others too: do reports what the client did wrong by other means.
func (st *store) update(do func(*bbolt.Tx) error) error {
	j := job{do, make(chan error, 1)}
	select {
	case st.jobs <- j:
		return <-j.err
	case <-st.quit:
		return errClosed
	}
}

// add gives the lead its ID and stores it.
func (st *store) add(l *Lead) error {
	return st.update(func(tx *bbolt.Tx) error {
		st.last = st.last.after(l.CreatedAt)
		l.ID = st.last.String()
		return put(tx, st.last, l)
	})
}

// change applies edit to a lead and returns it as stored; a lead that is not known is refused.
func (st *store) change(id string, edit func(*Lead)) (l Lead, err error) {
	unknown := refuse(http.StatusNotFound, "the lead is not known")
	key, ok := parseID(id)
	if !ok {
		return l, unknown
	}
	found := false
	err = st.update(func(tx *bbolt.Tx) error {
		v := tx.Bucket(leadBucket).Get(key[:])
		if found = v != nil; !found {
			return nil
		}
		if err := json.Unmarshal(v, &l, exactNumbers()); err != nil {
			return err
		}
		edit(&l)
		return put(tx, key, &l)
	})
	if err == nil && !found {
		err = unknown
	}
	return l, err
}

func put(tx *bbolt.Tx, key uuid, l *Lead) error {
	v, err := json.Marshal(l)
	if err != nil {
		return err
	}
	b := tx.Bucket(leadBucket)
	b.FillPercent = 0.95 // IDs come in order
	return b.Put(key[:], v)
}

func (st *store) all() (leads []Lead, err error) {
	err = st.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(leadBucket).ForEach(func(_, v []byte) error {
			var l Lead
			if err := json.Unmarshal(v, &l, exactNumbers()); err != nil {
				return err
			}
			leads = append(leads, l)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: read the leads: %w", err)
	}
	return leads, nil
}

// secret returns what is stored under a name of the account, or else stores and returns fresh.
func (st *store) secret(name string, fresh []byte) (kept []byte, err error) {
	err = st.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(accountBucket)
		if kept = bytes.Clone(b.Get([]byte(name))); kept != nil {
			return nil
		}
		kept = fresh
		return b.Put([]byte(name), fresh)
	})
	return kept, err
}

// known reports whether the account holds want under a name.
func (st *store) known(name string, want []byte) (same bool, err error) {
	err = st.db.View(func(tx *bbolt.Tx) error {
		same = bytes.Equal(tx.Bucket(accountBucket).Get([]byte(name)), want)
		return nil
	})
	return same, err
}

func (st *store) close() error {
	close(st.quit)
	<-st.done
	err := st.db.Close()
	if st.temporary {
		err = errors.Join(err, os.Remove(st.path))
	}
	return err
}
