package disk

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// FileSystem is the number of the kind of file system that path lies on, as statfs(2) gives it; 0 where the system
// gives none.
func FileSystem(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(uint32(s.Type)), nil // its width is the machine's
}

// MountPoint reports whether something is mounted at path itself, as containers mount single files: it can be written,
// but not replaced.
func MountPoint(path string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &s)
	return err == nil && s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
