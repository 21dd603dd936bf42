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
const format = 5

var headerKey = []byte("header")

// header is what the file is. It changes only when an older copy is taken for good.
type header struct {
	version   uint64
	id        fileID
	ancestors []fileID // what it was made from by repair, or was before that copy was taken; oldest first
	secret    []byte   // key of the digests
	target    checkpoint.Target
	made      time.Time
}

// fileID is the random number of a checkpoint. PATH.seq and summaries of runs name it: a
// copy has it too.
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
	b = binary.AppendUvarint(b, uint64(len(h.ancestors)))
	for _, id := range h.ancestors {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
	}
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
	for n := f.Uint(); n > 0 && !f.Bad; n-- {
		h.ancestors = append(h.ancestors, takeID(&f))
	}
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

// differences names what is not equal in two targets.
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
// path, so that a kill leaves either nothing or a good file. Somebody else's
// file that came first stays and is no error; made is false then.
func create(path string, h header, l lacking, moving string) (made bool, err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return false, err
	}
	defer os.Remove(temp.Name())
	if err := errors.Join(disk.MakeNewPrivate(temp), temp.Close()); err != nil {
		return false, err
	}
	if err := writeEmpty(temp.Name(), h, l, moving); err != nil {
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
func writeEmpty(path string, h header, l lacking, moving string) error {
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
		if l.some {
			if err := meta.Put(lackingKey, l.encode()); err != nil {
				return err
			}
		}
		if moving != "" {
			if err := putMoving(meta, moving); err != nil {
				return err
			}
		}
		return errors.Join(meta.Put(headerKey, h.encode()), meta.Put(tallyKey, tally{}.encode()))
	})
	return errors.Join(err, db.Close())
}

func buckets() [][]byte {
	return [][]byte{inMeta, inEntries, inIntents, inLeads, inLinks, inWanted, inFolds, inWords, inRuns, inAudit, inBlocked, inNotes, newEntries, newLeads}
}
