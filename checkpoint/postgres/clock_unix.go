//go:build linux || darwin

package postgres

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that goes on while the machine sleeps and that nobody sets: by the time of day, a claim might be
// good again once that is set back. Systems that have none are not built for.
func sinceBoot() time.Duration {
	clock := map[string]int32{"linux": 7 /* CLOCK_BOOTTIME */, "darwin": 4 /* CLOCK_MONOTONIC_RAW */}[runtime.GOOS]
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err) // which neither system has
	}
	return time.Duration(t.Nano())
}
