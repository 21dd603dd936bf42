//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bolt

import (
	"os"
	"syscall"
)

// mapFile maps the first bytes of a file, to be read only.
func mapFile(f *os.File, bytes int64) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, int(bytes), syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmapFile(b []byte) error { return syscall.Munmap(b) }
