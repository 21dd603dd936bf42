package checkpoint

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// format is the version of everything in the file but bbolt's own pages.
// Files of the version before lack the bucket of recent entries; the first commit adds it.
const (
	format       = 3
	formatBefore = 2
)

var headerKey = []byte("header")

// Target is what the leads of a checkpoint belong to. All three parts must be
// equal when the file is opened again.
type Target struct{ BaseURL, LeadsURL, TrunkID string }

// header is what never changes in a file.
type header struct {
	version uint64
	file    uint64 // random; PATH.seq names it
	secret  []byte // key of the digests
	target  Target
	made    time.Time
}

func newHeader(t Target, now time.Time) header {
	var random [40]byte
	rand.Read(random[:])
	return header{
		version: format, file: binary.BigEndian.Uint64(random[32:]),
		secret: random[:32], target: t, made: now,
	}
}

func (h header) encode() []byte {
	b := binary.AppendUvarint(nil, h.version)
	b = binary.AppendUvarint(b, h.file)
	b = append(b, h.secret...)
	b = appendText(appendText(appendText(b, h.target.BaseURL), h.target.LeadsURL), h.target.TrunkID)
	return seal(appendTime(b, h.made), 0, headerKey)
}

// decodeHeader stops after the version when it is not ours.
func decodeHeader(record []byte) (h header, err error) {
	f, err := unseal(headerKey, record)
	if err != nil {
		return h, err
	}
	if h.version = f.uint(); h.version != format && h.version != formatBefore {
		return h, nil
	}
	h.file = f.uint()
	h.secret = append([]byte(nil), f.take(32)...)
	h.target = Target{BaseURL: f.text(), LeadsURL: f.text(), TrunkID: f.text()}
	h.made = f.time()
	return h, f.done()
}

// differences names what is not equal in two targets.
func (h header) differences(t Target) string {
	var parts []string
	for _, p := range []struct{ name, file, given string }{
		{"base URL", h.target.BaseURL, t.BaseURL},
		{"leads URL", h.target.LeadsURL, t.LeadsURL},
		{"trunk ID", h.target.TrunkID, t.TrunkID},
	} {
		if p.file != p.given {
			parts = append(parts, fmt.Sprintf("%s is %q, not %q", p.name, p.file, p.given))
		}
	}
	return strings.Join(parts, "; ")
}

// upgrade brings a file of the version before to this one: who knows only that one must
// not take a file that has recent entries.
func upgrade(tx *bolt.Tx) error {
	if tx.Bucket(inRecent) != nil {
		return nil
	}
	meta := tx.Bucket(inMeta)
	h, err := decodeHeader(meta.Get(headerKey))
	if err != nil {
		return err
	}
	h.version = format
	_, err = tx.CreateBucket(inRecent)
	return errors.Join(err, meta.Put(headerKey, h.encode()))
}

// create makes an empty checkpoint whole under a temporary name and links it to
// path, so that a kill leaves either nothing or a good file. Somebody else's
// file that came first stays and is no error; made is false then.
func create(path string, h header) (made bool, err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return false, err
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return false, err
	}
	if err := fill(temp.Name(), h); err != nil {
		return false, err
	}
	if err := os.Link(temp.Name(), path); errors.Is(err, fs.ErrExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, syncDir(filepath.Dir(path))
}

// fill writes the buckets, the header and an empty tally. bbolt syncs them.
func fill(path string, h header) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: leastWait})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range buckets() {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(inMeta)
		return errors.Join(meta.Put(headerKey, h.encode()), meta.Put(tallyKey, tally{}.encode()))
	})
	return errors.Join(err, db.Close())
}

func buckets() [][]byte {
	return [][]byte{inMeta, inEntries, inIntents, inLeads, inLinks, inWords, inRuns, inAudit, inBlocked, inRecent}
}
