//go:build !windows

package terminal

import (
	"os/exec"
	"path/filepath"
	"runtime"
)

// ParentShell is the kind of shell that started the program.
func ParentShell() Shell { return posix }

// OpenFile opens a file as a double click does, a page in the browser. It does not wait for it to be closed.
func OpenFile(path string) error {
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	return exec.Command(opener, whole).Run()
}
