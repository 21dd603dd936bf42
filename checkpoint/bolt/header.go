package bolt

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
)

// format is the version of everything in the file but bbolt's own pages. No other is read.
const format = 9

var headerKey = []byte("header")

// header is what the file is. It changes only when an older copy is taken for good.
type header struct {
	version uint64
	id      fileID
	secret  []byte // key of the digests
	target  checkpoint.Target
	made    time.Time
}

// fileID is the random number of a checkpoint. Witnesses name it: a copy of the file has it too.
type fileID uint64

func (id fileID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

func newHeader(t checkpoint.Target, now time.Time) header {
	var random [40]byte
	rand.Read(random[:])
	return header{
		version: format, id: fileID(binary.BigEndian.Uint64(random[32:])),
		secret: random[:32], target: t, made: now,
	}
}

func (h header) encode() []byte {
	b := binary.AppendUvarint(nil, h.version)
	b = binary.BigEndian.AppendUint64(b, uint64(h.id))
	b = append(b, h.secret...)
	b = records.AppendText(records.AppendText(records.AppendText(b, h.target.BaseURL), h.target.LeadsURL), h.target.TrunkID)
	return records.Seal(records.AppendTime(b, h.made), 0, headerKey)
}

// decodeHeader stops after the version when it is not ours.
func decodeHeader(record []byte) (h header, err error) {
	f, err := records.Unseal(headerKey, record)
	if err != nil {
		return h, err
	}
	if h.version = f.Uint(); h.version != format {
		return h, nil
	}
	h.id = takeID(&f)
	h.secret = append([]byte(nil), f.Next(32)...)
	h.target = checkpoint.Target{BaseURL: f.Text(), LeadsURL: f.Text(), TrunkID: f.Text()}
	h.made = f.Time()
	return h, f.Done()
}

func takeID(f *records.Reader) fileID {
	if b := f.Next(8); b != nil {
		return fileID(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (h header) differences(t checkpoint.Target) string {
	var parts []string
	file, given := h.target.Canonical(), t.Canonical()
	for _, p := range []struct{ name, file, given string }{
		{"base URL", file.BaseURL, given.BaseURL},
		{"leads URL", file.LeadsURL, given.LeadsURL},
		{"trunk ID", file.TrunkID, given.TrunkID},
	} {
		if p.file != p.given {
			parts = append(parts, fmt.Sprintf("%s is %q, not %q", p.name, p.file, p.given))
		}
	}
	return strings.Join(parts, "; ")
}

// create makes an empty checkpoint whole under a temporary name and links it to
// path, so that a kill leaves either nothing or a good file. besides is what its header
// says further. Somebody else's file that came first stays and is no error; made is false then.
func create(path string, h header, besides ...record) (made bool, err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return false, err
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return false, err
	}
	if err := writeEmpty(temp.Name(), h, besides); err != nil {
		return false, err
	}
	for _, put := range []func(from, to string) error{os.Link, disk.RenameNew, replaceNew} {
		if err = put(temp.Name(), path); err == nil {
			return true, disk.SyncFolder(filepath.Dir(path))
		}
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, errFirst) && !errors.Is(err, syscall.EINVAL) {
			break // file systems say in these ways that they cannot
		}
	}
	return false, err
}

// createNew is create where the file must not be there yet.
func createNew(path string, h header, besides ...record) error {
	made, err := create(path, h, besides...)
	switch {
	case err != nil:
		return refuse(path, err, "cannot be made: "+err.Error(), disk.WayOut(err))
	case !made:
		return refuse(path, fs.ErrExist, "cannot be made: "+fs.ErrExist.Error(), "name a file that is not there yet; nothing was written")
	}
	return nil
}

// errFirst is EPERM, and ERROR_INVALID_FUNCTION on Windows.
const errFirst = syscall.Errno(1)

// replaceNew is what is left where a file system knows neither links nor renames that
// replace nothing. A kill in its midst leaves an empty file, which is refused.
func replaceNew(from, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Rename(from, to))
}

// writeEmpty writes the buckets, the header and an empty tally. bbolt syncs them.
func writeEmpty(path string, h header, besides []record) error {
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
		for _, one := range append(besides, record{headerKey, h.encode()}, record{tallyKey, tally{}.encode()}) {
			if err := tx.Bucket(inMeta).Put(one.key, one.value); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, db.Close())
}

func buckets() [][]byte {
	return [][]byte{inMeta, inEntries, inIntents, inLeads, inLinks, inWanted, inFolds, inWords, inNotes, inBlocked, newEntries, newLeads}
}

// states is how many there are.
const states = int(checkpoint.Forgotten) + 1

var tallyKey = []byte("tally")

// tally counts commits, keys by the state that a look-up shows, words and notes. It shows when a damaged page has lost some.
type tally struct {
	seq      uint64
	keys     [states]uint64
	words    uint64
	notes    uint64
	people   uint64                        // of notes, those of decisions and shapes: of leads that may have been known
	statuses [records.KindsOfStatus]uint64 // leads by the status last confirmed
}

func (t tally) encode() []byte {
	b := binary.AppendUvarint(nil, t.seq)
	for _, n := range t.keys {
		b = binary.AppendUvarint(b, n)
	}
	for _, n := range append([]uint64{t.words, t.notes, t.people}, t.statuses[:]...) {
		b = binary.AppendUvarint(b, n)
	}
	return records.Seal(b, 0, tallyKey)
}

func decodeTally(record []byte) (t tally, err error) {
	f, err := records.Unseal(tallyKey, record)
	if err != nil {
		return t, err
	}
	t.seq = f.Uint()
	for i := range t.keys {
		t.keys[i] = f.Uint()
	}
	t.words, t.notes, t.people = f.Uint(), f.Uint(), f.Uint()
	for i := range t.statuses {
		t.statuses[i] = f.Uint()
	}
	return t, f.Done()
}

func (t *tally) total() (n uint64) {
	for _, keys := range t.keys {
		n += keys
	}
	return n
}

// known is how many keys must not be sent again: they have a lead, or are in doubt.
func (t *tally) known() uint64 {
	return t.keys[checkpoint.Created] + t.keys[checkpoint.Partial] + t.keys[checkpoint.InDoubt]
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

// lackingKey stands in the file while leads are missing from it.
var lackingKey = []byte("incomplete")

// lacking says what is missing of what the file, or what it was made from, has known: a key that is not known may have
// a lead. An empty text: nothing is.
type lacking struct {
	text  string // what is missing, as the subject of a sentence
	since uint64 // the commit that noted it: what was known before may have become something else
}

func (l lacking) encode() []byte {
	return records.Seal(binary.AppendUvarint(records.AppendText(nil, l.text), l.since), 0, lackingKey)
}

func decodeLacking(record []byte) (l lacking, err error) {
	if record == nil {
		return l, nil
	}
	f, err := records.Unseal(lackingKey, record)
	if err != nil {
		return l, err
	}
	l = lacking{text: f.Text(), since: f.Uint()}
	return l, f.Done()
}

// lacks is what the file is known to lack now.
func (d *Store) lacks() lacking {
	if l := d.missing.Load(); l != nil {
		return *l
	}
	return lacking{}
}

func (l lacking) warning() string {
	return "the checkpoint is incomplete: it lacks " + l.text + ". Rows that it does not know are held in doubt, not sent, until " +
		"`leadferry checkpoint resolve` settles them, or `leadferry checkpoint check --accept-loss` gives up what is missing"
}
