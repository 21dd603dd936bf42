//go:build !windows

package cli

func parentShell() shell { return posix }
