// Package disk is what systems do with files in ways of their own: who owns one and who else
// may change it, as ssh asks before it believes one, locks, folders that are synced, and mounts.
// Another user of the machine must be able neither to hand this program
// a secret or a ledger of his own nor to be handed what it writes.
//
// It is below the rooms that open files. On Windows, whose a file is is not looked at: files are in the user's profile by
// default, which Windows keeps from other users. It promises nothing where the system cannot.
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
)

// NetworkDrive is what FileSystem says on Windows of a file on another machine. Nothing on Linux has this number.
const NetworkDrive = -1

// Reserved reports whether a path ends in no name for a file: Windows keeps it for a device, like con.csv or NUL, or takes
// a part of it for something else, like the stream b of a.csv:b.
func Reserved(path string) bool {
	return runtime.GOOS == "windows" && !filepath.IsLocal(filepath.Base(path))
}

// ReservedWords say so to a person.
const ReservedWords = "is no name for a file: Windows keeps it for a device, or takes a part of it for something else"

// belongs reports whether a file is one of these users'. Where the system has no owners, it is.
func belongs(info fs.FileInfo, users ...int) bool {
	uid, _, known := owner(info)
	return !known || slices.Contains(users, uid)
}

// Mine reports whether a file belongs to the user that the program runs as.
func Mine(info fs.FileInfo) bool { return belongs(info, os.Geteuid()) }

// Trusted reports whether a file belongs to that user or to root, who could read and
// change everything anyway.
func Trusted(info fs.FileInfo) bool { return belongs(info, os.Geteuid(), 0) }

// Invokers reports whether a file belongs to the user that the program runs as, or, where
// that is root by sudo, to the user who called sudo.
func Invokers(info fs.FileInfo) bool {
	caller, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	return Mine(info) || err == nil && os.Geteuid() == 0 && belongs(info, caller)
}

// Open reports whether a mode lets others do one of these things with a file: 0o022 is that group or others write to it.
func Open(info fs.FileInfo, to fs.FileMode) bool {
	_, _, known := owner(info)
	return known && info.Mode().Perm()&to != 0
}

// Shared reports whether group or others may do anything with a file.
func Shared(info fs.FileInfo) bool { return Open(info, 0o077) }

// PrivateGroup reports whether the group of a file is its owner's own alone, as many systems
// give each user one, with his number, and a umask of 002.
func PrivateGroup(info fs.FileInfo) bool {
	uid, gid, known := owner(info)
	return known && uid == gid
}

// Exposed says in words why files in a folder may be swapped by somebody else, or nothing: it is another user's, or the
// whole world may write to it. Where many may write to a sticky folder, like /tmp, each still keeps what is his.
func Exposed(folder fs.FileInfo) string {
	switch {
	case !Trusted(folder):
		return "belongs to another user"
	case Open(folder, 0o002) && folder.Mode()&fs.ModeSticky == 0:
		return "may be written to by every user of this machine"
	}
	return ""
}

// MakePrivate leaves a file to its owner alone.
func MakePrivate(f *os.File) error { return f.Chmod(0o600) }

// MakeFolder makes a folder for its owner alone.
func MakeFolder(path string) error { return os.Mkdir(path, 0o700) }

// MakeFolders makes a folder and those above it that are not there, for their owner alone.
func MakeFolders(path string) error { return os.MkdirAll(path, 0o700) }

// Exists reports whether anything has this name, be it a link to nothing.
func Exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// SameFile reports whether two names are of one file. It tells it of files that are not there yet by their names.
func SameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	if err == nil && otherErr == nil {
		return os.SameFile(one, other)
	}
	a, err = filepath.Abs(a)
	b, otherErr = filepath.Abs(b)
	return err == nil && otherErr == nil && a == b
}

// WriteNew makes a file that must not be there yet, or leaves none.
func WriteNew(path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// WayOut says what a person can do about an error of the file system, for a file that is not to
// be done without: another one in its place would know nothing of what this one holds.
func WayOut(err error) string {
	is := func(kind error) bool { return errors.Is(err, kind) }
	switch {
	case Held(err) != "":
		return Held(err)
	case is(fs.ErrPermission):
		return "let this user read and write the file and its folder (" + showsOwners + "), or run this as the user that made it"
	case is(fs.ErrNotExist), slices.ContainsFunc(noDisk, is):
		return "check the path: a folder of it is not there, or its disk is not mounted"
	case slices.ContainsFunc(noRoom, is):
		return "make room on the disk (" + showsRoom + "), or have the quota raised; what the file holds stands"
	}
	return "check that the path names a file, and that its disk works and may be written to (see the system's log); what the file holds stands"
}
