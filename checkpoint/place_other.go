//go:build !linux

package checkpoint

// What other systems call their file systems is not looked at.
var placesByMagic map[int64]place

func magic(string) (int64, error) { return 0, nil }
