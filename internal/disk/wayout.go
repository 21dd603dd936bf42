package disk

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"
)

// WayOut says what a person can do about an error of the file system, for a file that is not to
// be done without: another one in its place would know nothing of what this one holds.
func WayOut(err error) string {
	if hint := Held(err); hint != "" {
		return hint
	}
	for _, known := range []struct {
		errs, own []error // of every system, and those that this one has besides
		text      string
	}{
		{[]error{fs.ErrPermission}, nil, "let this user read and write the file and its folder (" + showsOwners + "), or run this as the user that made it"},
		{[]error{fs.ErrNotExist}, noDisk, "check the path: a folder of it is not there, or its disk is not mounted"},
		{[]error{syscall.ENOSPC, syscall.EDQUOT}, noRoom, "make room on the disk (" + showsRoom + "), or have the quota raised; what the file holds stands"},
		{[]error{syscall.EROFS}, writeProtected, "let the disk be written to, and look into the system's log for why it is not"},
		{[]error{syscall.EISDIR, syscall.ENOTDIR}, noFile, "check the path: it has to name a file, in folders"},
		{[]error{syscall.EMFILE, syscall.ENFILE}, tooManyOpen, "let the process open more files" + raisesLimit + ", or end some of the others"},
		{[]error{syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL}, badName, "check the path: name the file itself"},
		{[]error{syscall.EIO}, failing, "the disk fails: copy the file to another one first, and look into the system's log"},
	} {
		is := func(kind error) bool { return errors.Is(err, kind) }
		if slices.ContainsFunc(known.errs, is) || slices.ContainsFunc(known.own, is) {
			return known.text
		}
	}
	return "see that the disk is there, has room, and that this user may write to it; what the file holds stands"
}
