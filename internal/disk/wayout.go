package disk

import (
	"errors"
	"io/fs"
	"syscall"
)

// WayOut says what a person can do about an error of the file system, for a file that is not to
// be done without: another one in its place would know nothing of what this one holds.
func WayOut(err error) string {
	if hint := Held(err); hint != "" {
		return hint
	}
	for _, known := range []struct {
		errs []error
		text string
	}{
		{[]error{fs.ErrPermission}, "let this user read and write the file and its folder (`ls -ld` shows whose they are), or run this as the user that made it"},
		{[]error{fs.ErrNotExist}, "check the path: a folder of it is not there, or its disk is not mounted"},
		{[]error{syscall.ENOSPC, syscall.EDQUOT}, "make room on the disk (`df` shows what is full), or have the quota raised; what the file holds stands"},
		{[]error{syscall.EROFS}, "mount the disk for writing, and look into the system's log for why it is not"},
		{[]error{syscall.EISDIR, syscall.ENOTDIR}, "check the path: it has to name a file, in folders"},
		{[]error{syscall.EMFILE, syscall.ENFILE}, "let the process open more files (`ulimit -n`), or end some of the others"},
		{[]error{syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL}, "check the path: name the file itself"},
		{[]error{syscall.EIO}, "the disk fails: copy the file to another one first, and look into the system's log"},
	} {
		for _, kind := range known.errs {
			if errors.Is(err, kind) {
				return known.text
			}
		}
	}
	return "see that the disk is there, has room, and that this user may write to it; what the file holds stands"
}
