//go:build !linux && !windows

package disk

// FileSystem is not known here.
func FileSystem(string) (int64, error) { return 0, nil }

// MountPoint is not known here.
func MountPoint(string) bool { return false }
