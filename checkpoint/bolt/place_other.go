//go:build !linux

package bolt

import "errors"

// What other systems call their file systems is not looked at.
var placesByMagic map[int64]place

func magic(string) (int64, error) { return 0, nil }

func renameNew(string, string) error { return errors.ErrUnsupported }
