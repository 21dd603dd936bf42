package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	leastWait = 50 * time.Millisecond // bbolt waits for ever when told 0
	pollEvery = 50 * time.Millisecond
	growBy    = 1 << 20  // bytes; bbolt's own 16 MiB would be most of a small file
	smallFile = 32 << 20 // bytes; smaller files are checked whole each time
)

// Options say how a checkpoint is opened.
type Options struct {
	Wait     time.Duration // how long to wait for the lock; 0 tries once
	ReadOnly bool          // take a shared lock and write nothing, not even PATH.seq
	Require  bool          // ErrMissing instead of a new file; ReadOnly implies it
	Check    bool          // check every page and record, whatever PATH.seq says
	Accept   bool          // check, and go on with a file that was rolled back
	Now      func() time.Time
}

// Open opens the checkpoint at path, or makes a new one for t; the zero Target
// opens one of whatever target and makes none. Its directory must exist. Errors are *[OpenError] around a sentinel or the system's error.
func Open(path string, t Target, o Options) (*DB, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &DB{
		path: path, readOnly: o.ReadOnly, now: o.Now,
		wake: make(chan struct{}, 1), idle: make(chan struct{}),
	}
	if err := d.open(t, o); err != nil {
		d.abandon(err)
		return nil, d.openError(err)
	}
	if !d.readOnly {
		go (&writer{d: d, ledger: ledger{words: d.words, young: d.young}}).run()
	}
	return d, nil
}

func (d *DB) open(t Target, o Options) error {
	if err := d.openFile(t, o); err != nil {
		return err
	}
	if err := d.lock(o.Wait); err != nil {
		return err
	}
	m, found, err := readMark(d.markPath())
	if err != nil {
		return err
	}
	img, err := inspect(d.file)
	if err != nil {
		return err
	}
	whole := o.Check || o.Accept || !found || !m.clean || img.bytes() <= smallFile
	if whole {
		if err := img.walk(); err != nil {
			return err
		}
	}
	if err := d.openBolt(t); err != nil {
		return err
	}
	return d.begin(m, found, whole, o.Accept)
}

// openFile opens the file, after making it if it may be made.
func (d *DB) openFile(t Target, o Options) error {
	flag := os.O_RDWR
	if o.ReadOnly {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(d.path, flag, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if o.ReadOnly || o.Require {
			return d.refuse(ErrMissing, "does not exist", "")
		}
		if d.fresh, err = create(d.path, newHeader(t, o.Now())); err != nil {
			return err
		}
		f, err = os.OpenFile(d.path, flag, 0)
	}
	if err != nil {
		return err
	}
	d.file = f
	return d.checkFile()
}

// checkFile refuses what is no file and takes it from the sight of others.
func (d *DB) checkFile() error {
	info, err := d.file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return d.refuse(ErrDamaged, "is not a regular file", "")
	case info.Mode().Perm()&0o077 == 0:
		return nil
	}
	if err := d.file.Chmod(0o600); err != nil {
		return fmt.Errorf("others may read the file, and that cannot be changed: %w", err)
	}
	d.warn("others were able to read the checkpoint; its mode is 0600 now")
	return nil
}

func (d *DB) lock(wait time.Duration) error {
	for end := time.Now().Add(wait); ; time.Sleep(pollEvery) {
		held, err := tryLock(d.file, d.readOnly)
		if err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		if held {
			return nil
		}
		if !time.Now().Before(end) {
			return d.inUse()
		}
	}
}

func (d *DB) inUse() error {
	holder := "another run"
	if m, found, _ := readMark(d.markPath()); found && !m.clean {
		holder = fmt.Sprintf("another run (process %d)", m.pid)
	}
	return d.refuse(ErrLocked, "is in use by "+holder, "wait for it to end, or use --wait")
}

// openBolt hands the file to bbolt and reads header, tally and runs.
func (d *DB) openBolt(t Target) error {
	err := guard(func() (err error) {
		d.bolt, err = bolt.Open(d.path, 0o600, &bolt.Options{
			Timeout: leastWait, ReadOnly: d.readOnly, NoStatistics: true,
			OpenFile: func(string, int, os.FileMode) (*os.File, error) { return d.file, nil },
		})
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return d.inUse()
	}
	if err != nil {
		return err
	}
	d.bolt.AllocSize = growBy
	return guard(func() error { return d.bolt.View(func(tx *bolt.Tx) error { return d.load(tx, t) }) })
}

func (d *DB) load(tx *bolt.Tx, t Target) (err error) {
	meta := tx.Bucket(inMeta)
	if meta == nil || meta.Get(headerKey) == nil {
		return d.refuse(ErrDamaged, "is a database, but not a checkpoint", "")
	}
	if d.header, err = decodeHeader(meta.Get(headerKey)); err != nil {
		return err
	}
	if v := d.header.version; v != format {
		return d.refuse(ErrVersion, fmt.Sprintf("has format version %d; this program reads version %d", v, format),
			"use the program that wrote it, or a checkpoint of its own")
	}
	if differ := d.header.differences(t); differ != "" && t != (Target{}) {
		return d.refuse(ErrTarget, "belongs to another target: its "+differ, "")
	}
	for _, name := range buckets() {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("%w: a part of it is missing", ErrDamaged)
		}
	}
	c, err := decodeTally(meta.Get(tallyKey))
	d.tally.Store(&c)
	d.digests = newDigester(d.header.secret)
	d.words, d.young = newWords(), newYoung()
	return errors.Join(err, d.words.load(tx.Bucket(inWords)))
}

// begin compares the file with PATH.seq, checks its records if it has to, and
// marks it as open.
func (d *DB) begin(m mark, found, whole, accept bool) error {
	seq := d.tally.Load().seq
	switch {
	case d.fresh && found:
		d.warn("a checkpoint stood here before, and " + d.markPath() + " counts its " +
			fmt.Sprint(m.seq) + " commits: rows that it knew will be created again")
	case d.fresh:
	case !found:
		d.warn(d.markPath() + " is missing or unreadable: whether the checkpoint was restored from an older copy cannot be seen")
	case !accept && (m.file != d.header.file || m.seq > seq):
		return d.refuse(ErrRolledBack, fmt.Sprintf("is at commit %d, but commit %d was made already: "+
			"it was restored from an older copy, replaced or damaged, and would make leads twice", seq, m.seq),
			"put the newest copy back; `leadferry checkpoint check --accept` goes on with this one")
	}
	if whole || m.seq != seq {
		if err := d.verify(); err != nil {
			return err
		}
	}
	if d.readOnly {
		return nil
	}
	var err error
	if d.mark, err = openMark(d.markPath()); err != nil {
		return err
	}
	if err := d.stamp(false); err != nil {
		return err
	}
	return errors.Join(d.mark.Sync(), syncDir(filepath.Dir(d.path)))
}

func (d *DB) markPath() string { return d.path + ".seq" }

func (d *DB) warn(text string) { d.warnings = append(d.warnings, text) }

func (d *DB) refuse(kind error, text, hint string) error {
	return &OpenError{Path: d.path, Text: text, Hint: hint, kind: kind}
}

// openError gives every error of opening its path and a sentence.
func (d *DB) openError(err error) error {
	if refused := (*OpenError)(nil); errors.As(err, &refused) {
		return err
	}
	if errors.Is(err, ErrDamaged) {
		return d.refuse(err, "is "+err.Error(), "put a copy of it back, or export what can be read from one; without it leads would be made twice")
	}
	return d.refuse(err, "cannot be opened: "+err.Error(), "")
}

// abandon lets go of a file that could not be opened.
func (d *DB) abandon(err error) {
	_ = d.fail(err)
	if d.mark != nil {
		d.mark.Close()
	}
	if d.file != nil {
		d.release()
	}
}
