//go:build !linux && !windows

package disk

import "os"

// InMemory is not known here.
func InMemory(*os.File) bool { return false }

// FileSystem is not known here.
func FileSystem(string) (int64, error) { return 0, nil }

// MountPoint is not known here.
func MountPoint(string) bool { return false }
