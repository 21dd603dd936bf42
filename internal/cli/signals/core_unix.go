//go:build unix

package signals

import "syscall"

// noCore stops a crash from writing an image of the memory, which holds rows and secrets.
func noCore() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &limit)
	}
}
