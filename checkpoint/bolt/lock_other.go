//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package bolt

import "os"

// tryLock leaves the lock to bbolt, which takes its own when it opens the file.
func tryLock(*os.File, bool) (bool, error) { return true, nil }

func unlock(*os.File) error { return nil }

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }

// fileNumber is nothing: files have no numbers here.
func fileNumber(os.FileInfo) string { return "" }
