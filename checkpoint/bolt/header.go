package bolt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// The buckets of the file.
var (
	inMeta     = []byte("meta")        // the header
	inEntries  = []byte("entries")     // key → entry
	inIntents  = []byte("intents")     // key → intent; a small bucket, so that rows in flight are found at once
	inLeads    = []byte("leads")       // lead ID → key
	inLinks    = []byte("links")       // ExternalID had or wanted, key → checksum; no record if both are equal
	inFolds    = []byte("folds")       // fold of a key, key → checksum; no record if the key is its own fold
	inNotes    = []byte("notes")       // name → JSON: runs, decisions, shapes, the lineage
	inBlocked  = []byte("blocked")     // keyed hash of a forgotten key → when
	newEntries = []byte("new entries") // number, key → new entry, see buffered
	newLeads   = []byte("new leads")   // number, lead ID → key, see buffered
)

// buckets lists all of them. Entries come before their log, so that Salvage prefers them.
var buckets = [][]byte{
	inMeta, inEntries, newEntries, inIntents, inLeads, newLeads, inLinks, inFolds, inNotes, inBlocked,
}

var headerKey = []byte("header")

// header is what the file says about itself. It is stored as JSON, and written again with each commit.
type header struct {
	Format  int    `json:"format"`
	ID      string // a random number: witnesses name it, and a copy of the file has it, too
	Secret  []byte // key of the digests
	Target  checkpoint.Target
	Moved   string // where its leads are kept now: it was copied
	Filling string // what it is being filled from: it is not complete yet
	Lacks   string // which leads it has lost, see [checkpoint.Info].Missing
	Since   uint64 // the commit that noted the loss: what was known before may be wrong now
	Erase   bool   // unused pages hold what was forgotten, until the file is compacted
	Seq     uint64 // number of the last commit
	Counts  counts
}

// counts are numbers of records. If they differ from what is there, a damaged page has lost some.
type counts struct {
	Keys    [checkpoint.Forgotten + 1]uint64 // by the state that a look-up shows
	Entries uint64                           // also those that an intent hides
	Indexed uint64                           // records in the indexes
	Notes   uint64
}

func newHeader(t checkpoint.Target) header {
	return header{Format: checkpoint.Format, ID: checkpoint.NewID(), Secret: checkpoint.NewSecret(), Target: t}
}

func (h *header) putIn(tx *bbolt.Tx) error {
	return tx.Bucket(inMeta).Put(headerKey, seal(checkpoint.Encode(h), headerKey))
}

// decodeHeader decodes a header. If its format is not ours, only Format is set.
func decodeHeader(record []byte) (*header, error) {
	text, err := unseal(headerKey, record)
	var version struct {
		Format int `json:"format"`
	}
	if err == nil {
		err = checkpoint.Decode(text, &version)
	}
	h := &header{Format: version.Format}
	if err == nil && h.Format == checkpoint.Format {
		err = checkpoint.Decode(text, h)
	}
	return h, err
}

// move counts that a key goes from one state to another. Unknown is not counted.
func (c *counts) move(from, to checkpoint.State) {
	if from != checkpoint.Unknown {
		c.Keys[from]--
	}
	if to != checkpoint.Unknown {
		c.Keys[to]++
	}
}

// create makes an empty checkpoint under a temporary name and links it to path, so that a kill leaves either nothing or
// a good file. If another file is already there, it stays: made is false, without an error.
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
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.Errno(1)) { // EPERM, or its like on Windows
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

// replaceNew renames a file unless something has the new name. A kill in between leaves an empty file.
func replaceNew(from, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_ = f.Close() // nothing was written
	if err = os.Rename(from, to); err != nil {
		os.Remove(to) // an empty file would look damaged
	}
	return err
}

// writeEmpty writes the buckets and the header. bbolt syncs them.
func writeEmpty(path string, h *header) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: leastWait})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return h.putIn(tx)
	})
	return errors.Join(err, db.Close())
}

// Fill makes a checkpoint at path, with its own ID, from what another one (name) knows. It replaces what an interrupted
// Fill from the same checkpoint left; any other file is an error. Runs refuse the new file before from is called.
func Fill(path string, from func() (*checkpoint.Contents, error), name string, t checkpoint.Target, o Options) error {
	to := resolved(path)
	if err := makeRoom(to, name, o); err != nil {
		return err
	}
	h := newHeader(t)
	h.Filling = name // runs refuse it from the beginning
	return makeFrom(to, &h, o, from)
}

// makeFrom makes a new file and fills it with what contents returns. It refuses a file that exists.
func makeFrom(to string, h *header, o Options, contents func() (*checkpoint.Contents, error)) (err error) {
	made, err := create(to, h)
	switch {
	case err != nil:
		return checkpoint.Refuse(to, err, "cannot be made: "+err.Error(), disk.WayOut(err))
	case !made:
		return checkpoint.Refuse(to, fs.ErrExist, "exists already", "name a file that is not there yet")
	}
	o.Require, o.Moved = true, true
	d, err := Open(to, h.Target, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c, err := contents()
	if err != nil {
		return err
	}
	d.digests = checkpoint.NewDigester(c.Secret)
	if err := checkpoint.TakeOver(context.Background(), d, c); err != nil {
		return err
	}
	return d.setHeader(func(h *header) { h.Secret, h.Filling = c.Secret, "" })
}

// makeRoom removes what an interrupted copy of the same checkpoint has left.
func makeRoom(to, name string, o Options) error {
	if !disk.Exists(to) {
		return nil
	}
	o.ReadOnly, o.Moved = true, true
	d, err := Open(to, checkpoint.Target{}, o)
	if err != nil {
		return err
	}
	if err := d.Close(); err != nil || d.head.Load().Filling != name {
		return err // if nil, makeFrom refuses the file
	}
	return os.Remove(to)
}
