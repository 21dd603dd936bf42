package disk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// NoFollow and NonBlock are no flags here.
const NoFollow, NonBlock = 0, 0

// The byte that is locked, far behind every file's end: locks are not advice here, and nobody may be kept from reading
// what the file holds. bbolt locks the byte after it.
const lockedLow, lockedHigh = 1<<32 - 2, 1<<32 - 1

func lockedByte() *windows.Overlapped {
	return &windows.Overlapped{Offset: lockedLow, OffsetHigh: lockedHigh}
}

// TryLock takes the lock of an open file, unless another process, or another opening of the file, has it. Closing the
// file, also by the end of the process, gives it back.
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

// Unlock gives the lock back at once; after a mere closing, that is up to the system.
func Unlock(f *os.File) error {
	err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockedByte())
	if errors.Is(err, windows.ERROR_NOT_LOCKED) {
		return nil
	}
	return err
}

// SyncFolder makes a new name in a folder durable, where the system lets a program ask for it: most often it does
// not. The files themselves are synced, and Rename waits for the disk.
func SyncFolder(path string) error {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return &fs.PathError{Op: "sync", Path: path, Err: err}
	}
	folder, err := windows.CreateFile(name, windows.GENERIC_WRITE, anyShare,
		nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0) // the flag opens folders
	if err == nil {
		err = errors.Join(windows.FlushFileBuffers(folder), windows.CloseHandle(folder))
	}
	for _, cannot := range []error{windows.ERROR_ACCESS_DENIED, windows.ERROR_INVALID_FUNCTION, windows.ERROR_INVALID_HANDLE, windows.ERROR_NOT_SUPPORTED, windows.ERROR_SHARING_VIOLATION} {
		if errors.Is(err, cannot) {
			return nil
		}
	}
	if err != nil {
		return &fs.PathError{Op: "sync", Path: path, Err: err}
	}
	return nil
}

// SyncOpen is SyncFolder for a folder that is open.
func SyncOpen(folder *os.File) error { return SyncFolder(folder.Name()) }

// FileNumber is nothing: a file's number is not in what is known of it here.
func FileNumber(fs.FileInfo) string { return "" }
