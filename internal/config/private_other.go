//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package config

import (
	"io/fs"
	"os"
)

// open is not known here: who may read a file is not in its mode.
func open(fs.FileMode) bool { return false }

// tryLock takes no lock: two processes that renew at once cost one more sign-in.
func tryLock(*os.File) (bool, error) { return true, nil }

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
