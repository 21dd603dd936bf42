package bolt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

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
	d.held = true
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

// beingReplaced says that the holder of the lock has closed the file, to put another one in its place in a moment:
// see inItsPlace.
func (d *Store) beingReplaced() bool {
	if !disk.KeepsOpenFiles {
		return false
	}
	f, err := openOwn(d.replacingPath(), os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	free, err := disk.TryLock(f, true)
	return err == nil && !free
}

func (d *Store) openFile(t checkpoint.Target, o Options) error {
	flag := os.O_RDWR
	if o.ReadOnly {
		flag = os.O_RDONLY
	}
	d.fresh = false
	open := func() (err error) { d.file, err = openOwn(d.path, flag); return err }
	err := disk.OpenPatiently(o.Wait, open)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if o.ReadOnly || o.Require {
		return d.refuse(checkpoint.ErrMissing, "does not exist", "")
	}
	h := newHeader(t)
	if d.fresh, err = create(d.path, &h); err != nil {
		return err
	}
	return disk.OpenPatiently(o.Wait, open)
}

// takeCare takes the file from the sight of others and removes what one that was killed left beside it, unless it is
// to be read only. It comes once the file is known to be this target's checkpoint: another one that was named by
// mistake stays as it is. Some file systems do not keep who may read what.
func (d *Store) takeCare() error {
	if !d.readOnly {
		err := disk.Patiently(func() error { return os.Remove(d.compactPath()) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	info, err := d.file.Stat()
	if err != nil || !disk.Shared(info) {
		return err
	}
	if d.readOnly {
		d.warn("others may read the checkpoint; the next run takes that from them")
		return nil
	}
	err = d.file.Chmod(0o600)
	if info, failed := d.file.Stat(); err != nil || failed != nil || disk.Shared(info) {
		d.warn("others may read the checkpoint, and its file system does not let that be changed")
	} else {
		d.warn("others were able to read the checkpoint; they no longer are")
	}
	return nil
}

// lock takes the lock that bbolt takes later on the same open file, which can be looked at before bbolt maps it. It
// waits a moment in any case: the process that checked the file for a killed run lets go of it only then.
func (d *Store) lock(wait time.Duration) error {
	for end := time.Now().Add(max(wait, leastPatience)); ; time.Sleep(pollEvery) {
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
	if w, goesOn := d.book.Holder(d.path); goesOn {
		holder = fmt.Sprintf("another run (process %d)", w.Process)
	}
	return d.refuse(checkpoint.ErrLocked, "is in use by "+holder, "wait for it to end, or use --wait")
}

const noLocks = "there, locks and synced writes may not hold what they promise, and rows could be sent twice"

// placesByMagic are the kinds of file systems that a checkpoint had better not lie on, by their number on Linux.
var placesByMagic = map[int64]struct {
	name    string
	refused bool
	why     string
}{
	0x6969: {"NFS", true, noLocks},

	disk.NetworkDrive: {"a network drive", true, noLocks},
	0x517b:            {"SMB", false, noLocks},
	0xff534d42:        {"SMB", false, noLocks},
	0xfe534d42:        {"SMB", false, noLocks},
	0x01021997:        {"9P", false, noLocks},
	0x65735546:        {"FUSE", false, noLocks},
	0x794c7630:        {"an overlay", false, "it is gone with the container that it belongs to, unless that is kept"},
}

// RefusedPlace says why no checkpoint may lie at a path, before anything else is made beside it; nil where one may.
func RefusedPlace(path string, o Options) error {
	return (&Store{path: resolved(path)}).checkPlace(o)
}

// checkPlace finds out where the file lies, or will lie. What the system does not tell is taken for good.
func (d *Store) checkPlace(o Options) error {
	if disk.Reserved(d.path) {
		return d.refuse(checkpoint.ErrPlace, disk.ReservedWords, "name another file with --checkpoint")
	}
	if o.ReadOnly {
		return nil
	}
	if folder, err := os.Stat(filepath.Dir(d.path)); err == nil && disk.Exposed(folder) != "" {
		d.warn("the checkpoint's folder " + filepath.Dir(d.path) + " " + disk.Exposed(folder) +
			": anyone who can write there can put another file in its place. Take the right to write there from others")
	}
	if o.AnyPlace {
		return nil
	}
	if o.magic == nil {
		o.magic = disk.FileSystem
	}
	number, err := o.magic(filepath.Dir(d.path))
	p, odd := placesByMagic[number]
	if err != nil || !odd {
		return nil
	}
	if p.refused {
		return d.refuse(checkpoint.ErrPlace, "is on "+p.name+": "+p.why,
			"copy it to a local disk (leadferry checkpoint copy "+checkpoint.Word(d.path)+" NEW) and use that one, "+
				"or set LEADFERRY_ANY_FILESYSTEM=1 to use this place")
	}
	d.warn("the checkpoint is on " + p.name + ": " + p.why +
		". To move it, run: leadferry checkpoint copy " + checkpoint.Word(d.path) + " NEW")
	return nil
}

// openOwn opens the checkpoint: never through a symbolic link, nor a file that another user may have written.
func openOwn(path string, flags int) (*os.File, error) {
	var f *os.File
	err := disk.OpenPatiently(0, func() (err error) {
		f, err = os.OpenFile(path, flags|disk.NoFollow|disk.NonBlock, 0o600)
		return err
	})
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, which is not followed", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", path)
	case !disk.Trusted(info):
		err = fmt.Errorf("%s %w", path, errAnothers)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

var errAnothers = errors.New("belongs to another user, who may have written what he likes into it")

// resolved is the one name of a file: absolute, with symbolic links followed, also if it is not there yet.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return path
}

// leftAs says how the file is now: a hash of the boot of the machine, of which file it is, its size and its
// time. As long as it is equal, nobody has written to the file. "" where the system does not tell.
func (d *Store) leftAs() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	info, failed := d.file.Stat()
	if err != nil || failed != nil || disk.FileNumber(info) == "" {
		return ""
	}
	as := fmt.Appendf(nil, "%s %s %d %d", boot, disk.FileNumber(info), info.Size(), info.ModTime().UnixNano())
	sum := sha256.Sum256(as)
	return hex.EncodeToString(sum[:8])
}
