// Package memory is where temporary files of tests are quick: the speed of the disk is not under test, and most of what
// they write is synced.
package memory

import "syscall"

// room is what must be free: containers have far less there by default.
const room = 4 << 30

// Folder is one in memory that takes large files and programs, or "".
func Folder() string {
	const folder, noExec = "/dev/shm", 8
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil || s.Flags&noExec != 0 || s.Bavail*uint64(s.Bsize) < room {
		return ""
	}
	return folder
}
