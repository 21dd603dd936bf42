//go:build unix

package trust

import (
	"io/fs"
	"syscall"
)

// Flags for os.OpenFile: the last part of the path is no symbolic link, and a named pipe
// does not wait for its other end.
const (
	NoFollow = syscall.O_NOFOLLOW
	NonBlock = syscall.O_NONBLOCK
)

func owner(info fs.FileInfo) (uid, gid int, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return int(s.Uid), int(s.Gid), true
}
