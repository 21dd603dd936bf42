// Package machine knows the ID of this machine, and the folder for data that must stay on it.
package machine

import (
	"os"
	"path/filepath"
	"runtime"
)

// StateDir returns leadferry's folder in the user's state directory or, if there is none, in the user's application
// data. On Windows the data must not roam: Windows would copy an older checkpoint from another machine over a newer
// one. XDG_STATE_HOME counts on every system.
func StateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leadferry"), nil
	}
	switch runtime.GOOS {
	case "windows":
		dir, err := os.UserCacheDir() // %LOCALAPPDATA%
		return filepath.Join(dir, "leadferry", "state"), err
	case "darwin":
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "leadferry", "state"), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "leadferry"), err
}
