// Package memory finds a quick place for temporary files of tests: the speed of the disk is not under test, and most of
// what they write is synced.
package memory

import "syscall"

// room is how much must be free: containers have far less there by default.
const room = 4 << 30

// Folder returns a folder in memory that takes large files and programs, or "".
func Folder() string {
	const folder, noExec = "/dev/shm", 8
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil || s.Flags&noExec != 0 || s.Bavail*uint64(s.Bsize) < room {
		return ""
	}
	return folder
}
