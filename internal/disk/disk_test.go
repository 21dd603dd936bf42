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

// The way out fits the cause of an error, also if the error is wrapped.
func TestWayOut(t *testing.T) {
	_, missing := os.Open(filepath.Join(t.TempDir(), "a", "b"))
	for word, err := range map[string]error{
		"let this user":     &fs.PathError{Op: "open", Err: syscall.EACCES},
		"not mounted":       missing,
		"make room":         fmt.Errorf("write: %w", &fs.PathError{Op: "write", Err: noRoom[0]}),
		"be written to (":   syscall.EROFS,
		"its disk works":    syscall.EIO,
		"names a file":      syscall.EBUSY,
		"the quota raised;": noRoom[len(noRoom)-1],
	} {
		if got := WayOut(err); !strings.Contains(got, word) {
			t.Errorf("%v: %s", err, got)
		}
	}
}
