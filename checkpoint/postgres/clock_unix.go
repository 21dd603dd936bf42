//go:build linux || darwin

package postgres

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that goes on while the machine sleeps and that nobody can set. By the time of day, an old claim
// would be good again after the clock was set back. Systems without such a clock have no build.
func sinceBoot() time.Duration {
	clock := map[string]int32{"linux": 7 /* CLOCK_BOOTTIME */, "darwin": 4 /* CLOCK_MONOTONIC_RAW */}[runtime.GOOS]
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err) // neither system returns one
	}
	return time.Duration(t.Nano())
}
