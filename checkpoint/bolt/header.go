package bolt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// format is the version of everything in the file but bbolt's own pages. No other is read.
const format = 12

var headerKey = []byte("header")

// header says what the file is. It is kept as JSON.
type header struct {
	Format  int               `json:"format"`
	ID      string            `json:"id"`     // a random number: witnesses name it, and a copy of the file has it too
	Secret  []byte            `json:"secret"` // key of the digests
	Target  checkpoint.Target `json:"target"`
	Moved   string            `json:"moved,omitempty"`   // where its leads are kept now: it was copied
	Filling string            `json:"filling,omitempty"` // what it is being filled from: it is not complete yet
	Lacks   string            `json:"lacks,omitempty"`   // leads that it knew once, as what follows "lacks"
	// the commit that noted it: what was known before may be wrong now
	Since uint64 `json:"since,omitempty"`
	Erase bool   `json:"erase,omitempty"` // what was forgotten is in unused pages until it is compacted
}

func newHeader(t checkpoint.Target) header {
	return header{Format: format, ID: checkpoint.NewID(), Secret: checkpoint.NewSecret(), Target: t}
}

func (h *header) encode() []byte {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // texts, numbers and a time
	}
	return seal(text, 0, headerKey)
}

// decodeHeader reads no more than the format of a file whose format is another one.
func decodeHeader(record []byte) (*header, error) {
	text, err := unseal(headerKey, record)
	if err != nil {
		return nil, err
	}
	var version struct{ Format int }
	h := new(header)
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, errRecord
	}
	if h.Format = version.Format; h.Format == format && json.Unmarshal(text, h) != nil {
		return nil, errRecord
	}
	return h, nil
}

// mustBeOf refuses the file at path, which belongs to a target, where another one is given.
func mustBeOf(path string, target, given checkpoint.Target) error {
	if given == (checkpoint.Target{}) {
		return nil
	}
	var parts []string
	target, given = target.Canonical(), given.Canonical()
	for _, p := range []struct{ name, file, given string }{
		{"base URL", target.BaseURL, given.BaseURL},
		{"leads URL", target.LeadsURL, given.LeadsURL},
		{"trunk ID", target.TrunkID, given.TrunkID},
	} {
		if p.file != p.given {
			parts = append(parts, fmt.Sprintf("%s is %q, not %q", p.name, p.file, p.given))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return refuse(path, checkpoint.ErrTarget, "belongs to another target: its "+strings.Join(parts, "; "),
		"name the target that this checkpoint belongs to (--base-url, --leads-url, --trunk-id or --profile)")
}

// create makes an empty checkpoint whole under a temporary name and links it to path, so that a kill leaves either
// nothing or a good file. Somebody else's file that came first stays and is no error; made is false then.
func create(path string, h *header) (made bool, err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return false, err
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return false, err
	}
	if err := writeEmpty(temp.Name(), h); err != nil {
		return false, err
	}
	err = os.Link(temp.Name(), path)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, noLinks) {
		err = replaceNew(temp.Name(), path)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, disk.SyncFolder(filepath.Dir(path))
}

// noLinks is how a file system says that it knows no links: EPERM, and ERROR_INVALID_FUNCTION on Windows.
const noLinks = syscall.Errno(1)

// replaceNew renames a file unless something has the new name. A kill in its midst leaves an empty file.
func replaceNew(from, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Rename(from, to))
}

// writeEmpty writes the buckets, the header and an empty tally. bbolt syncs them.
func writeEmpty(path string, h *header) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: leastWait})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets() {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(inMeta)
		return errors.Join(meta.Put(headerKey, h.encode()), meta.Put(tallyKey, new(tally).encode()))
	})
	return errors.Join(err, db.Close())
}

// Fill makes a checkpoint of what another one knows, under an ID of its own. What a copy from there has left is made
// anew; any other file is an error. begun is called once runs are refused there, before anything is read.
func Fill(path string, from func() (*checkpoint.Contents, error), name string, t checkpoint.Target, begun func() error,
	o Options,
) error {
	to := resolved(path)
	if err := makeRoom(to, name, o); err != nil {
		return err
	}
	o.Require, o.Moved = true, true
	// From its first moment it refuses runs.
	h := newHeader(t)
	h.Filling = name
	return makeFrom(to, &h, o, func(d *Store) error {
		if err := begun(); err != nil {
			return err
		}
		c, err := from()
		if err != nil {
			return err
		}
		d.digests = checkpoint.NewDigester(c.Secret)
		if err := d.setHeader(func(h *header) { h.Secret = c.Secret }); err != nil {
			return err
		}
		if err := checkpoint.TakeOver(context.Background(), d, c); err != nil {
			return err
		}
		return d.setHeader(func(h *header) { h.Filling = "" })
	})
}

// makeFrom makes a file that must not be there yet, has fill fill it, and closes it.
func makeFrom(to string, h *header, o Options, fill func(*Store) error) error {
	made, err := create(to, h)
	switch {
	case err != nil:
		return refuse(to, err, "cannot be made: "+err.Error(), disk.WayOut(err))
	case !made:
		return refuse(to, fs.ErrExist, "cannot be made: "+fs.ErrExist.Error(),
			"name a file that is not there yet; nothing was written")
	}
	d, err := Open(to, h.Target, o)
	if err != nil {
		return err
	}
	return errors.Join(fill(d), d.Close())
}

// makeRoom removes what an interrupted copy of the same checkpoint has left.
func makeRoom(to, name string, o Options) error {
	if !disk.Exists(to) {
		return nil
	}
	o.ReadOnly, o.Require, o.Moved = true, true, true
	d, err := Open(to, checkpoint.Target{}, o)
	if err != nil {
		return err
	}
	left := d.head.Load().Filling == name
	if err := d.Close(); err != nil {
		return err
	}
	if !left {
		return refuse(to, fs.ErrExist, "exists already", "name a file that is not there yet")
	}
	return os.Remove(to)
}

// buckets are all of them: entries before the log of new ones.
func buckets() [][]byte {
	return [][]byte{
		inMeta, inEntries, newEntries, inIntents, inLeads, newLeads, inLinks, inFolds, inNotes, inBlocked,
	}
}

const states = int(checkpoint.Forgotten) + 1

var tallyKey = []byte("tally")

// tally counts commits, keys by the state that a look-up shows, and records. It shows when a damaged page lost some.
type tally struct {
	seq     uint64
	keys    [states]uint64
	notes   uint64
	indexed uint64 // records in the indexes
}

// code writes all that it counts, or reads it.
func (t *tally) code(c *coder) {
	c.Uint(&t.seq)
	c.Uint(&t.notes)
	c.Uint(&t.indexed)
	for i := range t.keys {
		c.Uint(&t.keys[i])
	}
}

func (t *tally) encode() []byte {
	c := new(coder)
	t.code(c)
	return seal(c.Written(), 0, tallyKey)
}

func decodeTally(record []byte) (*tally, error) {
	fields, err := unseal(tallyKey, record)
	if err != nil {
		return nil, err
	}
	t, c := new(tally), readCoder(fields)
	t.code(c)
	return t, c.Done()
}

func (t *tally) total() (n uint64) {
	for _, keys := range t.keys {
		n += keys
	}
	return n
}

// move counts a key from one state to another; Unknown is not counted.
func (t *tally) move(from, to checkpoint.State) {
	if from != checkpoint.Unknown {
		t.keys[from]--
	}
	if to != checkpoint.Unknown {
		t.keys[to]++
	}
}
