//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package disk

import (
	"io/fs"
	"os"
)

// NoFollow and NonBlock are no flags here.
const NoFollow, NonBlock = 0, 0

// TryLock takes no lock: bbolt takes its own of the checkpoint, and two processes that renew
// a token at once cost one more sign-in.
func TryLock(*os.File, bool) (held bool, err error) { return true, nil }

// Unlock has nothing to give back.
func Unlock(*os.File) error { return nil }

// SyncFolder does nothing: folders cannot be synced here.
func SyncFolder(string) error { return nil }

// SyncOpen does nothing, too.
func SyncOpen(*os.File) error { return nil }

// FileNumber is nothing: files have no numbers here.
func FileNumber(fs.FileInfo) string { return "" }

func owner(fs.FileInfo) (uid, gid int, known bool) { return 0, 0, false }
