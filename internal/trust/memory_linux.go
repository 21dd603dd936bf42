package trust

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// File systems that live in memory, by the magic number of statfs(2).
const (
	tmpfs = 0x01021994
	ramfs = 0x858458f6
)

// InMemory reports whether an open file lies on a file system that no disk ever sees, as
// systemd, Kubernetes and Swarm hand over secrets.
func InMemory(f *os.File) bool {
	var s syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &s); err != nil {
		return false
	}
	magic := uint32(s.Type)
	return magic == tmpfs || magic == ramfs
}

// MountPoint reports whether something is mounted at path itself, as containers mount
// single files: it can be written, but not replaced.
func MountPoint(path string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &s)
	return err == nil && s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
