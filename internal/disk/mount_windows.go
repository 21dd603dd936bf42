package disk

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// InMemory is not known here.
func InMemory(*os.File) bool { return false }

// FileSystem is NetworkDrive for a path on one, and else 0. The path of a file is on one by its name, by its drive's
// letter, or behind links.
func FileSystem(path string) (int64, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	if shared(path) || shared(finalPath(name)) {
		return NetworkDrive, nil
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

// shared reports whether a path names another machine: \\SERVER\SHARE, \\?\UNC\SERVER\SHARE. \\?\ and \\.\ are this one.
func shared(path string) bool {
	path = strings.ToUpper(strings.ReplaceAll(path, "/", `\`))
	if rest, whole := strings.CutPrefix(path, `\\?\`); whole {
		return strings.HasPrefix(rest, `UNC\`)
	}
	return strings.HasPrefix(path, `\\`) && !strings.HasPrefix(path, `\\.\`)
}

// finalPath is the path of a file or folder behind all links and mapped drives; "" where nobody can tell.
func finalPath(name *uint16) string {
	h, err := windows.CreateFile(name, 0, anyShare, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	path := make([]uint16, windows.MAX_LONG_PATH)
	n, err := windows.GetFinalPathNameByHandle(h, &path[0], uint32(len(path)), 0)
	if err != nil || n > uint32(len(path)) {
		return ""
	}
	return windows.UTF16ToString(path[:n])
}

// MountPoint is not known here.
func MountPoint(string) bool { return false }

// BeginSync is not to be had here.
func BeginSync(*os.File, int64, int64) {}
