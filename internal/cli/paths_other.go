//go:build !unix || darwin

package cli

import (
	"os"
	"path/filepath"
)

// stateDir is leadferry's folder among the user's own application data.
func stateDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "leadferry", "state"), nil
}
