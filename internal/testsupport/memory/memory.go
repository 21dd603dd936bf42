// Package memory has temporary files of tests in memory, where a system has room there: the speed of its disk is not
// under test, and most of what tests write is synced.
package memory

import "os"

// Use makes temporary files in memory from now on, those that programs make too which are started from here.
func Use() {
	if folder := Folder(); folder != "" && os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", folder)
	}
}
