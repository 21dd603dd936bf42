//go:build !linux

package memory

// Folder would return a folder in memory that takes large files and programs; here there is none.
func Folder() string { return "" }
