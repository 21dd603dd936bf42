//go:build !windows

package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Flags for os.OpenFile: the path must not end in a symbolic link, and a named pipe does not wait for its other end.
const (
	NoFollow = syscall.O_NOFOLLOW
	NonBlock = syscall.O_NONBLOCK
)

// TryLock locks an open file, unless another opening of the file has the lock. Closing the file unlocks it.
func TryLock(f *os.File, shared bool) (held bool, err error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Unlock gives the lock back. To close the file is not enough while it is mapped.
func Unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// SyncFolder makes a new name in a folder durable.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SyncOpen makes the names in an open folder durable, if its file system can.
func SyncOpen(folder *os.File) error {
	if err := folder.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

func owner(info fs.FileInfo) (uid int, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(s.Uid), true
}

// Held returns "": on this system an open file locks nobody out.
func Held(error) (hint string) { return "" }

// Patiently calls f once: on this system no program keeps a file to itself, and an open file can be replaced.
func Patiently(_ time.Duration, f func() error) error { return f() }

// Replaceable fails if a file cannot be replaced because another program has it open. On this system it never does.
func Replaceable(string) error { return nil }

// Rename gives a file another name. A file that has the name is replaced.
func Rename(from, to string) error { return os.Rename(from, to) }

// FileSystem returns the kind of file system of a path, by the number of Linux's statfs(2); 0 on other systems.
func FileSystem(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil || runtime.GOOS != "linux" {
		return 0, err
	}
	return int64(uint32(s.Type)), nil // Type differs in width from machine to machine
}

// MountPoint reports whether something is mounted at path itself, as in containers: then it cannot be replaced.
func MountPoint(path string) bool {
	path, _ = filepath.Abs(path)
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	written := strings.NewReplacer("\\", `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`)
	at := written.Replace(filepath.Join(folder, filepath.Base(path)))
	return err == nil && slices.ContainsFunc(strings.Split(string(mounts), "\n"), func(mount string) bool {
		fields := strings.Fields(mount)
		return len(fields) > 4 && fields[4] == at
	})
}

// Errors of a disk that is not there, or full.
var noDisk, noRoom = []error{}, []error{syscall.ENOSPC, syscall.EDQUOT}
