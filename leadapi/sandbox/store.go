package sandbox

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// ErrInUse says that another process has locked the file.
var ErrInUse = errors.New("in use by another process")

var (
	clientBucket = []byte("clients") // OAuth client → digest of its secret
	leadBucket   = []byte("leads")   // lead ID, in the order of creation → Lead as JSON
)

// store keeps leads and OAuth clients in a bbolt file. It syncs nothing: commits survive the process, not the machine.
type store struct {
	*bbolt.DB
	path      string
	temporary bool // removed by close
}

func openStore(path string, wait time.Duration) (*store, error) {
	st := &store{path: path}
	if path == "" {
		f, err := os.CreateTemp("", "leadferry-sandbox-*.db")
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("sandbox: make a temporary file: %w", err)
		}
		st.path = f.Name()
	}
	options := &bbolt.Options{Timeout: max(wait, 500*time.Millisecond), NoSync: true, NoGrowSync: true}
	db, err := bbolt.Open(st.path, 0o600, options)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("sandbox: %s is %w", st.path, ErrInUse)
	} else if err != nil {
		return nil, fmt.Errorf("sandbox: open %s: %w", st.path, err)
	}
	// Without a name a temporary file ends with the process, even after a kill. On other systems close removes it.
	st.temporary = path == "" && os.Remove(st.path) != nil
	if err := db.Update(prepare); err != nil {
		return nil, fmt.Errorf("sandbox: open %s: %w", st.path, errors.Join(err, db.Close()))
	}
	st.DB = db
	return st, nil
}

// prepare makes the buckets of a new file. It refuses another program's file: a checkpoint has a bucket of leads, too.
func prepare(tx *bbolt.Tx) error {
	if tx.Bucket(clientBucket) != nil && tx.Bucket(leadBucket) != nil {
		return nil
	}
	if name, _ := tx.Cursor().First(); name != nil {
		return errors.New("this is not a file of the sandbox")
	}
	for _, name := range [][]byte{clientBucket, leadBucket} {
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

// newID returns a UUID of version 7 that begins with n, so that IDs sort like their numbers.
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
		return putLead(tx, l)
	})
}

// change applies edit to a lead and returns the stored lead; nil if the ID is unknown.
func (st *store) change(id string, edit func(*Lead)) (l *Lead, err error) {
	err = st.Update(func(tx *bbolt.Tx) error {
		v := tx.Bucket(leadBucket).Get([]byte(id))
		if v == nil {
			return nil
		}
		stored, err := readLead(v)
		if err != nil {
			return err
		}
		l = &stored
		edit(l)
		return putLead(tx, l)
	})
	return l, err
}

func readLead(stored []byte) (l Lead, err error) {
	if err = json.Unmarshal(stored, &l, exactNumbers); err != nil {
		err = fmt.Errorf("sandbox: read a lead: %w", err)
	}
	return l, err
}

func putLead(tx *bbolt.Tx, l *Lead) error {
	v, err := json.Marshal(l)
	if err != nil {
		return err
	}
	b := tx.Bucket(leadBucket)
	b.FillPercent = 0.95 // IDs come in order
	return b.Put([]byte(l.ID), v)
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

// digest is what the file holds instead of a secret.
func digest(secret string) []byte {
	hash := sha256.Sum256([]byte(secret))
	return hash[:]
}

// Forget removes leads from the file of a sandbox and returns how many of them it held. The file must
// not be in use; a missing one holds none. A copy replaces it, because its unused parts would still hold the leads.
func Forget(path string, ids []string) (n int, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || len(ids) == 0 {
		return 0, nil
	}
	st, err := openStore(path, 0)
	if err != nil {
		return 0, err
	}
	err = st.Update(func(tx *bbolt.Tx) error {
		leads := tx.Bucket(leadBucket)
		for _, id := range ids {
			if leads.Get([]byte(id)) != nil {
				n++
			}
			if err := leads.Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
	name := path + ".compact"
	if err == nil {
		err = st.copyTo(name)
	}
	if err = errors.Join(err, st.close()); err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		return n, fmt.Errorf("sandbox: forget leads: %w", errors.Join(err, os.RemoveAll(name)))
	}
	return n, nil
}

// copyTo makes a copy of the file, without its unused parts.
func (st *store) copyTo(name string) error {
	if err := os.RemoveAll(name); err != nil {
		return err
	}
	fresh, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true})
	if err != nil {
		return err
	}
	return errors.Join(bbolt.Compact(fresh, st.DB, 16<<20), fresh.Sync(), fresh.Close())
}

// shortestID is the least number of bytes of a word that Find looks for in IDs: many IDs hold a shorter one by chance.
const shortestID = 6

// Leads returns every lead in the order of creation: a test compares them with what a run reports.
func (s *Server) Leads() (leads []Lead, err error) {
	err = s.store.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(leadBucket).ForEach(func(_, v []byte) error {
			l, err := readLead(v)
			leads = append(leads, l)
			return err
		})
	})
	return leads, err
}

// Find returns the newest leads that match every word of a query, and whether there are more than limit. A word, in any
// case, matches the status, ExternalID, type, content, location or organization's name. One of at least six bytes also
// matches the ID of lead or organization. A time (RFC 3339) matches leads made in the minute after it.
func (s *Server) Find(query string, limit int) (found []Lead, more bool, err error) {
	words := strings.Fields(strings.ToLower(query))
	err = s.store.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(leadBucket).Cursor()
		for k, v := c.Last(); k != nil; k, v = c.Prev() {
			l, err := readLead(v)
			switch {
			case err != nil:
				return err
			case !s.holds(&l, words):
			case len(found) == limit:
				more = true
				return nil
			default:
				found = append(found, l)
			}
		}
		return nil
	})
	return found, more, err
}

// holds reports whether a lead matches every word. The words are in lower case.
func (s *Server) holds(l *Lead, words []string) bool {
	values := []string{l.ExternalID, l.Status, l.TypeKey, l.TypeLabel, l.Location.Name, l.Location.Address}
	values = append(values, s.OrganizationName(l.OwnerID))
	for _, value := range l.Content {
		values = append(values, TextOf(value))
	}
	text, ids := strings.ToLower(strings.Join(values, "\n")), strings.ToLower(l.ID+"\n"+l.OwnerID)
	made, _ := time.Parse(timeLayout, l.CreatedAt)
	return !slices.ContainsFunc(words, func(w string) bool {
		sent, err := time.Parse(time.RFC3339, strings.ToUpper(w))
		after := made.Sub(sent)
		soon := err == nil && after > -time.Second && after <= time.Minute
		return !soon && !strings.Contains(text, w) && (len(w) < shortestID || !strings.Contains(ids, w))
	})
}
