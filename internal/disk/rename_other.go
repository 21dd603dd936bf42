//go:build !windows

package disk

import (
	"os"
	"time"
)

// KeepsOpenFiles says whether a file that is open can be neither replaced nor removed.
const KeepsOpenFiles = false

// Held says nothing: an open file keeps nobody from it here.
func Held(error) (hint string) { return "" }

// Patiently calls f: an open file can be replaced here.
func Patiently(f func() error) error { return f() }

// OpenPatiently calls f: nobody can keep a file to himself here.
func OpenPatiently(_ time.Duration, f func() error) error { return f() }

// Replaceable fails when a file could not be replaced now for another program that has it open: none could here.
func Replaceable(string) error { return nil }

// Rename gives a file another name, in the place of one that has it.
func Rename(from, to string) error { return os.Rename(from, to) }
