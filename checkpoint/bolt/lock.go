package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// openLocked opens and locks the file, and removes what a killed compaction left.
func (d *Store) openLocked(t checkpoint.Target, o Options) error {
	for held := false; !held; {
		if err := d.openFile(t, o); err != nil {
			return err
		}
		var err error
		if held, err = d.lockInPlace(o.Wait); err != nil {
			return err
		}
	}
	if d.held = true; d.readOnly {
		return nil
	}
	for _, left := range []string{d.compactPath(), d.statusPath()} { // by one that was killed
		if err := disk.Patiently(func() error { return os.Remove(left) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// lockInPlace locks the open file. It lets go of it and reports false when who held the lock
// has put a compacted file in its place: what is written to this one would be lost.
func (d *Store) lockInPlace(wait time.Duration) (bool, error) {
	if err := d.lock(wait); err != nil {
		return false, err
	}
	ours, err := d.file.Stat()
	if err != nil {
		return false, err
	}
	if named, err := os.Stat(d.path); err == nil && os.SameFile(ours, named) && !d.beingReplaced() {
		return true, nil
	}
	err = errors.Join(disk.Unlock(d.file), d.file.Close())
	d.file = nil
	if disk.KeepsOpenFiles {
		time.Sleep(pollEvery) // or it is open whenever somebody tries to replace it
	}
	return false, err
}

// beingReplaced says that whoever held the lock has closed the file, to put another one in its place in a moment:
// see inItsPlace.
func (d *Store) beingReplaced() bool {
	if !disk.KeepsOpenFiles {
		return false
	}
	f, err := openOwn(d.seqPath(), os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	free, err := disk.TryLock(f, true)
	return err == nil && !free
}

// openFile opens the file, after making it if it may be made.
func (d *Store) openFile(t checkpoint.Target, o Options) error {
	flag := os.O_RDWR
	if o.ReadOnly {
		flag = os.O_RDONLY
	}
	d.fresh = false
	f, err := openOwn(d.path, flag)
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.make(t, &o); err != nil {
			return err
		}
		f, err = openOwn(d.path, flag)
	}
	if err != nil {
		return err
	}
	d.file = f
	return d.checkFile()
}

// make makes the file, if it may be made.
func (d *Store) make(t checkpoint.Target, o *Options) (err error) {
	gone, hint := d.gone(t, o)
	switch {
	case gone != "" && !o.Anew:
		return d.refuse(checkpoint.ErrGone, gone, hint)
	case o.ReadOnly || o.Require:
		return d.refuse(checkpoint.ErrMissing, "does not exist", "")
	}
	h := newHeader(t, o.Now())
	m, found, err := readSeq(d.seqPath())
	if err != nil {
		return err
	}
	d.header = h
	h.descendFrom(d.strangers(m, found, o))
	d.fresh, err = create(d.path, h, lacking{})
	d.predecessor = gone
	if other := d.otherCheckpoint(t, o); other != "" && gone == "" {
		d.warn(other)
	}
	return err
}

// checkFile takes the file from the sight of others, unless it is to be read only. Some
// file systems do not keep who may read what.
func (d *Store) checkFile() error {
	info, err := disk.StatOpen(d.file)
	switch {
	case err != nil:
		return err
	case !disk.Shared(info):
		return nil
	case d.readOnly:
		d.warn("others may read the checkpoint; the next run takes that from them")
		return nil
	}
	if narrow(d.file) {
		d.warn("others were able to read the checkpoint; they no longer are")
	} else {
		d.warn("others may read the checkpoint, and its file system does not let that be changed")
	}
	return nil
}

// narrow makes a file its owner's alone and says whether it is.
func narrow(f *os.File) bool {
	if disk.MakePrivate(f) != nil {
		return false
	}
	info, err := disk.StatOpen(f)
	return err == nil && !disk.Shared(info)
}

// lock takes the lock that bbolt takes later on the same open file, where it then succeeds
// at once. So the file can be looked at before bbolt maps it.
func (d *Store) lock(wait time.Duration) error {
	for end := time.Now().Add(wait); ; time.Sleep(pollEvery) {
		held, err := disk.TryLock(d.file, d.readOnly)
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

func (d *Store) inUse() error {
	holder := "another run"
	if m, found, _ := readSeq(d.seqPath()); found && !m.clean {
		holder = fmt.Sprintf("another run (process %d)", m.pid)
	}
	return d.refuse(checkpoint.ErrLocked, "is in use by "+holder, "wait for it to end, or use --wait")
}
