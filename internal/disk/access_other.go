//go:build !windows

package disk

import (
	"io/fs"
	"os"
)

// Stat is what the system says of a file, with whom it belongs to and who else may use it.
func Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// StatOpen is Stat of a file that is open.
func StatOpen(f *os.File) (fs.FileInfo, error) { return f.Stat() }

// MakePrivate leaves a file to its owner alone.
func MakePrivate(f *os.File) error { return f.Chmod(0o600) }

// MakeNewPrivate does nothing: the file was made with mode 0600.
func MakeNewPrivate(*os.File) error { return nil }

// MakeFolder makes a folder for its owner alone.
func MakeFolder(path string) error { return os.Mkdir(path, 0o700) }

// MakeFolders makes a folder and those above it that are not there, for their owner alone.
func MakeFolders(path string) error { return os.MkdirAll(path, 0o700) }
