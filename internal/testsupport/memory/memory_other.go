//go:build !linux

package memory

// Folder returns "": there is no folder in memory here.
func Folder() string { return "" }
