package bolt

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kinds of file systems that need a word, by the magic number of statfs(2).
var placesByMagic = map[int64]place{
	0x6969:     {"NFS", true, noLocks},
	0x517b:     {"SMB", false, noLocks},
	0xff534d42: {"SMB", false, noLocks},
	0xfe534d42: {"SMB", false, noLocks},
	0x01021997: {"9P", false, noLocks},
	0x65735546: {"FUSE", false, noLocks},
	0x794c7630: {"an overlay", false, "it is gone with the container that it belongs to, unless that is kept"},
}

// magic is the number of the file system that a folder lies on; its width is the machine's.
func magic(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(uint32(s.Type)), nil
}

// renameNew renames a file unless something has the new name already.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
