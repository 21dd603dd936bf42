package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/windows"
)

// NoFollow and NonBlock do not exist here.
const NoFollow, NonBlock = 0, 0

// lockedByte is far behind the end of any file, because a lock keeps others from reading. bbolt locks the next byte.
func lockedByte() *windows.Overlapped {
	return &windows.Overlapped{Offset: 1<<32 - 2, OffsetHigh: 1<<32 - 1}
}

// TryLock locks an open file, unless another opening of the file has the lock. Closing the file unlocks it.
func TryLock(f *os.File, shared bool) (held bool, err error) {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, lockedByte())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Unlock gives the lock back at once. If the file is only closed, the system does it later.
func Unlock(f *os.File) error {
	err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockedByte())
	if errors.Is(err, windows.ERROR_NOT_LOCKED) {
		return nil
	}
	return err
}

// SyncFolder does nothing: the files themselves are synced, and Rename waits for the disk.
func SyncFolder(string) error { return nil }

// SyncOpen does nothing, as SyncFolder does.
func SyncOpen(*os.File) error { return nil }

// owner is not known: files are in the user's profile, which Windows keeps from other users.
func owner(fs.FileInfo) (uid int, known bool) { return 0, false }

// held says that another program has a file open.
type held struct{ cause error }

func (h held) Error() string {
	return "it is open in another program, or may not be changed: close it in Excel, or wherever it is open"
}
func (h held) Unwrap() error { return h.cause }

// Held says what to do about a file that another program has open and keeps to itself; "" for other errors.
func Held(err error) (hint string) {
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return "close it in Excel, or in whatever program has it open"
	}
	return ""
}

// Patiently calls f, which opens, replaces, renames or removes a file. While another program has the file open, it
// calls f again, for 4 s or for wait if that is longer: a virus scanner or an indexer soon closes a file.
func Patiently(wait time.Duration, f func() error) error {
	for end := time.Now().Add(max(wait, 4*time.Second)); ; time.Sleep(50 * time.Millisecond) {
		switch err := f(); {
		case Held(err) == "" && !errors.Is(err, windows.ERROR_ACCESS_DENIED): // which a rename returns instead
			return err
		case !time.Now().Before(end):
			return held{err}
		}
	}
}

// Replaceable fails if another program has a file open, so that it cannot be replaced now. The test is to rename the
// file to its own name. A missing file is no obstacle.
func Replaceable(path string) error {
	err := Patiently(0, func() error { return os.Rename(path, path) })
	if errors.As(err, new(held)) {
		return err
	}
	return nil // Replace reports any other error
}

// Rename gives a file another name and waits until this is on the disk. A file that has the name is replaced.
func Rename(from, to string) error {
	return Patiently(0, func() error {
		old, err := windows.UTF16PtrFromString(from)
		if err != nil {
			return err
		}
		name, err := windows.UTF16PtrFromString(to)
		if err == nil {
			err = windows.MoveFileEx(old, name, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
		}
		if err != nil {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
		return nil
	})
}

// FileSystem returns NetworkDrive for a path on another machine, by its name or its drive's letter, else 0.
func FileSystem(path string) (int64, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	drive, err := windows.UTF16PtrFromString(filepath.VolumeName(path) + `\`)
	if err == nil && (shared(path) || windows.GetDriveType(drive) == windows.DRIVE_REMOTE) {
		return NetworkDrive, nil
	}
	return 0, err
}

// shared reports whether a path names another machine, as \\SERVER\SHARE and \\?\UNC\SERVER\SHARE do, and \\?\C: not.
func shared(path string) bool {
	path = strings.ToUpper(filepath.FromSlash(path))
	is := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
	return is(`\\?\UNC\`) || is(`\\`) && !is(`\\?\`) && !is(`\\.\`)
}

// MountPoint returns false: nothing is known here.
func MountPoint(string) bool { return false }

// Errors of a disk that is not there, or full.
var (
	noDisk = []error{windows.ERROR_NOT_READY, windows.ERROR_INVALID_DRIVE}
	noRoom = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}
)
