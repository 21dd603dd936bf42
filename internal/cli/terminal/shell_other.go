//go:build !windows

package terminal

func ParentShell() Shell { return posix }
