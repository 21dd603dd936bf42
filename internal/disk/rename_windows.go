package disk

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// KeepsOpenFiles says whether a file that is open can be neither replaced nor removed.
const KeepsOpenFiles = true

// A virus scanner or an indexer lets go of a file soon.
const (
	patience  = 4 * time.Second
	tryAgain  = 50 * time.Millisecond
	heldWords = "it is open in another program, or may not be changed: close it in Excel, or wherever it is open"
)

// held says that another program has a file open.
type held struct{ cause error }

func (h held) Error() string { return heldWords }
func (h held) Unwrap() error { return h.cause }

// Held says in words what to do about a file that another program has open and lets nobody else read; nothing about
// other errors.
func Held(err error) (hint string) {
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return "close it in Excel, or in whatever program has it open"
	}
	return ""
}

// Patiently replaces, renames or removes a file by f, which it calls again for some seconds while another program has
// the file open.
func Patiently(f func() error) error {
	err, late := again(patience, f)
	if late {
		return held{err}
	}
	return err
}

// OpenPatiently opens a file by f, which it calls again for some seconds, or for wait where that is longer, while
// another program keeps the file to itself or is about to replace it.
func OpenPatiently(wait time.Duration, f func() error) error {
	err, _ := again(max(wait, patience), f)
	return err
}

// again calls f until it meets no other program, and reports whether it met one to the end.
func again(wait time.Duration, f func() error) (err error, late bool) {
	for end := time.Now().Add(wait); ; time.Sleep(tryAgain) {
		err := f()
		if Held(err) == "" && !errors.Is(err, windows.ERROR_ACCESS_DENIED) { // which a rename says instead
			return err, false
		}
		if !time.Now().Before(end) {
			return err, true
		}
	}
}

// Replaceable fails when a file could not be replaced now for another program that has it open. One that is not there
// is none.
func Replaceable(path string) error {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	err = Patiently(func() error {
		h, err := windows.CreateFile(name, windows.DELETE, anyShare, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
		if err == nil {
			windows.CloseHandle(h)
		}
		return err
	})
	if errors.As(err, new(held)) {
		return err
	}
	return nil // whatever else is wrong is told by who replaces it
}

// anyShare keeps nobody from a file while it is open.
const anyShare = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// Rename gives a file another name, in the place of one that has it, and waits for the disk to know it.
func Rename(from, to string) error {
	return Patiently(func() error { return move(from, to, windows.MOVEFILE_REPLACE_EXISTING) })
}

// RenameNew renames a file unless something has the new name already.
func RenameNew(from, to string) error {
	return Patiently(func() error { return move(from, to, 0) })
}

func move(from, to string, flags uint32) error {
	old, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	if err := windows.MoveFileEx(old, name, flags|windows.MOVEFILE_WRITE_THROUGH); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
