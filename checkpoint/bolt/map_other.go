//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package bolt

import (
	"errors"
	"os"
)

// mapFile leaves it to calls of the system to read the file.
func mapFile(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) error { return nil }
