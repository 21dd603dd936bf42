//go:build !linux

package memory

// Folder is one in memory that takes large files and programs; here there is none.
func Folder() string { return "" }
