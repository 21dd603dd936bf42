// Package disk does what differs between systems: owners and rights of files (ssh checks these too before it trusts a
// file), locks, synced folders, and mounts. Another user of the machine must not be able to give this program a secret
// or a ledger, or to get what it writes. On Windows it does not ask who owns a file: files are in the user's profile by
// default, which Windows keeps from other users.
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// NetworkDrive is what FileSystem returns on Windows for a file on another machine. Nothing on Linux has this number.
const NetworkDrive = -1

// Reserved reports whether the end of a path cannot be a file's name on Windows, for example con.csv, NUL or a.csv:b.
func Reserved(path string) bool {
	return runtime.GOOS == "windows" && !filepath.IsLocal(filepath.Base(path))
}

// ReservedWords say to a person what is wrong with a Reserved path.
const ReservedWords = "is no name for a file: Windows keeps it for a device, or takes a part of it for something else"

// Mine reports whether a file belongs to the user that runs the program. If the system has no owners, it does.
func Mine(info fs.FileInfo) bool {
	uid, known := owner(info)
	return !known || uid == os.Geteuid()
}

// Trusted reports whether a file is Mine or belongs to root, who could read and change everything anyway.
func Trusted(info fs.FileInfo) bool {
	uid, known := owner(info)
	return Mine(info) || known && uid == 0
}

// OthersMay reports whether the mode of a file has one of these bits: 0o022 asks if group or others may write to it.
func OthersMay(info fs.FileInfo, to fs.FileMode) bool {
	_, known := owner(info)
	return known && info.Mode().Perm()&to != 0
}

// Shared reports whether group or others may do anything with a file.
func Shared(info fs.FileInfo) bool { return OthersMay(info, 0o077) }

// Exposed says why another user may replace files in a folder. "": none may, as in a sticky folder of root (/tmp).
func Exposed(folder fs.FileInfo) string {
	switch {
	case !Trusted(folder):
		return "belongs to another user"
	case OthersMay(folder, 0o002) && folder.Mode()&fs.ModeSticky == 0:
		return "may be written to by every user of this machine"
	}
	return ""
}

// MakeFolders makes a folder, and the missing ones above it. Only their owner may enter them.
func MakeFolders(path string) error { return os.MkdirAll(path, 0o700) }

// Exists reports whether there is anything with this name, even a link to nothing.
func Exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// SameFile reports whether two names mean one file. If one of them does not exist, it compares the paths.
func SameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	if err == nil && otherErr == nil {
		return os.SameFile(one, other)
	}
	a, err = filepath.Abs(a)
	b, _ = filepath.Abs(b)
	return err == nil && a == b
}

// WriteNew writes a new file, durably: all of it or, after an error or a kill, none. It fails if there is one already.
func WriteNew(path string, mode os.FileMode, write func(io.Writer) error) error {
	if Reserved(path) {
		return errors.New(path + " " + ReservedWords)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); err != nil && !Exists(path) { // some file systems have no links
		err = Rename(f.Name(), path)
	}
	return err
}

// Replace makes data the content of the file at path, durably and as a whole: a power cut leaves the old or the new
// file. left is the file that holds the data: path, another one if only the rename failed, or "".
func Replace(path string, mode fs.FileMode, data []byte) (left string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	if err := Rename(f.Name(), path); err != nil {
		return f.Name(), err
	}
	return path, SyncFolder(filepath.Dir(path))
}

// WayOut says what a person can do about an error of the file system, without replacing the file by a new one.
func WayOut(err error) string {
	is := func(kind error) bool { return errors.Is(err, kind) }
	switch {
	case Held(err) != "":
		return Held(err)
	case is(fs.ErrPermission):
		return "let this user read and write the file and its folder, or run this as the user that made it"
	case is(fs.ErrNotExist), slices.ContainsFunc(noDisk, is):
		return "check the path: a folder of it is not there, or its disk is not mounted"
	case slices.ContainsFunc(noRoom, is):
		return "make room on the disk, or have the quota raised; what the file holds is safe"
	}
	return "check that the path names a file, and that its disk works and may be written to (see the system's log); " +
		"what the file holds is safe"
}
