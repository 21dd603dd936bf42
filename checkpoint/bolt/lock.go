package bolt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"syscall"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
)

// openLocked opens and locks the file, so that it can be looked at before bbolt maps it. bbolt later takes the same
// lock on it. openLocked always waits a moment: a process that checks the file for a killed run may hold the lock.
func (d *Store) openLocked(t checkpoint.Target) error {
	for end := time.Now().Add(max(d.o.Wait, leastPatience)); ; time.Sleep(pollEvery) {
		if err := d.openFile(t); err != nil {
			return err
		}
		if err := d.tryLock(); err != nil || d.locked {
			return err
		}
		if !time.Now().Before(end) {
			return d.inUse()
		}
	}
}

// tryLock locks the open file. It closes the file if it is in use or was replaced: what is written there would be lost.
func (d *Store) tryLock() error {
	locked, err := disk.TryLock(d.file, d.o.ReadOnly)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if locked && d.inPlace() == nil && !d.beingReplaced() {
		d.locked = true
		return nil
	}
	if locked {
		err = disk.Unlock(d.file)
	}
	err = errors.Join(err, d.file.Close())
	d.file = nil
	return err
}

// beingReplaced reports whether another process has closed the file to replace it, see inItsPlace.
func (d *Store) beingReplaced() bool {
	if runtime.GOOS != "windows" {
		return false
	}
	f, err := openOwn(d.replacingPath(), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	free, err := disk.TryLock(f, true)
	return err == nil && !free
}

func (d *Store) openFile(t checkpoint.Target) error {
	flag := os.O_RDWR
	if d.o.ReadOnly {
		flag = os.O_RDONLY
	}
	var err error
	d.fresh = false
	if d.file, err = openOwn(d.path, flag, d.o.Wait); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if d.o.ReadOnly || d.o.Require {
		return d.refuse(checkpoint.ErrMissing, "does not exist", "")
	}
	h := newHeader(t)
	if d.fresh, err = create(d.path, &h); err != nil {
		return err
	}
	d.file, err = openOwn(d.path, flag, d.o.Wait)
	return err
}

// protectFile takes the file's permissions from other users, if the file system stores any, and removes the copy that a
// killed process left beside it. A file that is opened for reading only stays as it is. Call it when the file is known
// to be this target's checkpoint: a file that was named by mistake must not change.
func (d *Store) protectFile() error {
	if d.o.ReadOnly {
		return nil
	}
	err := disk.Patiently(0, func() error { return os.Remove(d.compactPath()) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	info, err := d.file.Stat()
	if err != nil || !disk.Shared(info) {
		return err
	}
	_ = d.file.Chmod(0o600)
	d.warn("others were able to read the checkpoint. They are not any more, if its file system stores permissions")
	return nil
}

func (d *Store) inUse() error {
	holder := "another run"
	if w, goesOn := d.o.Witnesses.Holder(d.path); goesOn {
		holder = fmt.Sprintf("another run (process %d)", w.Process)
	}
	return d.refuse(checkpoint.ErrLocked, "is in use by "+holder, "wait for it to end (--wait, if the command has it)")
}

// placesByMagic are the file systems that are not safe for a checkpoint, by their magic number on Linux.
var placesByMagic = map[int64]string{
	0x6969: "NFS", disk.NetworkDrive: "a network drive", 0x517b: "SMB", 0xff534d42: "SMB", 0xfe534d42: "SMB",
	0x01021997: "9P", 0x65735546: "FUSE", overlay: "an overlay",
}

const overlay = 0x794c7630 // the file system of a container

// RefusedPlace says why a checkpoint may not be at a path (nil: it may), before anything else is made beside it.
func RefusedPlace(path string, o Options) error {
	return (&Store{path: resolved(path), o: o}).checkPlace()
}

// checkPlace refuses a place that is not safe for the file, or warns of it. An unknown file system counts as safe.
func (d *Store) checkPlace() error {
	if disk.Reserved(d.path) {
		return d.refuse(checkpoint.ErrPlace, disk.ReservedWords, "name another file with --checkpoint")
	}
	if d.o.ReadOnly {
		return nil
	}
	if folder, err := os.Stat(filepath.Dir(d.path)); err == nil && disk.Exposed(folder) != "" {
		d.warn("the checkpoint's folder " + filepath.Dir(d.path) + " " + disk.Exposed(folder) +
			": anyone who can write there can put another file in its place. Take the right to write there from others")
	}
	if d.o.AnyPlace {
		return nil
	}
	fileSystem := disk.FileSystem
	if d.o.magic != nil {
		fileSystem = d.o.magic
	}
	number, err := fileSystem(filepath.Dir(d.path))
	place := placesByMagic[number]
	if err != nil || place == "" {
		return nil
	}
	why := "there, locks and synced writes may not hold what they promise, and rows could be sent twice"
	switch number {
	case overlay:
		why = "it is gone with the container that it belongs to, unless that is kept"
	case 0x6969, disk.NetworkDrive:
		return d.refuse(checkpoint.ErrPlace, "is on "+place+": "+why,
			"copy it to a local disk (leadferry checkpoint copy "+shell.Path(d.path)+" NEW) and use that one, "+
				"or set LEADFERRY_ANY_FILESYSTEM=1 to use this place")
	}
	d.warn("the checkpoint is on " + place + ": " + why +
		". To move it, run: leadferry checkpoint copy " + shell.Path(d.path) + " NEW")
	return nil
}

// openOwn opens a file, but not through a symbolic link, and not a file that another user may have written.
func openOwn(path string, flags int, wait time.Duration) (*os.File, error) {
	var f *os.File
	err := disk.Patiently(wait, func() (err error) {
		f, err = os.OpenFile(path, flags|disk.NoFollow|disk.NonBlock, 0o600)
		return err
	})
	if own, is := errors.AsType[*fs.PathError](err); is {
		err = own // only what the system says
	}
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
		err = checkpoint.Refuse(path, fs.ErrPermission, "cannot be opened: it belongs to another user, who can change "+
			"what is in it", "run this as that user, or make the file yours (chown) if you know what is in it")
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// resolved returns the absolute path of a file, with symbolic links followed. The file may not exist yet.
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

// leftAs returns a hash of the machine's boot ID and of the file's inode, size and time. While it stays the same,
// nobody has written to the file. "": the system does not say.
func (d *Store) leftAs() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	info, failed := d.file.Stat()
	if err != nil || failed != nil {
		return ""
	}
	number := reflect.Indirect(reflect.ValueOf(info.Sys())).FieldByName("Ino") // Linux alone has a boot_id
	as := fmt.Appendf(nil, "%s %v %d %d", boot, number, info.Size(), info.ModTime().UnixNano())
	sum := sha256.Sum256(as)
	return hex.EncodeToString(sum[:8])
}
