//go:build unix && !darwin

package cli

import (
	"os"
	"path/filepath"
)

// stateDir is leadferry's folder in the user's state directory.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leadferry"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "leadferry"), nil
}
