// Package memory finds a folder in memory for temporary files of tests: they sync most writes, but do not test a disk.
package memory

import "syscall"

// room is how many bytes must be free: most containers have far less there.
const room = 4 << 30

// Folder returns a folder in memory for large files and programs, or "".
func Folder() string {
	const folder, noExec = "/dev/shm", 8
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil || s.Flags&noExec != 0 || s.Bavail*uint64(s.Bsize) < room {
		return ""
	}
	return folder
}
