package disk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Each error of a file system leads to what is wrong, however it is wrapped.
func TestWayOut(t *testing.T) {
	_, missing := os.Open(filepath.Join(t.TempDir(), "a", "b"))
	for word, err := range map[string]error{
		"let this user":     &fs.PathError{Op: "open", Err: syscall.EACCES},
		"not mounted":       missing,
		"make room":         fmt.Errorf("write: %w", &fs.PathError{Op: "write", Err: syscall.ENOSPC}),
		"be written to":     syscall.EROFS,
		"name a file":       syscall.EISDIR,
		"open more files":   syscall.EMFILE,
		"the file itself":   syscall.ELOOP,
		"the disk fails":    syscall.EIO,
		"may write to it":   syscall.EBUSY,
		"the quota raised;": syscall.EDQUOT,
	} {
		if got := WayOut(err); !strings.Contains(got, word) {
			t.Errorf("%v: %s", err, got)
		}
	}
}
