//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package source

import (
	"errors"
	"syscall"
)

// Claim takes a lock on the file for as long as it is open, and reports false when another process that claimed it
// is reading it. Where there are no locks, or for standard input, nobody is.
func (f *File) Claim() (alone bool) {
	if f.disk == nil {
		return true
	}
	return !errors.Is(syscall.Flock(int(f.disk.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
