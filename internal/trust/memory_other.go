//go:build !linux

package trust

import "os"

// InMemory is not known here.
func InMemory(*os.File) bool { return false }

// MountPoint is not known here.
func MountPoint(string) bool { return false }
