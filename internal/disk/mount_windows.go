package disk

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// InMemory is not known here.
func InMemory(*os.File) bool { return false }

// FileSystem is NetworkDrive for a path on one, and else 0.
func FileSystem(path string) (int64, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	root := make([]uint16, len(path)+windows.MAX_PATH)
	if err := windows.GetVolumePathName(name, &root[0], uint32(len(root))); err != nil {
		return 0, err
	}
	if windows.GetDriveType(&root[0]) == windows.DRIVE_REMOTE {
		return NetworkDrive, nil
	}
	return 0, nil
}

// MountPoint is not known here.
func MountPoint(string) bool { return false }
