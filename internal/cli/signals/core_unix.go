//go:build unix

package signals

import "syscall"

// noCore has no crash leave an image of the memory, where rows and secrets are.
func noCore() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &limit)
	}
}
