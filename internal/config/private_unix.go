//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package config

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// open reports whether group or others may do anything with a file.
func open(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

// tryLock takes the lock of an open file, if nobody has it. Closing the file, also
// by the end of the process, gives it back.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// syncDir makes a new name in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
